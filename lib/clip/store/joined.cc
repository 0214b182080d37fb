// SPDX-License-Identifier: Apache-2.0
#include "clip/store/joined.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "clip/store/clip_output.h"
#include "io/file.h"
#include "io/folder.h"
#include "shard/writer.h"

namespace vfm::clip {

std::string hash_of_spans(const ClipSource& source) {
  if (!source.spans) return {};
  std::string text;
  for (const GivenSpan& span : *source.spans)
    text += span.text();
  return hash_hex(text);
}

KeptClips ClipPart::begin(bool) {
  places_.clear();
  keys_.clear();
  return {};
}

/// Checks the sample now, so that an invalid sample fails its video and not the whole batch.
void ClipPart::add(const shard::Sample& sample) {
  shard::check_sample(shard::view_of(sample));
  if (!keys_.insert(sample.key).second)
    fail_as(Cause::duplicate, "two clips have the key '{}'", sample.key);
  places_.push_back(parts_.add(sample));
}

Json ClipPart::finish(Json summary) {
  summary.erase("kind");
  summary_ = std::move(summary);
  return summary_;
}

void ClipPart::end(const ClipSource& video) {
  Json entry = std::move(summary_);
  entry["clips"] = places_.size();
  if (std::string spans = hash_of_spans(video); !spans.empty()) entry["spans"] = std::move(spans);
  end(video, entry);
}

void ClipPart::end(const ClipSource& video, const Json& entry) {
  parts_.end(video.hash, entry, std::move(places_));
}

Joined::Joined(const ClipItem& batch, const ClipOptions& options, const Json& settings,
               EarlierClips& earlier)
    : sources_(batch.sources),
      force_(options.force),
      readable_(options.readable_names),
      listed_(options.part),
      settings_(settings),
      earlier_(earlier) {
  std::string spans;
  for (const ClipSource& source : sources_)
    spans += hash_of_spans(source);
  if (!spans.empty()) settings_["spans"] = hash_hex(spans);
  place_ = store_place(options, batch, settings_);
  store_ = open_store(options, place_, settings_);
}

bool Joined::is_of_this(const Json& found) const {
  return found.contains("sources") && found.at("sources").is_array() &&
         found.at("sources").size() == size();
}

/// Returns the failed videos of an earlier run that are tried again.
std::vector<std::size_t> Joined::to_be_tried() const {
  std::vector<std::size_t> places;
  bool any = false;
  const Json& entries = found_->at("sources");
  for (std::size_t i = 0; i < size(); ++i) {
    if (!entries[i].contains("failed")) continue;
    places.push_back(i);
    const bool same_name = io::base_name(get_string(entries[i], "source").value_or("")) ==
                           io::base_name(sources_[i].path);
    if (!entries[i].contains("equal_key") || !same_name) any = true;
  }
  if (!any) places.clear();
  return places;
}

std::vector<std::size_t> Joined::unfinished_videos() const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < size(); ++i)
    if (!parts_->find(sources_[i].hash)) places.push_back(i);
  return places;
}

std::vector<std::size_t> Joined::begin() {
  const std::string parts = parts_path();
  found_ = store_->find_or_hold(force_);
  if (listed_) {
    if (!found_->is_null()) return {};  // failed videos are results
    parts_.emplace(parts, settings_, true);
    return unfinished_videos();
  }
  if (!found_->is_null()) {
    if (is_of_this(found_) && to_be_tried().empty()) {
      io::remove_file(parts);  // an earlier run was killed right after finishing
      return {};
    }
    // Another program may have written the json while this program waited for the lock.
    found_ = store_->hold_and_find();
    if (!found_->is_null() && !is_of_this(found_)) found_ = Json();
  }
  std::vector<std::size_t> places;
  if (!found_->is_null()) {
    io::remove_file(parts);
    places = to_be_tried();
    if (places.empty()) {
      store_.reset();  // unlocks the batch
      return places;
    }
  }
  parts_.emplace(parts, settings_, !force_);
  return found_->is_null() ? unfinished_videos() : places;
}

bool Joined::take_earlier(std::size_t place) {
  if (force_ || listed_) return false;
  ClipPart part(*parts_);
  const ClipSource& video = sources_[place];
  Json entry = earlier_.find(video, hash_of_spans(video),
                             [&](const shard::Sample& sample) { part.add(sample); });
  if (entry.is_null()) return false;
  part.end(video, entry);
  return true;
}

bool Joined::make(std::size_t place, const Cut& cut) {
  try {
    if (take_earlier(place)) return true;
    ClipPart part(*parts_);
    cut(part);
    part.end(sources_[place]);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime) throw;
    io::Fault fault(sources_[place].path, error);
    if (listed_) fault = settled(listed_->judged(std::move(fault)));
    const std::lock_guard lock(mutex_);
    failed_[place] = std::move(fault);
  }
  return false;
}

std::vector<io::Fault> Joined::faults_of_machine() const {
  std::vector<io::Fault> faults;
  for (const auto& [place, fault] : failed_)
    if (is_of_machine(fault)) faults.push_back(fault);
  return faults;
}

bool Joined::has_clip(std::size_t place, const std::string& key) const {
  const ClipParts::Part* part = parts_->find(sources_[place].hash);
  return part && std::any_of(part->clips.begin(), part->clips.end(),
                             [&](const auto& clip) { return parts_->read(clip).key == key; });
}

/// Returns true if all videos that failed in the earlier run failed again for the same reason.
bool Joined::failed_as_before() const {
  const Json& entries = found_->at("sources");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto before = get_string(entries[i], "failed");
    const auto now = failed_.find(i);
    if (!before) continue;
    if (const auto key = get_string(entries[i], "equal_key"); key && now == failed_.end()) {
      if (!has_clip(i, *key)) return false;
    } else if (now == failed_.end() || now->second.message != *before) {
      return false;
    }
  }
  return true;
}

Json Joined::finish() {
  if (!parts_) return found_;
  if (!found_->is_null() && failed_as_before()) {
    parts_->remove();
    parts_.reset();
    store_.reset();  // unlocks the batch
    return found_;
  }
  for (std::size_t i = 0; i < size(); ++i)
    if (!failed_.contains(i) && !parts_->find(sources_[i].hash) && !take_earlier(i))
      fail("the clips in '{}' of '{}' are not as they were written; use --force", name(),
           sources_[i].path);
  Json finished = write();
  parts_->remove();
  parts_.reset();
  return finished;
}

/// Readable keys have only 8 digits of a hash, so two clips of sources with equal names may have
/// the same key. The later video is then left out with an error.
void Joined::refuse_equal_keys() {
  std::unordered_set<std::string> keys;
  for (std::size_t i = 0; i < size(); ++i) {
    const ClipParts::Part* part = parts_->find(sources_[i].hash);
    if (failed_.contains(i) || !part) continue;
    for (const ClipParts::Place& clip : part->clips)
      if (std::string key = parts_->read(clip).key; !keys.insert(key).second) {
        failed_[i] = {sources_[i].path,
                      fmt::format("its clip '{}' has the key of another video's; rename it", key),
                      Cause::duplicate};
        equal_keys_[i] = std::move(key);
      }
  }
}

Json Joined::write() {
  if (readable_) refuse_equal_keys();
  store_->begin(false);
  Json entries = Json::array();
  std::vector<io::Fault> faults;
  for (std::size_t i = 0; i < size(); ++i) {
    check_stop();
    const ClipSource& video = sources_[i];
    if (const auto failed = failed_.find(i); failed != failed_.end()) {
      entries.push_back({{"source", video.path},
                         {"source_hash", video.hash},
                         {"clips", 0},
                         {"failed", failed->second.message}});
      if (const auto equal = equal_keys_.find(i); equal != equal_keys_.end())
        entries.back()["equal_key"] = equal->second;
      faults.push_back(failed->second);
      continue;
    }
    const ClipParts::Part& part = *parts_->find(video.hash);
    for (const ClipParts::Place& clip : part.clips)
      store_->add(parts_->read(clip));
    Json entry = parse_json(part.summary, video.path);
    for (const Json& error : entry.at("errors"))
      faults.emplace_back(video.path, error.get<std::string>(), Cause::decode);
    if (part.clips.empty() && entry.at("errors").empty())
      faults.emplace_back(video.path, kNoClip, Cause::empty);
    entries.push_back(std::move(entry));
  }
  return store_->finish(
      {{"kind", "joined"}, {"sources", std::move(entries)}, {"errors", io::to_json(faults)}});
}

JoinedItems::JoinedItems(ClipItems& items, const ClipOptions& options, Json settings, See see)
    : items_(items),
      options_(options),
      settings_(std::move(settings)),
      see_(std::move(see)),
      earlier_(options.directory, settings_) {}

JoinedItems::Work JoinedItems::next_video() {
  Work work{.item = {}, .batch = batch_, .place = places_[at_++]};
  work.item.sources = {batch_->source(work.place)};
  work.last = at_ == places_.size();
  if (work.last) work.there = batch_->size() - places_.size();
  return work;
}

JoinedItems::Work JoinedItems::begin_batch(const ClipItem& item) {
  batch_ = std::make_shared<Joined>(item, options_, settings_, earlier_);
  at_ = 0;
  places_ = batch_->begin();
  if (!places_.empty()) return next_video();
  return {.item = item, .batch = batch_, .last = true, .there = batch_->size()};
}

std::optional<JoinedItems::Work> JoinedItems::next() {
  if (at_ < places_.size()) return next_video();
  batch_.reset();
  std::optional<ClipItem> item = items_.next();
  if (!item) return std::nullopt;
  see_(*item);
  if (item->kind != ClipItem::Kind::joined) return Work{.item = std::move(*item)};
  try {
    return begin_batch(*item);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime) throw;
    places_.clear();
    at_ = 0;
    // In a part, what fails a whole batch is no result of its videos.
    const Cause cause = options_.part ? Cause::disk : error.cause();
    return Work{.item = {ClipItem::Kind::bad, {}, item->sources[0].path, error.what(), cause}};
  }
}

}  // namespace vfm::clip
