// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/crew.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"

namespace vfm::clip {
namespace {

/// Limits of the steps that a thread runs before it chooses a lane again. Threads should change
/// lanes rarely, but a stop must be quick.
constexpr std::size_t kMostSteps = 8;
constexpr std::uint64_t kMostStepBytes = std::uint64_t{16} << 20;
/// Time that an idle thread keeps its slot. While a video is decoded, frames come sooner.
constexpr std::chrono::milliseconds kPatience{50};
constexpr int kLanesPerSlot = 2;  // begun lanes; 1 if two thirds of the memory are used

}  // namespace

Crew::Crew(share::Slots& slots, std::uint64_t most_bytes) : slots_(slots), most_bytes_(most_bytes) {
  for (int i = 1; i < slots.threads() && most_bytes > 0; ++i)
    threads_.emplace_back([this] { help(); });
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  call_.notify_all();
  work_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

void Crew::help() {
  try {
    for (;;) {
      {
        Lock lock(mutex_);
        // Another thread may have done the work meanwhile. This thread takes a slot all the same,
        // so that the video's thread leaves the next step to it and goes on decoding.
        call_.wait(lock, [&] { return closing_ || called_; });
        if (closing_) return;
        called_ = false;
      }
      // Other programs may use the slots for a long time. `closing_` ends the wait.
      const share::Slots::Hold hold(slots_, share::Slots::Use::help, &closing_);
      if (!hold) return;
      Lock lock(mutex_);
      ++helping_;
      help_while_needed(lock);
      --helping_;
      // A video's thread may wait for steps of this thread.
      ended_.notify_all();
    }
  } catch (const Stopped&) {
  } catch (const std::exception& error) {  // only of slots: run() stores exceptions of steps
    log_warning("one thread less encodes: {}", error.what());
  }
}

void Crew::help_while_needed(Lock& lock) {
  while (!closing_ && !slots_.wanted()) {
    if (Lane* lane = choose(nullptr)) {
      run(*lane, lock);
      continue;
    }
    ++idle_;
    const bool called =
        work_.wait_for(lock, kPatience, [&] { return closing_ || choose(nullptr) != nullptr; });
    --idle_;
    if (!called) return;
  }
}

/// Returns true if threads of the crew help, or will help when there is work. Without the second
/// case, has_room() would not limit a video's first frames.
bool Crew::helps() const {
  return helping_ > 0 || (!threads_.empty() && videos_ < slots_.threads());
}

/// Returns the lane with the most steps, of `video` or of all videos. If enough lanes have begun,
/// threads of the crew begin no lane, and a video's thread begins a lane only if it has no other.
Lane* Crew::choose(const VideoLanes* video) const {
  const auto begun =
      std::count_if(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->begun_; });
  const int each = bytes_ + elsewhere_ > most_bytes_ / 3 * 2 ? 1 : kLanesPerSlot;
  const bool full = begun >= each * slots_.threads();
  const auto rank = [&](const Lane& lane) {
    return std::pair(full && lane.begun_, lane.steps_.size());
  };
  Lane* best = nullptr;
  for (const auto& lane : lanes_) {
    if (!lane->ready() || (video && lane->video_ != video)) continue;
    if (full && !video && !lane->begun_) continue;
    if (!best || rank(*lane) > rank(*best)) best = lane.get();
  }
  return best;
}

void Crew::run(Lane& lane, Lock& lock) {
  std::vector<Lane::Step> steps;
  std::uint64_t bytes = 0;
  while (!lane.steps_.empty() && steps.size() < kMostSteps && bytes < kMostStepBytes) {
    bytes += lane.steps_.front().first;
    steps.push_back(std::move(lane.steps_.front().second));
    lane.steps_.pop_front();
  }
  lane.running_ = lane.begun_ = true;
  call();
  lock.unlock();
  std::exception_ptr error;
  try {
    for (Lane::Step& step : steps) {
      check_stop();
      step();
      step = nullptr;  // frees its frame
    }
  } catch (...) {
    error = std::current_exception();
  }
  steps.clear();
  lock.lock();
  lane.running_ = false;
  bytes_ -= bytes;
  if (error) {
    lane.error_ = error;
    drop(lane);
  }
  if (lane.sealed_ && lane.over())
    std::erase_if(lanes_, [&](const auto& other) { return other.get() == &lane; });
  ended_.notify_all();
  call();
}

/// Wakes a thread if there is a lane to take.
void Crew::call() {
  if (!choose(nullptr)) return;
  if (idle_ > 0) return work_.notify_one();
  called_ = true;
  call_.notify_one();
}

void Crew::drop(Lane& lane) {
  for (const auto& [bytes, step] : lane.steps_)
    bytes_ -= bytes;
  lane.steps_.clear();
}

VideoLanes::VideoLanes(Crew& crew) : crew_(crew) {
  const std::lock_guard lock(crew_.mutex_);
  ++crew_.videos_;
}

VideoLanes::~VideoLanes() {
  Crew::Lock lock(crew_.mutex_);
  --crew_.videos_;
  crew_.elsewhere_ -= static_cast<std::uint64_t>(elsewhere_);
  const auto own = [&](const auto& lane) { return lane->video_ == this; };
  for (const auto& lane : crew_.lanes_)
    if (own(lane)) crew_.drop(*lane);
  crew_.ended_.wait(lock, [&] {
    return std::none_of(crew_.lanes_.begin(), crew_.lanes_.end(),
                        [&](const auto& lane) { return own(lane) && lane->running_; });
  });
  std::erase_if(crew_.lanes_, own);
}

std::shared_ptr<Lane> VideoLanes::open() {
  const std::shared_ptr<Lane> lane(new Lane(this));
  const std::lock_guard lock(crew_.mutex_);
  crew_.lanes_.push_back(lane);
  return lane;
}

bool VideoLanes::is_helped() const {
  const std::lock_guard lock(crew_.mutex_);
  return crew_.helps();
}

bool VideoLanes::has_room(std::uint64_t bytes) const {
  const std::lock_guard lock(crew_.mutex_);
  return !crew_.helps() || crew_.bytes_ + crew_.elsewhere_ + bytes <= crew_.most_bytes_ / 5 * 4;
}

void VideoLanes::note_waiting(std::int64_t bytes) {
  const std::lock_guard lock(crew_.mutex_);
  elsewhere_ += bytes;
  crew_.elsewhere_ += static_cast<std::uint64_t>(bytes);
}

bool VideoLanes::waiting() const {
  return std::any_of(crew_.lanes_.begin(), crew_.lanes_.end(),
                     [&](const auto& lane) { return lane->video_ == this && !lane->over(); });
}

int VideoLanes::lasting() const {
  return static_cast<int>(
      std::count_if(crew_.lanes_.begin(), crew_.lanes_.end(), [&](const auto& lane) {
        const bool lasts = lane->running_ || lane->steps_.size() >= kMostSteps;
        return lane->video_ == this && lasts;
      }));
}

void VideoLanes::add(Lane& lane, std::uint64_t bytes, Lane::Step step) {
  Crew::Lock lock(crew_.mutex_);
  if (lane.error_) return;
  lane.steps_.emplace_back(bytes, std::move(step));
  crew_.bytes_ += bytes;
  crew_.call();
  for (;;) {
    // While there is memory, this thread goes on decoding, because more known lanes use the slots
    // better until the end. Otherwise one lane more than slots is enough. A lane that is soon empty
    // does not count, because its thread would wait for this thread.
    const bool roomy = crew_.bytes_ + crew_.elsewhere_ <= crew_.most_bytes_ / 4 * 3;
    const bool enough =
        crew_.bytes_ > crew_.most_bytes_ || (!roomy && lasting() > crew_.slots_.threads());
    if (!waiting() || (crew_.helping_ > 0 && !enough)) return;
    if (Lane* own = crew_.choose(this))
      crew_.run(*own, lock);
    else
      crew_.ended_.wait(lock);
  }
}

void VideoLanes::seal(Lane& lane) {
  const std::lock_guard lock(crew_.mutex_);
  lane.sealed_ = true;
  if (lane.over())
    std::erase_if(crew_.lanes_, [&](const auto& other) { return other.get() == &lane; });
}

void VideoLanes::cancel(Lane& lane) {
  {
    const std::lock_guard lock(crew_.mutex_);
    crew_.drop(lane);
  }
  seal(lane);
}

bool VideoLanes::is_over(const Lane& lane) const {
  const std::lock_guard lock(crew_.mutex_);
  return lane.sealed_ && lane.over();
}

void VideoLanes::finish(Lane& lane) {
  Crew::Lock lock(crew_.mutex_);
  while (!lane.over()) {
    if (Lane* own = crew_.choose(this))
      crew_.run(*own, lock);
    else
      crew_.ended_.wait(lock);
  }
}

void VideoLanes::check(const Lane& lane) const {
  const std::lock_guard lock(crew_.mutex_);
  if (lane.error_) std::rethrow_exception(lane.error_);
}

}  // namespace vfm::clip
