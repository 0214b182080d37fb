// SPDX-License-Identifier: Apache-2.0
#include "parts/clip_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <queue>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "base/xxh3.h"
#include "io/at_once.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/manifest.h"
#include "io/packed.h"
#include "io/places.h"
#include "io/remote/address.h"
#include "io/scratch_file.h"
#include "io/sorter.h"
#include "io/store.h"
#include "io/text_writer.h"
#include "parts/part_choice.h"
#include "parts/part_lease.h"
#include "parts/part_run.h"
#include "parts/parts_look.h"

namespace vfm::parts {
namespace {

constexpr const char* kListFile = "list.json";
constexpr const char* kListFolder = "list";
// Divisors of the size of shards. They give the maximum size of a small video, the mean size of a
// bucket, and what a video counts in addition to its bytes.
constexpr std::uint64_t kSmallPart = 16, kBucketPart = 2, kVideoPart = 4096;
// A line of the input has at most 16 MiB, and a Sorter takes records of a quarter of its memory.
constexpr std::size_t kLineMemory = std::size_t{72} << 20;

/// What each video counts, in a bucket and in a part, in addition to its bytes.
std::uint64_t video_weight(std::uint64_t shard_bytes) {
  return std::max<std::uint64_t>(1, shard_bytes / kVideoPart);
}

struct OrderedField {
  std::uint64_t value;
  int bytes;
};
/// Packs numbers, so that records sort by the first number, then by the second, and so on.
std::string ordered_bytes(std::initializer_list<OrderedField> fields) {
  std::string packed;
  for (const OrderedField& field : fields)
    io::put_ordered(packed, field.value, field.bytes);
  return packed;
}

/// What an input is before its part is known.
struct ListedVideo {
  std::string path, line;              ///< `line` is the record without its last brace.
  std::optional<std::uint64_t> bytes;  ///< Absent for a URL and a missing file.
  bool small = false;

  void put(std::string& out) const {
    io::put_text(out, path);
    io::put_text(out, line);
    io::put_number(out, bytes ? 1 + *bytes : 0);
    io::put_number(out, small);
  }
  static ListedVideo take(std::string_view record) {
    ListedVideo video;
    video.path = io::take_text(record);
    video.line = io::take_text(record);
    if (const std::uint64_t bytes = io::take_number(record)) video.bytes = bytes - 1;
    video.small = io::take_number(record) != 0;
    return video;
  }
};

/// The name by which a video is known, whatever folder a command was started in. `here` is the
/// working folder.
std::string key_of(const std::string& here, const std::string& path) {
  if (io::is_url(path)) return path;
  const bool plain = path.find("/.") == std::string::npos && path.find("//") == std::string::npos;
  if (plain && path.starts_with('/')) return path;
  return std::filesystem::path(io::named_from(here, path)).lexically_normal();
}

std::optional<std::uint64_t> said_bytes(const io::Record& record) {
  const std::optional<std::int64_t> said = get_integer(record.json, "bytes");
  return said && *said >= 0 ? std::optional(static_cast<std::uint64_t>(*said)) : std::nullopt;
}

/// Returns true if a server must be asked for the size.
bool asks_server(const io::Record& record) {
  return io::is_remote(get_string(record.json, "path").value_or("")) && !said_bytes(record);
}

/// Returns the sizes of objects, or nullopt where there is none, by many requests at once. A bucket
/// that refuses is an error. A web server that refuses is one of the video, which its part reports.
std::vector<std::optional<std::uint64_t>> object_sizes(const std::vector<io::Record>& records) {
  std::vector<std::optional<std::uint64_t>> sizes(records.size());
  io::for_each_at_once(records.size(), kRequests, [&](std::size_t at) {
    const std::string path = get_string(records[at].json, "path").value_or("");
    try {
      if (asks_server(records[at])) sizes[at] = io::size_of(path);
    } catch (const Error&) {
      if (io::is_bucket(path)) throw;
    }
  });
  return sizes;
}

/// `object_bytes` is the size of an object whose record does not tell it.
ListedVideo listed(const io::Record& record, const ListOptions& options, std::uint64_t shard_bytes,
                   std::optional<std::uint64_t> object_bytes) {
  ListedVideo video;
  video.path = record.path();
  Json json = record.json;
  for (const char* own : {"bytes", "place", "bucket"})
    json.erase(own);
  if (io::is_url(video.path)) {
    video.bytes = object_bytes ? object_bytes : said_bytes(record);
  } else {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(video.path, error);
    if (!error) video.bytes = bytes;
  }
  if (!io::is_url(video.path) || io::is_remote(video.path)) {
    const bool joins = json.size() == 2 && video.bytes && *video.bytes <= shard_bytes / kSmallPart;
    video.small = joins || options.is_picture(video.path);
  }
  video.line = dump_json(json);
  video.line.pop_back();
  return video;
}

/// Makes the parts of the videos of one call.
class ListMaker {
 public:
  ListMaker(const ListOptions& options, std::string folder, const ClipList& before,
            std::uint64_t shard_bytes)
      : options_(options),
        folder_(std::move(folder)),
        before_(before),
        shard_bytes_(shard_bytes),
        names_(folder_),
        again_(folder_),
        videos_(folder_) {}

  void read(const io::OnFault& on_bad, Progress& progress);
  /// Returns the number of videos that the list did not have.
  std::uint64_t count();
  /// Throws Error if `lease` is lost.
  void make(int parts, const PartLease& lease, ListFacts& facts);

  std::uint64_t known() const { return read_ - kept_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t buckets() const { return buckets_; }
  std::uint64_t total_weight() const { return total_; }

 private:
  template <class Take>
  void for_each_new(Take take);
  void see_known();
  void take(std::vector<io::Record>& records, const io::OnFault& on_bad, Progress& progress);
  void find_again();
  std::uint64_t weight(const ListedVideo& video) const;
  void weigh();
  void assign(int parts);
  void assign_small();
  void sort_lines();
  void write(int parts, const PartLease& lease, ListFacts& facts);

  const ListOptions& options_;
  std::string folder_, here_ = io::working_folder();
  ClipList before_;
  std::uint64_t shard_bytes_;
  io::Sorter names_;  // (key, whether the video is of this call, place in the input)
  io::Sorter again_;  // (place in the input) of videos that are left out
  io::ScratchFile videos_;
  std::uint64_t read_ = 0, kept_ = 0, bytes_ = 0, fills_ = 0, total_ = 0, unknown_weight_ = 0,
                buckets_ = 0;
  // A bucket's number is that of this call. There may be more buckets than fit into memory.
  std::optional<io::Sorter> small_;  // (bucket, place, weight) of each small video
  std::optional<io::Sorter> units_;  // (weight, largest first; first place; bucket + 1, or 0)
  std::optional<io::Sorter> bucket_owners_;  // (bucket, its first place, part)
  std::optional<io::Sorter> owners_;         // (place, part, first place of the unit, bucket + 1)
  std::optional<io::Sorter> lines_;          // (part, first place of the unit, place, line)
};

void ListMaker::see_known() {
  std::vector<std::string> files;
  for (int part = 0; part < before_.parts; ++part)
    files.push_back(list_path(options_.directory, part));
  io::ManifestReader reader(files, [](const io::Fault& fault) {
    fail("the list of an earlier call is damaged: {}: {}", fault.input, fault.message);
  });
  while (const std::optional<io::Record> record = reader.next()) {
    std::string name;
    io::put_ordered_text(name, key_of(here_, record->path()));
    io::put_ordered(name, 0, 1);
    names_.add(name);
  }
  reader.streams().check_whole("the list is damaged");
}

void ListMaker::read(const io::OnFault& on_bad, Progress& progress) {
  if (before_.parts > 0) see_known();
  progress.start("videos", 0);
  constexpr std::size_t kAtOnce = 512;  // objects whose sizes are asked for
  io::ManifestReader reader(options_.inputs, on_bad);
  std::vector<io::Record> waiting;
  while (const std::optional<io::Record> record = reader.next()) {
    const bool video = record->kind == "video" || record->kind == "image";
    const bool asks = video && asks_server(*record);
    if (!asks || waiting.size() == kAtOnce) take(waiting, on_bad, progress);
    if (!video) {
      on_bad({record->where, fmt::format("is a record of kind '{}', not a video", record->kind),
              Cause::line});
      continue;
    }
    waiting.push_back(*record);
    if (!asks) take(waiting, on_bad, progress);
  }
  take(waiting, on_bad, progress);
  reader.streams().check_whole("no list is written");
  find_again();
}

/// Adds the videos of `records`, and empties it.
void ListMaker::take(std::vector<io::Record>& records, const io::OnFault& on_bad,
                     Progress& progress) {
  const std::vector<std::optional<std::uint64_t>> sizes = object_sizes(records);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const io::Record& record = records[i];
    try {
      std::string packed, name;
      const ListedVideo video = listed(record, options_, shard_bytes_, sizes[i]);
      io::put_ordered_text(name, key_of(here_, video.path));
      io::put_ordered(name, 1, 1);
      io::put_ordered(name, read_, 8);
      names_.add(name);  // Throws for a name of megabytes.
      video.put(packed);
      videos_.append_text(packed);
      ++read_;
    } catch (const Error& error) {
      on_bad({record.where, error, Cause::line});
    }
    progress.add();
  }
  records.clear();
}

/// Finds videos that the list has, or that came before in the input.
void ListMaker::find_again() {
  io::Sorter::Stream names = names_.sorted();
  std::string last;
  bool any = false;
  for (std::string_view record; names.next(record);) {
    std::string key = io::take_ordered_text(record);
    const bool again = any && key == last;
    any = true;
    last = std::move(key);
    if (io::take_ordered(record, 1) == 1 && again) again_.add(record);
  }
}

/// Calls `take` with each video that is new, and its place in the list.
template <class Take>
void ListMaker::for_each_new(Take take) {
  io::Sorter::Stream again = again_.sorted();
  io::ScratchReader videos(videos_);
  std::string_view skip, packed;
  bool skips = again.next(skip);
  std::uint64_t place = before_.videos;
  for (std::uint64_t i = 0; videos.text(packed); ++i) {
    std::string_view rest = skip;
    if (skips && io::take_ordered(rest, 8) == i) {
      skips = again.next(skip);
      continue;
    }
    take(ListedVideo::take(packed), place++);
  }
}

std::uint64_t ListMaker::count() {
  std::uint64_t sized = 0;
  for_each_new([&](const ListedVideo& video, std::uint64_t) {
    ++kept_;
    bytes_ += video.bytes.value_or(0);
    sized += video.bytes.has_value();
    if (video.small)
      fills_ += bucket_fill(video.bytes.value_or(0), video.path.size(), shard_bytes_);
  });
  unknown_weight_ = sized > 0 ? bytes_ / sized : 1;
  for_each_new([&](const ListedVideo& video, std::uint64_t) { total_ += weight(video); });
  return kept_;
}

/// What a video counts in its part: bytes, and a little more for each video.
std::uint64_t ListMaker::weight(const ListedVideo& video) const {
  return video.bytes.value_or(unknown_weight_) + video_weight(shard_bytes_);
}

void ListMaker::weigh() {
  buckets_ = count_buckets(fills_, shard_bytes_);
  small_.emplace(folder_);
  units_.emplace(folder_);
  const auto add = [&](std::uint64_t heaviness, std::uint64_t place, std::uint64_t bucket) {
    units_->add(ordered_bytes({{~heaviness, 8}, {place, 8}, {bucket, 8}}));
  };
  for_each_new([&](const ListedVideo& video, std::uint64_t place) {
    if (!video.small) return add(weight(video), place, 0);
    small_->add(
        ordered_bytes({{bucket_of(video.path, buckets_), 8}, {place, 8}, {weight(video), 8}}));
  });
  std::uint64_t sum = 0, first = 0, last = 0;
  io::Sorter::Stream small = small_->sorted();
  for (std::string_view video; small.next(video);) {
    const std::uint64_t bucket = io::take_ordered(video, 8), place = io::take_ordered(video, 8);
    if (sum > 0 && bucket != last) add(std::exchange(sum, 0), first, last + 1);
    if (sum == 0) first = place;
    sum += io::take_ordered(video, 8);
    last = bucket;
  }
  if (sum > 0) add(sum, first, last + 1);
}

/// Gives each unit to a part.
void ListMaker::assign(int parts) {
  using Load = std::pair<std::uint64_t, int>;  // the lightest part, and of equal ones the first
  std::vector<Load> empty;
  for (int part = 0; part < parts; ++part)
    empty.emplace_back(0, part);
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads(std::greater<>(),
                                                                     std::move(empty));
  bucket_owners_.emplace(folder_);
  owners_.emplace(folder_);
  io::Sorter::Stream units = units_->sorted();
  for (std::string_view unit; units.next(unit);) {
    const std::uint64_t heaviness = ~io::take_ordered(unit, 8);
    const std::uint64_t place = io::take_ordered(unit, 8), bucket = io::take_ordered(unit, 8);
    const auto [load, part] = loads.top();
    loads.pop();
    loads.emplace(load + heaviness, part);
    const auto owner = static_cast<std::uint64_t>(part);
    if (bucket > 0)
      bucket_owners_->add(ordered_bytes({{bucket - 1, 8}, {place, 8}, {owner, 4}}));
    else
      owners_->add(ordered_bytes({{place, 8}, {owner, 4}, {place, 8}, {0, 8}}));
  }
  units_.reset();
}

/// Gives each small video to the part of its bucket.
void ListMaker::assign_small() {
  io::Sorter::Stream owners = bucket_owners_->sorted(), small = small_->sorted();
  std::string_view owner;
  std::uint64_t of = 0, first = 0, part = 0;
  bool any = false;
  for (std::string_view video; small.next(video);) {
    const std::uint64_t bucket = io::take_ordered(video, 8), place = io::take_ordered(video, 8);
    if (!any || of != bucket) {
      if (!owners.next(owner)) io::fail_packed();
      of = io::take_ordered(owner, 8);
      first = io::take_ordered(owner, 8);
      part = io::take_ordered(owner, 4);
      any = true;
    }
    if (of != bucket) io::fail_packed();
    owners_->add(ordered_bytes({{place, 8}, {part, 4}, {first, 8}, {bucket + 1, 8}}));
  }
  small_.reset();
  bucket_owners_.reset();
}

void ListMaker::sort_lines() {
  lines_.emplace(folder_, kLineMemory);
  io::Sorter::Stream owners = owners_->sorted();
  for_each_new([&](const ListedVideo& video, std::uint64_t place) {
    std::string_view owner;
    if (!owners.next(owner) || io::take_ordered(owner, 8) != place) io::fail_packed();
    const std::uint64_t part = io::take_ordered(owner, 4), first = io::take_ordered(owner, 8);
    const std::uint64_t bucket = io::take_ordered(owner, 8);
    std::string line = ordered_bytes({{part, 4}, {first, 8}, {place, 8}});
    line += video.line;
    if (video.bytes) line += fmt::format(",\"bytes\":{}", *video.bytes);
    line += fmt::format(",\"place\":{}", place);
    if (bucket > 0) line += fmt::format(",\"bucket\":{}", before_.buckets + bucket - 1);
    io::put_number(line += "}\n", video.bytes.value_or(0));
    lines_->add(line);
  });
  owners_.reset();
}

void ListMaker::write(int parts, const PartLease& lease, ListFacts& facts) {
  io::Sorter::Stream lines = lines_->sorted();
  std::string_view line;
  bool more = lines.next(line);
  for (int part = 0; part < parts; ++part) {
    const int number = before_.parts + part;
    ListFacts::NewPart made{number};
    const std::string id = "list-" + part_name(number);
    io::TextWriter file(list_path(options_.directory, number));
    file.add(dump_json(io::begin_record("vfm-clip", id, io::working_folder())) + "\n");
    for (; more; more = lines.next(line)) {
      std::string_view rest = line;
      if (io::take_ordered(rest, 4) != static_cast<std::uint64_t>(part)) break;
      rest.remove_prefix(16);
      const std::size_t end = rest.find('\n') + 1;
      file.add(rest.substr(0, end));
      rest.remove_prefix(end);
      ++made.videos;
      made.bytes += io::take_number(rest);
    }
    file.add(dump_json(io::end_record(id, made.videos, Json::object(), 0)) + "\n");
    if (lease.lost())  // Then this may be a file of the other process's list.
      fail("another process changes the list of '{}'; give the same command again",
           options_.directory);
    file.commit();
    facts.made.push_back(made);
  }
}

void ListMaker::make(int parts, const PartLease& lease, ListFacts& facts) {
  weigh();
  assign(parts);
  assign_small();
  sort_lines();
  write(parts, lease, facts);
}

ClipList parse_list(const Json& json, const std::string& what) {
  const auto number = [&](const char* name) {
    const std::int64_t value = need_integer(json, name, what);
    if (value < 0) fail("'{}' of {} is below 0", name, what);
    return static_cast<std::uint64_t>(value);
  };
  if (number("version") != 1) fail("{} has a version that this vfm does not read", what);
  ClipList list;
  list.parts = static_cast<int>(std::min<std::uint64_t>(number("parts"), kMostParts));
  list.shard_bytes = number("shard_bytes");
  list.buckets = number("buckets");
  list.videos = number("videos");
  list.bytes = number("bytes");
  list.digits = static_cast<int>(number("digits"));
  return list;
}

/// Waits for the right to change the list. Throws Error if a living process has it.
std::unique_ptr<PartLease> hold_list(io::Store& store) {
  LeaseWatch watch;
  for (;;) {
    const LeaseTimes times;
    if (auto lease = PartLease::claim(store, kListFolder, times, watch, io::ProcessName::self()))
      return lease;
    const std::optional<LeaseFacts> other = find_lease(store, kListFolder);
    if (other && watch.see(kListFolder, *other) == LeaseWatch::Sign::alive)
      fail("process {} on {} changes the list since {}; wait for it, or end it", other->process.pid,
           other->process.host, other->begun);
    check_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

/// Removes files of parts that the list does not have, and temporary files. A killed process leaves
/// them.
void remove_leftovers(io::Store& store, int parts) {
  store.sweep("");
  store.sweep(kListFolder);
  for (const std::string& name : store.list(kListFolder)) {
    int part = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data(), end, part);
    if (error == std::errc() && std::string_view(rest, end) == ".jsonl" && part >= parts)
      store.remove(std::string(kListFolder) + "/" + name);
  }
}

/// Returns the number of parts of this call.
int choose_parts(const ListOptions& options, const ClipList& before, std::uint64_t weight) {
  if (options.parts > 0) return options.parts;
  if (before.parts == 0) fail_usage("say how many parts the list has: -n N");
  const double earlier = static_cast<double>(before.bytes) +
                         static_cast<double>(before.videos * video_weight(before.shard_bytes));
  const double mean = std::max(1.0, earlier / static_cast<double>(before.parts));
  return static_cast<int>(
      std::clamp(std::ceil(static_cast<double>(weight) / mean), 1.0, double{kMostParts}));
}

}  // namespace

ListFacts write_list(const ListOptions& options, const io::OnFault& on_bad, Progress& progress) {
  const std::unique_ptr<io::Store> open = open_leases(options.directory);
  io::Store& store = *open;
  if (options.parts == 0 && !store.facts(kListFile)) choose_parts(options, {}, 0);
  const std::unique_ptr<PartLease> lease = hold_list(store);
  const std::optional<io::Store::Object> found = store.read(kListFile);
  Json json = {{"version", 1}};
  ClipList list;
  if (found) {
    const std::string what = "'" + parts_path(options.directory, kListFile) + "'";
    json = parse_json(found->contents, what);
    list = parse_list(json, what);
  }
  if (options.shard_bytes > 0 && found && options.shard_bytes != list.shard_bytes)
    fail_usage("the list of '{}' is for shards of {} bytes; leave out --shard-size",
               options.directory, list.shard_bytes);
  if (!found) list.shard_bytes = options.shard_bytes > 0 ? options.shard_bytes : kShardBytes;
  remove_leftovers(store, list.parts);

  ListMaker maker(options, parts_path(options.directory, kListFolder), list, list.shard_bytes);
  maker.read(on_bad, progress);
  const std::uint64_t videos = maker.count();
  ListFacts facts{list.parts, {}, maker.known()};
  if (videos == 0 && !found) fail("the input has no videos; no list is written");
  if (videos == 0) return facts;
  const int parts = choose_parts(options, list, maker.total_weight());
  if (parts > kMostParts - list.parts) fail("a list has at most {} parts", kMostParts);
  maker.make(parts, *lease, facts);

  facts.parts = list.parts + parts;
  json["parts"] = facts.parts;
  json["shard_bytes"] = list.shard_bytes;
  json["buckets"] = list.buckets + maker.buckets();
  json["videos"] = list.videos + videos;
  json["bytes"] = list.bytes + maker.bytes();
  // What is listed later must not move what is there.
  if (!found)
    json["digits"] = subfolder_digits({.shard_bytes = list.shard_bytes,
                                       .buckets = maker.buckets(),
                                       .videos = videos,
                                       .bytes = maker.bytes()});
  json["appended"].push_back({{"parts", parts},
                              {"buckets", maker.buckets()},
                              {"videos", videos},
                              {"bytes", maker.bytes()}});
  const std::string text = dump_json(json) + "\n";
  const bool written =
      found ? store.replace(kListFile, text, found->version) : store.create(kListFile, text);
  if (!written || lease->lost())
    fail("another process has changed the list of '{}'; give the same command again",
         options.directory);
  return facts;
}

std::optional<ClipList> read_list(const std::string& directory) {
  const std::optional<io::Store::Object> found = open_parts(directory)->read(kListFile);
  if (!found) return std::nullopt;
  const std::string what = "'" + parts_path(directory, kListFile) + "'";
  return parse_list(parse_json(found->contents, what), what);
}

int subfolder_digits(const ClipList& list) {
  // A unit has a shard for each shard_bytes, and at least one. A shard has about twelve files: its
  // tar, indexes and json, and as many of two columns. Larger videos than a bucket takes are at
  // least a sixteenth of a shard.
  constexpr double kFiles = 12, kMost = 10'000;
  const double shards = static_cast<double>(list.bytes) / static_cast<double>(list.shard_bytes);
  const double units =
      static_cast<double>(list.buckets) + std::min(static_cast<double>(list.videos), 16 * shards);
  int digits = 2;
  for (double folders = 256; folders * kMost < kFiles * (units + shards) && digits < 6; ++digits)
    folders *= 16;
  return digits;
}

std::string list_path(const std::string& directory, int part) {
  return io::join_path(directory, "parts/list/" + part_name(part) + ".jsonl");
}

std::uint64_t bucket_fill(std::uint64_t bytes, std::size_t path_bytes, std::uint64_t shard_bytes) {
  // The paths of a bucket may be in one line of a manifest.
  return bytes + video_weight(shard_bytes) + path_bytes * (shard_bytes >> 20);
}

std::uint64_t count_buckets(std::uint64_t fills, std::uint64_t shard_bytes) {
  const std::uint64_t mean = std::max<std::uint64_t>(1, shard_bytes / kBucketPart);
  return fills / mean + (fills % mean != 0);
}

std::uint64_t bucket_of(std::string_view path, std::uint64_t buckets) {
  return xxh3_64(path.data(), path.size()) % buckets;
}

}  // namespace vfm::parts
