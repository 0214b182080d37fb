// SPDX-License-Identifier: Apache-2.0
#include "data/clips.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "io/file.h"
#include "shard/dataset_meta.h"
#include "shard/finished_dataset.h"
#include "shard/media_members.h"
#include "shard/reader.h"

namespace vfm::data {
namespace {

bool is_of_split(const io::Record& record, const std::string& split) {
  return get_string(record.json, "split").value_or("train") == split;
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

}  // namespace

struct ClipSet::State {
  using Reader = std::shared_ptr<const shard::IndexedReader>;
  static constexpr std::size_t kOpenShards = 64;  // more tars are not held open at once

  std::vector<std::string> tars;
  std::vector<Clip> clips;
  Json info;

  std::mutex mutex;                                // guards open
  std::list<std::pair<std::size_t, Reader>> open;  // the last used first

  void add_shard(const std::string& tar) {
    std::int64_t row = 0;
    shard::for_each_indexed(tar, [&](const shard::IndexedSample& sample) {
      Clip clip{sample.key, tars.size(), row++, false};
      for (const shard::IndexedMember& member : sample.members)
        if (shard::is_media_extension(member.extension)) {
          clip.still = shard::is_still_extension(member.extension);
          break;
        }
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

ClipSet::ClipSet(const std::string& directory, const std::string& split)
    : state_(std::make_unique<State>()) {
  Json shards = Json::array();
  for (const auto& [name, record] : shard::planned_shards(directory)) {
    if (!is_of_split(record, split)) continue;
    shards.push_back({{"path", name}, {"xxh3", record.json.value("xxh3", Json())}});
    try {
      state_->add_shard(record.path());
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

const std::vector<Clip>& ClipSet::clips() const {
  return state_->clips;
}
const Json& ClipSet::info() const {
  return state_->info;
}

ClipPixels ClipSet::read(std::size_t i, const ClipOptions& options) const {
  const Clip& clip = state_->clips.at(i);
  const std::string what = fmt::format("sample '{}' of '{}'", clip.key, state_->tars[clip.shard]);
  const State::Reader reader = state_->reader_of(clip.shard);
  if (clip.row >= reader->samples())
    fail("{}: the shard has only {} samples", what, reader->samples());
  const shard::Sample sample = reader->read(clip.row);
  if (sample.key != clip.key) fail("{}: the shard has '{}' there", what, sample.key);
  for (const shard::Member& member : sample.members)
    if (shard::is_media_extension(member.extension)) {
      check_media(sample, member, what);
      ClipPixels pixels = clip_pixels(member.data, what, clip.key, options);
      pixels.bytes = sample.bytes();
      return pixels;
    }
  fail("{} has no video and no picture", what);
}

}  // namespace vfm::data
