// SPDX-License-Identifier: Apache-2.0
#include "clip/late_frames.h"

#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "clip/cutter.h"
#include "curate/shot_detector.h"

namespace vfm::clip {
namespace {

constexpr std::int64_t kMostWaiting = std::int64_t{512} << 20;  // bytes

}  // namespace

std::int64_t frame_bytes(const media::Frame& frame) {
  std::int64_t bytes = 0;
  for (int p = 0; p < media::plane_count(frame.layout); ++p)
    bytes += std::int64_t{media::plane_row_bytes(frame, p)} * media::plane_rows(frame, p);
  return bytes;
}

LateFrames::LateFrames(std::string path, const media::DecodeOptions& decode, double most_seconds)
    : path_(std::move(path)), decode_(decode), most_seconds_(most_seconds) {}

void LateFrames::spare(media::Frame& frame) {
  if (frame_bytes(frame) * curate::kShotLag <= kMostWaiting) return;
  for (const std::uint8_t*& plane : frame.plane)
    plane = nullptr;
  frame.owner.reset();
}

media::Frame LateFrames::fetch(std::int64_t index, std::int64_t pts) {
  if (!decoder_) {
    decoder_.emplace(path_, decode_);
    go_to_middle(*decoder_, most_seconds_);
  }
  media::Frame frame;
  do {
    check_stop();
    if (!decoder_->next(frame)) fail("'{}' ends earlier when it is read a second time", path_);
  } while (frame.index < index);
  if (frame.index != index || frame.pts != pts)
    fail("'{}' gives different frames when it is read a second time", path_);
  return frame;
}

}  // namespace vfm::clip
