// SPDX-License-Identifier: Apache-2.0
#include "clip/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "io/file.h"

namespace vfm::clip {
namespace {

constexpr std::size_t kMostImages = 10000;  // in one batch: its list is held in memory

}  // namespace

std::string store_name(const ClipItem& item) {
  if (item.kind != ClipItem::Kind::images) return item.sources.at(0).hash.substr(0, 16);
  std::string hashes;
  for (const ClipSource& source : item.sources)
    hashes += source.hash;
  return hash_hex(hashes).substr(0, 16);
}

std::string image_extension(const std::string& path) {
  const std::string extension = io::extension(path);
  if (extension == "jpg" || extension == "jpeg") return "jpg";
  if (extension == "tif" || extension == "tiff") return "tiff";
  if (extension == "png" || extension == "webp" || extension == "bmp") return extension;
  return "";
}

bool is_animation(std::string_view head) {
  if (head.starts_with("RIFF") && head.size() > 20 && head.substr(8, 8) == "WEBPVP8X")
    return (head[20] & 2) != 0;
  // PNG: a chunk acTL among those before the first data.
  if (!head.starts_with("\x89PNG\r\n")) return false;
  const std::size_t control = head.find("acTL");
  return control != std::string_view::npos && control < head.find("IDAT");
}

int decoder_threads(const std::vector<std::string>& inputs, int slots) {
  for (const std::string& input : inputs) {
    const std::string extension = io::extension(input);
    // How many a list holds is not known before its end; two threads each do little harm.
    if (input == "-" || input == io::kNames || extension == "jsonl" || extension == "ndjson")
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

/// False if there are none.
bool ClipItems::take_spans(ClipSource& source) {
  source.spans = spans_->take(source.path);
  return source.spans != nullptr;
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
    path = source.path = record.path();
    const bool video = image_extension(path).empty();
    if (spans_ && video && !take_spans(source)) return without_spans(path);
    if (!identify_) return {Kind::video, {std::move(source)}, {}, {}};
    if (io::is_url(path)) {
      source.hash = hash_hex(path);
    } else {
      const io::File file = io::File::open_regular(path);
      source.bytes = file.size();
      std::string head(std::min<std::uint64_t>(source.bytes, 1 << 16), '\0');
      file.pread_exact(head.data(), head.size(), 0);
      moves = is_animation(head);
      if (spans_ && !video && moves && !take_spans(source)) return without_spans(path);
      source.hash = io::hash_file(path);
    }
  } catch (const Error& error) {
    return {Kind::bad, {}, path.empty() ? record.where : path, error.what(), error.cause()};
  }
  if (const auto first = seen_.put(source.hash, path))
    return {Kind::duplicate, {}, path, fmt::format("has the same contents as '{}'", *first)};
  const bool image = !image_extension(path).empty() && !moves;
  return {image ? Kind::images : Kind::video, {std::move(source)}, {}, {}};
}

/// False at the end. Bad lines before the next record come first.
bool ClipItems::read_more() {
  const std::optional<io::Record> record = reader_.next();
  if (record) ready_.push_back(classify(*record));
  return !ready_.empty();
}

std::optional<ClipItem> ClipItems::next() {
  if (ready_.empty() && !read_more()) return std::nullopt;
  ClipItem item = std::move(ready_.front());
  ready_.pop_front();
  if (item.kind != ClipItem::Kind::images) return item;
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
  return item;
}

}  // namespace vfm::clip
