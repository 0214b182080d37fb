// SPDX-License-Identifier: Apache-2.0
#include "data/clips.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "shard/dataset_meta.h"
#include "shard/finished_dataset.h"
#include "shard/media_index.h"
#include "shard/media_members.h"
#include "shard/reader.h"

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
  using Reader = std::shared_ptr<const shard::IndexedReader>;
  static constexpr std::size_t kOpenShards = 64;  // more tars are not held open at once

  std::vector<std::string> tars;
  std::vector<StoredClip> clips;
  Json info;

  std::mutex mutex;                                // guards open
  std::list<std::pair<std::size_t, Reader>> open;  // the last used first

  void add_shard(const std::string& tar, const ClipListing& listing, shard::MediaIndex* facts) {
    std::int64_t row = 0;
    shard::for_each_indexed(tar, [&](const shard::IndexedSample& sample) {
      StoredClip clip{sample.key, tars.size(), row++, false};
      for (const shard::IndexedMember& member : sample.members)
        if (shard::is_media_extension(member.extension)) {
          clip.still = shard::is_still_extension(member.extension);
          break;
        }
      if (facts != nullptr) add_facts(clip, sample, listing.texts, *facts);
      clips.push_back(std::move(clip));
    });
    tars.push_back(tar);
  }

  Reader reader_of(std::size_t shard) {
    const std::lock_guard lock(mutex);
    for (auto it = open.begin(); it != open.end(); ++it)
      if (it->first == shard) {
        open.splice(open.begin(), open, it);
        return it->second;
      }
    open.emplace_front(shard, std::make_shared<const shard::IndexedReader>(tars[shard]));
    const Reader reader = open.front().second;
    if (open.size() > kOpenShards) open.pop_back();
    return reader;
  }
};

ClipSet::ClipSet(const std::string& directory, const std::string& split, const ClipListing& listing)
    : state_(std::make_unique<State>()) {
  Json shards = Json::array();
  std::optional<shard::MediaIndex> facts;
  for (const auto& [name, record] : shard::planned_shards(directory)) {
    if (!is_of_split(record, split)) continue;
    if (listing.facts && !facts) facts.emplace(directory);
    shards.push_back({{"path", name}, {"xxh3", record.json->value("xxh3", Json())}});
    try {
      state_->add_shard(record.path(), listing, facts ? &*facts : nullptr);
    } catch (const Error& error) {
      throw Error(error.what(), ErrorKind::usage);
    }
  }
  state_->info = {{"clips", std::move(shards)}};
}

bool ClipSet::has_split(const std::string& directory, const std::string& split) {
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

shard::Sample ClipSet::sample(std::size_t i) const {
  const StoredClip& clip = state_->clips.at(i);
  const std::string what = name(i);
  const State::Reader reader = state_->reader_of(clip.shard);
  if (clip.row >= reader->samples())
    fail("{}: the shard has only {} samples", what, reader->samples());
  shard::Sample sample = reader->read(clip.row);
  if (sample.key != clip.key) fail("{}: the shard has '{}' there", what, sample.key);
  const shard::Member* const media = first_media(sample);
  if (media == nullptr) fail("{} has no video and no picture", what);
  check_media(sample, *media, what);
  return sample;
}

ClipPixels ClipSet::read(std::size_t i, const PixelOptions& options) const {
  const shard::Sample clip = sample(i);
  ClipPixels pixels = pixels_of(clip, name(i), options);
  pixels.bytes = clip.bytes();
  return pixels;
}

TextedClip ClipSet::read(std::size_t i, const PixelOptions& options, const TextColumns& texts,
                         double place) const {
  const shard::Sample clip = sample(i);
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
