// SPDX-License-Identifier: Apache-2.0
#include "train/data/fetch_ahead.h"

#include <algorithm>
#include <utility>

#include "io/block_cache.h"

namespace vfm::train {
namespace {

/// Requests of a rank at once. Each waits for one round trip, and for the bytes of a connection.
constexpr std::size_t kFetchers = 12;
/// A group has at most these bytes, so that the parts of other shards need not wait for it.
constexpr std::int64_t kMostTogether = std::int64_t{16} << 20;
/// Of a store that is far away fewer bytes would be too few requests at once.
constexpr std::int64_t kLeastFetched = std::int64_t{32} << 20;
/// A thread's stack, its connection, and memory that it has freed.
constexpr double kThreadBytes = 1 << 20;

}  // namespace

FetchAhead::FetchAhead(const Dataset& data, std::int64_t limit) : data_(data), limit_(limit) {}

FetchAhead::~FetchAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

void FetchAhead::want(std::size_t sample, std::int64_t begin, std::int64_t end) {
  const std::uint32_t shard = data_.shard_of(sample);
  {
    const std::lock_guard lock(mutex_);
    Part& part = parts_.emplace_back();
    part.data = {sample, begin, end, {}, {}};
    part.shard = shard;
    next_.push_back(&part);
    of_shards_[shard].push_back(&part);
    wanted_bytes_ += part.bytes();
    if (threads_.size() < kFetchers) threads_.emplace_back([this] { work(); });
  }
  changed_.notify_all();
}

bool FetchAhead::has_room() const {
  const std::lock_guard lock(mutex_);
  return wanted_bytes_ < limit_;
}

data::SampleBytes FetchAhead::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return parts_.front().state == State::there; });
  if (!next_.empty() && next_.front() == &parts_.front()) next_.pop_front();
  Part part = std::move(parts_.front());
  parts_.pop_front();
  wanted_bytes_ -= part.bytes();
  held_bytes_ -= part.bytes();
  lock.unlock();
  changed_.notify_all();
  if (part.thrown) std::rethrow_exception(part.thrown);
  return std::move(part.data);
}

/// The parts to fetch next, of one shard, which are then under way; empty: none may be fetched now.
std::vector<FetchAhead::Part*> FetchAhead::choose() {
  while (!next_.empty() && next_.front()->state != State::wanted)
    next_.pop_front();
  if (next_.empty()) return {};
  const Part& first = *next_.front();
  // Of the part that is taken next there must be no end of waiting, whatever is held of later ones.
  const bool urgent = &first == &parts_.front();
  if (!urgent && held_bytes_ + first.bytes() > limit_) return {};
  std::vector<Part*> chosen;
  std::deque<Part*>& same = of_shards_[first.shard];
  std::int64_t together = 0;
  while (!same.empty()) {
    Part& part = *same.front();
    const bool fits =
        together + part.bytes() <= kMostTogether && held_bytes_ + part.bytes() <= limit_;
    if (!chosen.empty() && !fits) break;
    same.pop_front();
    part.state = State::under_way;
    together += part.bytes();
    held_bytes_ += part.bytes();
    chosen.push_back(&part);
  }
  if (same.empty()) of_shards_.erase(chosen.front()->shard);
  return chosen;
}

void FetchAhead::work() {
  for (;;) {
    std::vector<Part*> chosen;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] {
        if (!stop_) chosen = choose();
        return stop_ || !chosen.empty();
      });
      if (stop_) return;
    }
    fetch(chosen);
    changed_.notify_all();
  }
}

void FetchAhead::fetch(std::span<Part* const> parts) {
  std::vector<data::SampleBytes> wanted;
  for (const Part* const part : parts)
    wanted.push_back({part->data.sample, part->data.begin, part->data.end, {}, {}});
  std::exception_ptr thrown;
  try {
    data_.fetch(wanted);
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i]->data = std::move(wanted[i]);
    parts[i]->thrown = thrown;
    parts[i]->state = State::there;
  }
}

std::int64_t fetch_limit(const Recipe& recipe) {
  return std::max(kLeastFetched, recipe.data.ahead);
}

double fetch_bytes(const Recipe& recipe, const Dataset& data) {
  if (!data.is_remote()) return 0;
  std::int64_t largest = 0;
  for (const data::Form& form : data.index().forms())
    largest = std::max(largest, data.about_bytes(form.first));
  const std::size_t cache = io::has_cache() ? io::BlockCache::kMostWaiting : 0;
  return static_cast<double>(fetch_limit(recipe) + largest) + static_cast<double>(cache) +
         kThreadBytes * static_cast<double>(kFetchers);
}

std::vector<data::SampleBytes> fetch_all(const Dataset& data,
                                         std::vector<data::SampleBytes> parts) {
  FetchAhead ahead(data, kMostTogether * 4);
  for (const data::SampleBytes& part : parts)
    ahead.want(part.sample, part.begin, part.end);
  for (data::SampleBytes& part : parts)
    part = ahead.take();
  return parts;
}

}  // namespace vfm::train
