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
#include "shard/reader.h"

namespace vfm::data {
namespace {

constexpr std::string_view kVideos[] = {"mp4", "m4v",  "mov", "webm", "mkv", "avi", "ts",
                                        "mpg", "mpeg", "ogv", "flv",  "wmv", "gif"};
constexpr std::string_view kStills[] = {"jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff"};

struct PlannedShard {
  std::string name;  ///< its path as the plan has it: the same wherever the dataset lies
  io::Record record;
};

std::vector<PlannedShard> planned_shards(const std::string& directory) {
  const std::string plan_path = io::join_path(directory, "plan.json");
  std::vector<PlannedShard> shards;
  try {
    if (!io::file_exists(io::join_path(directory, "dataset.json")))
      fail("it has no dataset.json, which vfm-shard writes last");
    const Json plan = parse_json(io::read_file(plan_path), "'" + plan_path + "'");
    for (const Json& shard : plan.at("shards")) {
      const std::string name = need_string(shard, "path", "the plan");
      const std::string path = io::join_path(directory, name);
      const std::string notes = path.substr(0, path.size() - 4) + ".json";
      const Json facts = parse_json(io::read_file(notes), "'" + notes + "'");
      Json record = {{"kind", "shard"}, {"path", path}};
      for (const auto& [key, value] : facts.items())
        if (key != "kind" && key != "path" && key != "plan") record[key] = value;
      shards.push_back({name, {"shard", std::move(record), "'" + plan_path + "'"}});
    }
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception& error) {
    fail_usage("'{}' is not a finished dataset of vfm-shard: {}", directory, error.what());
  }
  return shards;
}

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

bool is_still_extension(std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  return std::ranges::find(kStills, last) != std::end(kStills);
}

bool is_media_extension(std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  return std::ranges::find(kVideos, last) != std::end(kVideos) || is_still_extension(last);
}

std::vector<io::Record> dataset_records(const std::string& directory) {
  std::vector<io::Record> records;
  for (PlannedShard& shard : planned_shards(directory))
    records.push_back(std::move(shard.record));
  return records;
}

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
        if (is_media_extension(member.extension)) {
          clip.still = is_still_extension(member.extension);
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
  for (const auto& [name, record] : planned_shards(directory)) {
    if (!is_of_split(record, split)) continue;
    shards.push_back({{"path", name}, {"xxh3", record.json.value("xxh3", Json())}});
    try {
      state_->add_shard(record.path());
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      throw Error(error.what(), ErrorKind::usage);
    }
  }
  state_->info = {{"clips", std::move(shards)}};
}

bool ClipSet::has_split(const std::string& directory, const std::string& split) {
  return std::ranges::any_of(dataset_records(directory), [&](const io::Record& record) {
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
    if (is_media_extension(member.extension)) {
      check_media(sample, member, what);
      return clip_pixels(member.data, what, clip.key, options);
    }
  fail("{} has no video and no picture", what);
}

}  // namespace vfm::data
