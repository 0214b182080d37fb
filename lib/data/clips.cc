// SPDX-License-Identifier: Apache-2.0
#include "data/clips.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/given_texts.h"
#include "data/open_shard.h"
#include "io/file.h"
#include "io/packed.h"
#include "io/remote/address.h"
#include "shard/dataset_meta.h"
#include "shard/finished_dataset.h"
#include "shard/media_index.h"
#include "shard/media_members.h"
#include "shard/reader.h"
#include "shard/sample_list.h"

namespace vfm::data {
namespace {

bool is_of_split(const io::Record& record, const std::string& split) {
  return get_string(record.json, "split").value_or("train") == split;
}

/// The one that vfm-shard hashed: it puts that first.
const shard::Member* first_media(const shard::Sample& sample) {
  const auto found = std::ranges::find_if(sample.members, [](const shard::Member& member) {
    return shard::is_media_extension(member.extension);
  });
  return found == sample.members.end() ? nullptr : &*found;
}

/// Throws Error unless the bytes are those that the sample's JSON has the hash of, if it has one.
void check_media(const shard::Sample& sample, const shard::Member& media, const std::string& what) {
  const std::string* text = sample.find("json");
  if (text == nullptr) return;
  const Json meta = parse_json(*text, "the JSON of " + what);
  const std::string known = get_string(meta, "media_xxh3").value_or("");
  if (known.empty()) return;
  if (const std::string found = hash_hex(media.data); found != known)
    fail("{}: its bytes are not those that vfm-shard wrote (hash {}, its JSON has {})", what, found,
         known);
}

/// The pixels of a sample that ClipSet::sample() gave; errors name it by `what`, too.
ClipPixels pixels_of(const shard::Sample& sample, const std::string& what,
                     const PixelOptions& options) {
  const shard::Member& media = *first_media(sample);
  try {
    return clip_pixels(media.data, sample.key + "." + media.extension, sample.key, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime) throw;
    fail_as(error.cause(), "{}: {}", what, error.what());
  }
}

/// What the dataset's index says of a member.
ClipFacts facts_of(const Json& json) {
  ClipFacts facts;
  if (!json.is_object()) return facts;
  const auto number = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const auto whole = [&](const char* name) {
    return static_cast<int>(std::clamp(number(name), 0.0, 1e9));
  };
  const bool video = json.contains("video_num_frames");
  facts.frames = video ? whole("video_num_frames") : json.contains("format") ? 1 : 0;
  facts.width = whole(video ? "video_width" : "width");
  facts.height = whole(video ? "video_height" : "height");
  facts.seconds = number("video_duration");
  facts.fps = number("video_fps");
  return facts;
}

void add_facts(StoredClip& clip, const shard::IndexedSample& sample, const TextColumns& texts,
               shard::MediaIndex& index) {
  for (const shard::IndexedMember& member : sample.members)
    if (shard::is_media_extension(member.extension)) {
      clip.facts = facts_of(index.find(sample.key, member.extension));
      break;
    }
  for (const std::string& column : texts.names)
    for (const shard::IndexedMember& member : sample.members) {
      const auto bytes = static_cast<std::int64_t>(member.size);
      if (member.extension == embedding_member(column))
        clip.embedding_bytes = std::max(clip.embedding_bytes, bytes);
      if (member.extension == caption_member(column))
        clip.caption_bytes = std::max(clip.caption_bytes, bytes);
    }
}

}  // namespace

struct ClipSet::State {
  using Reader = std::shared_ptr<const OpenShard>;
  // More tars are not held open at once. An open object takes no descriptor.
  static constexpr std::size_t kOpenShards = 64, kOpenObjects = 4096;
  bool remote = false;

  std::vector<std::string> tars;
  std::vector<StoredClip> clips;
  std::int64_t rows = 0;  // of the last shard
  Json info = {{"clips", Json::array()}};

  std::mutex mutex;                                // guards open
  std::list<std::pair<std::size_t, Reader>> open;  // the last used first

  void begin_shard(const std::string& directory, const std::string& name, const Json& hash) {
    tars.push_back(io::join_path(directory, name));
    info["clips"].push_back({{"path", name}, {"xxh3", hash}});
    rows = 0;
  }
  /// The next sample of the shard that was begun last.
  void add(const shard::IndexedSample& sample, const ClipListing& listing,
           shard::MediaIndex* facts) {
    StoredClip clip{sample.key, tars.size() - 1, rows++, static_cast<std::int64_t>(sample.size)};
    for (const shard::IndexedMember& member : sample.members)
      if (shard::is_media_extension(member.extension)) {
        clip.still = shard::is_still_extension(member.extension);
        break;
      }
    if (facts != nullptr) add_facts(clip, sample, listing.texts, *facts);
    clips.push_back(std::move(clip));
  }

  std::string packed() const {
    std::string all;
    io::put_text(all, dump_json(info));
    for (const std::string& tar : tars)
      io::put_text(all, tar);
    for (const StoredClip& clip : clips) {
      io::put_text(all, clip.key);
      for (const std::int64_t number :
           {static_cast<std::int64_t>(clip.shard), clip.row, clip.bytes,
            std::int64_t{clip.still ? 1 : 0}, clip.facts.frames, std::int64_t{clip.facts.width},
            std::int64_t{clip.facts.height}, clip.embedding_bytes, clip.caption_bytes})
        io::put_number(all, static_cast<std::uint64_t>(number));
      io::put_real(all, clip.facts.seconds);
      io::put_real(all, clip.facts.fps);
    }
    return all;
  }

  void unpack(std::string_view all) {
    info = parse_json(std::string(io::take_text(all)), "the shards of a dataset");
    for (std::size_t i = 0; i < info["clips"].size(); ++i)
      tars.emplace_back(io::take_text(all));
    const auto number = [&] { return static_cast<std::int64_t>(io::take_number(all)); };
    while (!all.empty()) {
      StoredClip& clip = clips.emplace_back();
      clip.key = io::take_text(all);
      clip.shard = static_cast<std::size_t>(number());
      clip.row = number();
      clip.bytes = number();
      clip.still = number() != 0;
      clip.facts.frames = number();
      clip.facts.width = static_cast<int>(number());
      clip.facts.height = static_cast<int>(number());
      clip.embedding_bytes = number();
      clip.caption_bytes = number();
      clip.facts.seconds = io::take_real(all);
      clip.facts.fps = io::take_real(all);
    }
  }

  Reader find_open(std::size_t shard) {
    for (auto it = open.begin(); it != open.end(); ++it)
      if (it->first == shard) {
        open.splice(open.begin(), open, it);
        return it->second;
      }
    return nullptr;
  }

  Reader reader_of(std::size_t shard) {
    std::unique_lock lock(mutex);
    if (Reader reader = find_open(shard)) return reader;
    // Objects are opened several at once, as each of them takes many round trips.
    if (remote) lock.unlock();
    auto reader = std::make_shared<const OpenShard>(tars[shard]);
    if (!lock.owns_lock()) lock.lock();
    if (Reader other = find_open(shard)) return other;
    open.emplace_front(shard, reader);
    if (open.size() > (remote ? kOpenObjects : kOpenShards)) open.pop_back();
    return reader;
  }
};

ClipSet::ClipSet(const std::string& directory, const std::string& split, const ClipListing& listing)
    : state_(std::make_unique<State>()) {
  state_->remote = io::is_remote(directory);
  const auto* const given = GivenTexts::find(given_as(directory, split, listing));
  if (given != nullptr && *given) {
    state_->unpack(**given);
    return;
  }
  std::optional<shard::MediaIndex> facts;
  const auto open_facts = [&] {
    if (listing.facts && !facts) facts.emplace(directory);
  };
  const auto add = [&](const shard::IndexedSample& sample) {
    state_->add(sample, listing, facts ? &*facts : nullptr);
  };
  const std::string list = shard::sample_list_path(directory);
  if (io::file_exists(list)) {
    const std::vector<std::string> names = shard::planned_names(directory);
    std::size_t next = 0;
    const auto begin_shard = [&](const shard::DatasetShard& shard) {
      if (next == names.size() || shard.path != names[next++]) fail("it is of another plan");
      if (shard.split != split) return false;
      open_facts();
      state_->begin_shard(directory, shard.path, shard.xxh3);
      return true;
    };
    as_usage([&] { shard::read_sample_list(list, begin_shard, add); });
    if (next != names.size()) fail_usage("'{}' does not have all shards of the plan", list);
    return;
  }
  std::vector<shard::FinishedShard> planned = shard::planned_shards(directory);
  std::erase_if(planned, [&](const auto& one) { return !is_of_split(one.record, split); });
  if (!planned.empty()) open_facts();
  for (const shard::FinishedShard& shard : planned) {
    state_->begin_shard(directory, shard.name, shard.record.json->value("xxh3", Json()));
    as_usage([&] { shard::for_each_indexed(shard.record.path(), add); });
  }
}

std::string ClipSet::given_as(const std::string& directory, const std::string& split,
                              const ClipListing& listing) {
  return fmt::format("{} ({}) {}", io::join_path(directory, "clips of " + split),
                     listing.facts ? "sizes" : "keys", fmt::join(listing.texts.names, ","));
}

std::string ClipSet::packed() const {
  return state_->packed();
}

bool ClipSet::has_split(const std::string& directory, const std::string& split) {
  // Of a dataset of vfm-shard this says it without the notes of all shards.
  if (const std::string path = io::join_path(directory, "dataset.json"); exists_or_given(path)) {
    const Json json = parse_json(read_or_given(path), "'" + path + "'");
    const auto splits = json.is_object() ? json.find("splits") : json.end();
    if (splits != json.end() && splits->is_object())
      return splits->contains(split) && get_integer(splits->at(split), "samples").value_or(1) > 0;
  }
  return std::ranges::any_of(shard::dataset_records(directory), [&](const io::Record& record) {
    return is_of_split(record, split) && get_integer(record.json, "samples").value_or(1) > 0;
  });
}

ClipSet::~ClipSet() = default;
ClipSet::ClipSet(ClipSet&&) noexcept = default;

const std::vector<StoredClip>& ClipSet::clips() const {
  return state_->clips;
}
const Json& ClipSet::info() const {
  return state_->info;
}

std::string ClipSet::name(std::size_t i) const {
  const StoredClip& clip = state_->clips.at(i);
  return fmt::format("sample '{}' of '{}'", clip.key, state_->tars[clip.shard]);
}

bool ClipSet::is_remote() const {
  return state_->remote;
}

void ClipSet::fetch(std::span<SampleBytes> samples) const {
  std::map<std::size_t, std::vector<SampleBytes*>> of_shards;
  for (SampleBytes& one : samples)
    of_shards[clips().at(one.sample).shard].push_back(&one);
  for (const auto& [shard, own] : of_shards)
    fetch_or_fail(own, [&, number = shard](std::span<SampleBytes* const> some) {
      fetch_of_shard(number, some);
    });
}

void ClipSet::fetch_of_shard(std::size_t shard, std::span<SampleBytes* const> samples) const {
  const State::Reader open = state_->reader_of(shard);
  const shard::IndexedReader& reader = open->reader;
  std::vector<io::RemoteFile::Range> ranges;
  for (SampleBytes* const one : samples) {
    const std::int64_t row = clips().at(one->sample).row;
    const std::uint64_t begin = reader.offset(row), size = reader.size(row);
    if (open->object == nullptr) {
      one->bytes = reader.read_piece(row, 0, size);
      continue;
    }
    if (begin + size > open->object->size())
      fail("{}: the shard ends before it", name(one->sample));
    one->bytes.resize(size);
    ranges.push_back({begin, std::as_writable_bytes(std::span(one->bytes))});
  }
  if (!ranges.empty()) open->object->pread_all(ranges);
}

shard::Sample ClipSet::sample(std::size_t i, const std::string* fetched) const {
  const StoredClip& clip = state_->clips.at(i);
  const std::string what = name(i);
  const State::Reader open = state_->reader_of(clip.shard);
  if (clip.row >= open->reader.samples())
    fail("{}: the shard has only {} samples", what, open->reader.samples());
  shard::Sample sample =
      fetched ? open->reader.put_together(clip.row, *fetched) : open->reader.read(clip.row);
  if (sample.key != clip.key) fail("{}: the shard has '{}' there", what, sample.key);
  const shard::Member* const media = first_media(sample);
  if (media == nullptr) fail("{} has no video and no picture", what);
  check_media(sample, *media, what);
  return sample;
}

ClipPixels ClipSet::read(std::size_t i, const PixelOptions& options,
                         const std::string* fetched) const {
  const shard::Sample clip = sample(i, fetched);
  ClipPixels pixels = pixels_of(clip, name(i), options);
  pixels.bytes = clip.bytes();
  return pixels;
}

TextedClip ClipSet::read(std::size_t i, const PixelOptions& options, const TextColumns& texts,
                         double place, const std::string* fetched) const {
  const shard::Sample clip = sample(i, fetched);
  TextedClip read;
  read.pixels = pixels_of(clip, name(i), options);
  read.pixels.bytes = clip.bytes();
  try {
    read.text =
        choose_text(clip, sample_meta(clip), texts, place, {read.pixels.begin, read.pixels.end});
  } catch (const Error& error) {
    fail("{}: {}", name(i), error.what());
  }
  return read;
}

SampleText ClipSet::text(std::size_t i, const TextColumns& texts, double place) const {
  const shard::Sample clip = sample(i);
  return choose_text(clip, sample_meta(clip), texts, place);
}

}  // namespace vfm::data
