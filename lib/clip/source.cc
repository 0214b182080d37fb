// SPDX-License-Identifier: Apache-2.0
#include "clip/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "clip/store/listed.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/places.h"
#include "io/remote/address.h"
#include "media/far_source.h"

namespace vfm::clip {
namespace {

constexpr std::size_t kMostImages = 10000;  // in a batch, whose list is in memory
// Divisors of a batch's maximum size. They give the maximum size of a small video, the minimum size
// of a batch, and the weight that each video has in addition to its bytes.
constexpr std::uint64_t kSmallPart = 16, kLeastPart = 4, kVideoPart = 4096;

/// Returns the weight of a video in a batch of at most `most`. The path counts because all paths of
/// a batch are in one line of the manifest.
std::uint64_t weight_of(const ClipSource& source, std::uint64_t most) {
  return source.bytes + std::max<std::uint64_t>(1, most / kVideoPart) +
         source.path.size() * (most >> 20);
}

/// Returns true if a batch ends with this video. The probability is `weight` / `least`.
bool ends_batch(const ClipSource& source, std::uint64_t weight, std::uint64_t least) {
  const std::uint64_t drawn = std::stoull(source.hash.substr(0, 8), nullptr, 16);
  return static_cast<double>(drawn) * static_cast<double>(least) <
         static_cast<double>(weight) * 0x1p32;
}

void refuse_folder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return;
  fail_as(Cause::open,
          "'{}' is a folder, not a video; for the videos in it: find '{}' -type f | vfm-clip ...",
          path, path);
}

std::shared_ptr<io::RemoteFile> open_object(const std::string& path) {
  const auto refuse_prefix = [&] {
    fail_as(Cause::open, "'{}' is a folder, not a video; list the videos in it for vfm-clip", path);
  };
  if (io::is_bucket(path) && path.ends_with('/')) refuse_prefix();
  try {
    return media::open_far_source(path);
  } catch (const Error& error) {
    if (io::is_bucket(path) && error.cause() == Cause::open && io::is_folder(path)) refuse_prefix();
    throw;
  }
}

/// Returns up to `most` bytes of the beginning of an object.
std::string head_of(const std::shared_ptr<io::RemoteFile>& object, std::size_t most) {
  io::RemoteReader reader(object, most);
  std::string head(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const std::size_t got = reader.read_some(head.data() + size, most - size);
    if (got == 0) break;
    size += got;
  }
  head.resize(size);
  return head;
}

}  // namespace

std::string store_name(const ClipItem& item) {
  const bool joined = item.kind == ClipItem::Kind::joined;
  if (item.kind != ClipItem::Kind::images && !joined) return item.sources.at(0).hash.substr(0, 16);
  std::string hashes;
  for (const ClipSource& source : item.sources)
    hashes += source.hash;
  return (joined ? std::string(kJoinedName) : std::string()) + hash_hex(hashes).substr(0, 16);
}

std::string image_extension(const std::string& path) {
  const bool query = io::is_remote(path) && !io::is_bucket(path);
  const std::string extension =
      io::extension(query ? path.substr(0, path.find_first_of("?#")) : path);
  if (extension == "jpg" || extension == "jpeg") return "jpg";
  if (extension == "tif" || extension == "tiff") return "tiff";
  if (extension == "png" || extension == "webp" || extension == "bmp") return extension;
  return "";
}

bool is_animation(std::string_view head) {
  if (head.starts_with("RIFF") && head.size() > 20 && head.substr(8, 8) == "WEBPVP8X")
    return (head[20] & 2) != 0;
  // An animated PNG has a chunk acTL before the first IDAT.
  if (!head.starts_with("\x89PNG\r\n")) return false;
  const std::size_t control = head.find("acTL");
  return control != std::string_view::npos && control < head.find("IDAT");
}

int decoder_threads(const std::vector<std::string>& inputs, int slots) {
  for (const std::string& input : inputs) {
    // The length of a list is unknown. Two threads for each decoder do little harm.
    if (input == "-" || input == io::kNames || io::is_manifest_name(input))
      return std::min(2, slots);
  }
  const int count = static_cast<int>(std::min<std::size_t>(inputs.size(), 1000));
  return std::clamp(slots / std::max(count, 1), 1, 16);
}

ClipItems::ClipItems(std::vector<std::string> inputs, std::uint64_t batch_bytes,
                     const std::string& folder)
    : reader_(
          std::move(inputs),
          [this](const io::Fault& fault) {
            ready_.push_back({ClipItem::Kind::bad, {}, fault.input, fault.message, fault.cause});
          }),
      batch_bytes_(batch_bytes),
      identify_(!folder.empty()),
      seen_(folder) {}

static ClipItem without_spans(const std::string& path) {
  return {ClipItem::Kind::duplicate,
          {},
          path,
          "has no span in the files of --spans",
          Cause::missing,
          true};
}

bool ClipItems::take_spans(ClipSource& source) {
  source.spans = spans_->take(source.path);
  return source.spans != nullptr;
}

/// Fills in what the contents tell, and the spans of an animation. Returns true if a picture moves.
bool ClipItems::identify(ClipSource& source, bool video) {
  constexpr std::uint64_t kHead = 1 << 16;
  const auto check_motion = [&](std::string_view head) {
    if (video || !is_animation(head)) return false;
    if (spans_) take_spans(source);
    return true;
  };
  if (!io::is_url(source.path)) {
    io::File file = io::File::open_regular(source.path);
    source.bytes = file.size();
    std::string head(video ? 0 : std::min(source.bytes, kHead), '\0');
    file.pread_exact(head.data(), head.size(), 0);
    const bool moves = check_motion(head);
    if (!moves || !spans_ || source.spans)
      source.hash = ledger_ ? ledger_->hash(file) : io::hash_file(file);
    return moves;
  }
  if (io::is_remote(source.path)) source.object = open_object(source.path);
  source.endless = !source.object;
  if (source.endless) {
    source.hash = hash_hex(source.path);
    return false;
  }
  source.bytes = source.object->size();
  const auto hash_of = [&] {
    io::File file = io::File::of(source.object);
    if (ledger_) return ledger_->hash(file);
    return source.object->stored_hash().empty() ? io::hash_file(file)
                                                : source.object->stored_hash();
  };
  const bool moves = !video && check_motion(head_of(source.object, std::min(source.bytes, kHead)));
  if (!moves || !spans_ || source.spans) source.hash = hash_of();
  return moves;
}

ClipItem ClipItems::classify(const io::Record& record) {
  using Kind = ClipItem::Kind;
  ClipSource source;
  source.record = record.json;
  if (record.kind != "video" && record.kind != "image")
    return {Kind::passed, {std::move(source)}, {}, {}};
  std::string path;
  bool moves = false;
  try {
    path = record.path();
    // Processes that do a part may have other working folders.
    if (listed_) path = io::named_from(io::working_folder(), path);
    source.path = path;
    refuse_folder(path);
    const bool video = image_extension(path).empty();
    if (spans_ && video && !take_spans(source)) return without_spans(path);
    if (!identify_) return {Kind::video, {std::move(source)}, {}, {}};
    moves = identify(source, video);
    if (spans_ && moves && !source.spans) return without_spans(path);
  } catch (const Error& error) {
    io::Fault fault(path.empty() ? record.where : path, error);
    if (listed_) fault = settled(std::move(fault));
    return {Kind::bad, {}, fault.input, fault.message, fault.cause};
  }
  if (const auto first = earlier_path(source.hash, path))
    return {Kind::duplicate,
            {std::move(source)},
            path,
            fmt::format("has the same contents as '{}'", *first)};
  const bool image = !image_extension(path).empty() && !moves;
  return {image ? Kind::images : Kind::video, {std::move(source)}, {}, {}};
}

/// Returns the path of the first file with these contents, or nullopt if this file is the first.
std::optional<std::string> ClipItems::earlier_path(const std::string& hash,
                                                   const std::string& path) {
  if (!listed_) return seen_.put(hash, path);
  if (!bucket_) return std::nullopt;
  const auto [at, added] = seen_in_bucket_.emplace(hash, path);
  return added ? std::nullopt : std::optional(at->second);
}

void ClipItems::enter(std::optional<std::int64_t> bucket) {
  if (bucket != bucket_) seen_in_bucket_.clear();
  bucket_ = bucket;
}

/// Returns false at the end of the input. Items for invalid lines come before the next record.
bool ClipItems::read_more() {
  if (ended_) return false;
  const std::optional<io::Record> record = reader_.next();
  if (record) {
    if (listed_) enter(get_integer(record->json, "bucket"));
    ready_.push_back(classify(*record));
    ready_.back().bucket = bucket_;
  }
  ended_ = ready_.empty();
  return !ended_;
}

/// Returns true if the video may join a batch. A video whose record has more fields may not,
/// because a shard of several videos would lose the fields.
bool ClipItems::is_small(const ClipItem& item) {
  if (item.kind != ClipItem::Kind::video || !join_after_) return false;
  const ClipSource& source = item.sources[0];
  return ++videos_ > *join_after_ && source.bytes <= batch_bytes_ / kSmallPart && !source.endless &&
         source.record->size() == 2;
}

/// Adds a small video to the batch. Returns true if `item` is now a complete batch.
bool ClipItems::gather(ClipItem& item) {
  ClipSource source = std::move(item.sources[0]);
  const std::uint64_t weight = weight_of(source, batch_bytes_), least = batch_bytes_ / kLeastPart;
  const bool full = !batch_.sources.empty() && batch_weight_ + weight > batch_bytes_;
  const auto take_batch = [&] {
    item = std::exchange(batch_, {ClipItem::Kind::joined, {}, {}, {}});
    batch_weight_ = 0;
  };
  if (full) take_batch();
  batch_weight_ += weight;
  const bool ends = !full && batch_weight_ >= least && ends_batch(source, weight, least);
  batch_.sources.push_back(std::move(source));
  if (ends) take_batch();
  return full || ends;
}

void ClipItems::gather_images(ClipItem& item) {
  const std::string extension = image_extension(item.sources[0].path);
  std::uint64_t bytes = item.sources[0].bytes;
  while (!ready_.empty() || read_more()) {
    const ClipItem& after = ready_.front();
    if (after.kind != ClipItem::Kind::images || item.sources.size() == kMostImages ||
        image_extension(after.sources[0].path) != extension ||
        bytes + after.sources[0].bytes > batch_bytes_)
      break;
    bytes += after.sources[0].bytes;
    item.sources.push_back(after.sources[0]);
    ready_.pop_front();
  }
}

/// Puts the items of a bucket, of which `first` is the first, into units_: the videos, then the
/// pictures by format, then what is no source. So the units do not depend on the order of videos
/// and pictures.
void ClipItems::gather_bucket(ClipItem&& first) {
  const std::optional<std::int64_t> bucket = first.bucket;
  ClipItem videos{ClipItem::Kind::joined, {}, {}, {}};
  std::map<std::string, std::deque<ClipItem>> pictures;  // by extension
  std::deque<ClipItem> others;
  const auto add = [&](ClipItem&& item) {
    if (item.kind == ClipItem::Kind::video) {
      videos.sources.push_back(std::move(item.sources[0]));
    } else if (item.kind == ClipItem::Kind::images) {
      std::deque<ClipItem>& batches = pictures[image_extension(item.sources[0].path)];
      if (batches.empty() || batches.back().sources.size() == kMostImages)
        batches.push_back(std::move(item));
      else
        batches.back().sources.push_back(std::move(item.sources[0]));
    } else {
      others.push_back(std::move(item));
    }
  };
  for (add(std::move(first)); !ready_.empty() || read_more(); ready_.pop_front()) {
    if (ready_.front().bucket != bucket) break;
    add(std::move(ready_.front()));
  }
  // Otherwise the unit would be made without this source, and later again with it.
  const bool waits = std::any_of(others.begin(), others.end(), [](const ClipItem& item) {
    return item.kind == ClipItem::Kind::bad &&
           is_of_machine({item.input, item.message, item.cause});
  });
  if (waits) return void(units_ = std::move(others));
  if (!videos.sources.empty()) units_.push_back(std::move(videos));
  for (auto& [extension, batches] : pictures)
    std::move(batches.begin(), batches.end(), std::back_inserter(units_));
  std::move(others.begin(), others.end(), std::back_inserter(units_));
}

std::optional<ClipItem> ClipItems::next_of_list() {
  while (units_.empty()) {
    if (ready_.empty() && !read_more()) return std::nullopt;
    ClipItem item = std::move(ready_.front());
    ready_.pop_front();
    if (!item.bucket) return item;
    gather_bucket(std::move(item));
  }
  ClipItem unit = std::move(units_.front());
  units_.pop_front();
  return unit;
}

std::optional<ClipItem> ClipItems::next() {
  if (listed_) return next_of_list();
  while (!ready_.empty() || read_more()) {
    ClipItem item = std::move(ready_.front());
    ready_.pop_front();
    if (is_small(item) && !gather(item)) continue;
    if (item.kind == ClipItem::Kind::images) gather_images(item);
    return item;
  }
  if (batch_.sources.empty()) return std::nullopt;
  return std::exchange(batch_, {ClipItem::Kind::joined, {}, {}, {}});
}

}  // namespace vfm::clip
