// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/window_detector.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace vfm::curate {
namespace {

constexpr std::size_t kFrameBytes = std::size_t{3} * kChangeWidth * kChangeHeight;

}  // namespace

WindowDetector::WindowDetector(ChangeModel model, double threshold, bool explain)
    : model_(std::move(model)), threshold_(threshold), explain_(explain) {}

void WindowDetector::push(std::span<const std::uint8_t> frame) {
  if (frame.size() != kFrameBytes)
    fail("{} bytes are not a picture of {}x{}", frame.size(), kChangeWidth, kChangeHeight);
  const std::int64_t copies = frames_++ == 0 ? 1 + kBefore : 1;
  for (std::int64_t i = 0; i < copies; ++i)
    window_.insert(window_.end(), frame.begin(), frame.end());
  if (window_.size() == kWindow * kFrameBytes) judge();
}

void WindowDetector::judge() {
  const std::vector<float> answers = model_(window_);
  if (answers.size() != kWindow)
    fail("a network answers for {} frames of {}", answers.size(), kWindow);
  const std::int64_t count = std::min(kStride, frames_ - judged_);
  for (std::int64_t i = 0; i < count; ++i)
    see(judged_ + i, answers[static_cast<std::size_t>(kBefore + i)]);
  judged_ += count;
  window_.erase(window_.begin(), window_.begin() + kStride * kFrameBytes);
}

void WindowDetector::see(std::int64_t frame, float probability) {
  using Verdict = Judgement::Verdict;
  const bool above = probability > threshold_;
  if (explain_ && frame + 1 < frames_)
    judgements_.push_back({frame + 1, probability, above ? Verdict::cut : Verdict::below});
  if (above) {
    highest_ = run_ ? std::max(highest_, probability) : probability;
    if (!run_) run_ = frame;
  } else if (run_) {
    add(frame);
    run_.reset();
  }
}

/// Adds the run as a change. The new shot begins at frame `begin`.
void WindowDetector::add(std::int64_t begin) {
  const std::int64_t end = end_of_run(), middle = (*run_ + begin - 1) / 2 + 1;
  const ChangeType type = begin == end ? ChangeType::cut : ChangeType::transition;
  // The times of frames before `begin` - kHeld are not known any more.
  certain_.push_back({type, end, begin, std::max(middle, begin - kHeld), highest_});
}

void WindowDetector::finish() {
  const std::vector<std::uint8_t> last(window_.end() - (frames_ > 0 ? kFrameBytes : 0),
                                       window_.end());
  while (judged_ < frames_) {
    while (window_.size() < kWindow * kFrameBytes)
      window_.insert(window_.end(), last.begin(), last.end());
    judge();
  }
  // If the run is the last frame only, the end of the video ends the shot.
  if (run_ && *run_ > 0 && *run_ + 1 < frames_) add(frames_);
  run_.reset();
  finished_ = true;
}

std::vector<ShotChange> WindowDetector::take() {
  return std::exchange(certain_, {});
}

std::vector<Judgement> WindowDetector::take_judgements() {
  return std::exchange(judgements_, {});
}

std::int64_t WindowDetector::settled() const {
  if (finished_) return frames_;
  return run_ && !open_change() ? end_of_run() : judged_;
}

std::optional<std::int64_t> WindowDetector::open_change() const {
  if (!run_ || judged_ - *run_ <= kHeld) return std::nullopt;
  return end_of_run();
}

}  // namespace vfm::curate
