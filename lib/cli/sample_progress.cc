// SPDX-License-Identifier: Apache-2.0
#include "cli/sample_progress.h"

#include <algorithm>

namespace vfm::cli {
namespace {

double in_seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

void SampleProgress::start(std::string_view, std::uint64_t) {
  const std::lock_guard lock(mutex_);
  ++phases_;
  if (!begin_) begin_ = Clock::now();
}

void SampleProgress::add(std::uint64_t done) {
  const std::lock_guard lock(mutex_);
  if (!begin_) begin_ = Clock::now();
  if (phases_ < 2) done_ += static_cast<double>(done);
  elapsed_ = in_seconds(Clock::now() - *begin_);
  if (most_seconds_ > 0 && elapsed_ > most_seconds_) throw Enough{};
}

void SampleProgress::part(const void* item, double done) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (!open_.empty()) busy_ += in_seconds(now - last_);
  last_ = now;
  if (done >= 0) {
    open_.try_emplace(item, Open{now, 0}).first->second.done = done;
    return;
  }
  const auto found = open_.find(item);
  if (found == open_.end()) return;
  const double took = in_seconds(now - found->second.begin);
  if (found->second.done > 0) {
    sum_ += took;
    whole_ += took / found->second.done;
    ++timed_;
  }
  open_.erase(found);
}

void SampleProgress::end() {
  const std::lock_guard lock(mutex_);
  if (begin_) elapsed_ = in_seconds(Clock::now() - *begin_);
}

double SampleProgress::seconds_for(double count) const {
  const std::lock_guard lock(mutex_);
  return done_ > 0 ? elapsed_ * std::max(count, done_) / done_ : 0;
}

double SampleProgress::seconds_for_videos(double count) const {
  {
    const std::lock_guard lock(mutex_);
    if (timed_ > 0) return whole_ * busy_ / sum_ * count / static_cast<double>(timed_);
  }
  return seconds_for(count);
}

std::size_t SampleProgress::timed() const {
  const std::lock_guard lock(mutex_);
  return timed_;
}

}  // namespace vfm::cli
