// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/late_frames.h"

#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "clip/cut/cutter.h"
#include "curate/shots/shot_detector.h"

namespace vfm::clip {
namespace {

constexpr std::int64_t kMostWaiting = std::int64_t{512} << 20;  // bytes
constexpr std::int64_t kFarAhead = 250;                         // frames

}  // namespace

std::int64_t frame_bytes(const media::Frame& frame) {
  std::int64_t bytes = 0;
  for (int p = 0; p < media::plane_count(frame.layout); ++p)
    bytes += std::int64_t{media::plane_row_bytes(frame, p)} * media::plane_rows(frame, p);
  return bytes;
}

void free_pixels(media::Frame& frame) {
  for (const std::uint8_t*& plane : frame.plane)
    plane = nullptr;
  frame.owner.reset();
}

LateFrames::LateFrames(std::string path, const media::DecodeOptions& decode, double most_seconds)
    : path_(std::move(path)), decode_(decode), most_seconds_(most_seconds) {
  decode_.waits_for_session = false;  // the video's decoder has a session
}

void LateFrames::spare(media::Frame& frame) {
  if (frame_bytes(frame) * curate::kShotLag > kMostWaiting) free_pixels(frame);
}

media::Frame LateFrames::fetch(const media::Frame& freed) {
  if (!decoder_) {
    decoder_.emplace(path_, decode_);
    go_to_middle(*decoder_, most_seconds_);
  }
  if (freed.index - next_ > kFarAhead && decoder_->seeks()) {
    decoder_->seek(freed.pts);
    begin_ = freed.index;
  }
  media::Frame frame;
  do {
    check_stop();
    if (!decoder_->next(frame)) fail("'{}' ends earlier when it is read a second time", path_);
    frame.index += begin_;
  } while (frame.index < freed.index);
  next_ = freed.index + 1;
  if (frame.index != freed.index || frame.pts != freed.pts)
    fail("'{}' gives different frames when it is read a second time", path_);
  // The duration of the last frame may come from the gap before it, which a seek may skip.
  frame.duration = freed.duration;
  return frame;
}

ClipFrames::ClipFrames(std::string path, const media::DecodeOptions& decode,
                       std::optional<CroppedPicture> picture)
    : path_(std::move(path)), decode_(decode), picture_(std::move(picture)) {
  // The encoding thread has one slot.
  decode_.threads = 1;
  decode_.waits_for_session = false;
}

/// Decodes up to the time of `freed`. Returns false if no frame has this time and duration.
bool ClipFrames::find(const media::Frame& freed, media::Frame& frame) {
  do {
    check_stop();
    if (!decoder_->next(frame)) return false;
  } while (frame.pts < freed.pts);
  return frame.pts == freed.pts && frame.duration == freed.duration;
}

media::Frame ClipFrames::fetch(const media::Frame& freed) {
  media::Frame frame;
  bool found = false;
  if (!decoder_) {
    decoder_.emplace(path_, decode_);
    decoder_->seek(freed.pts);
  }
  found = find(freed, frame);
  // A frame without a timestamp gets a time from all earlier frames, so decode from the beginning.
  if (!found) {
    decoder_.emplace(path_, decode_);
    found = find(freed, frame);
  }
  if (picture_) frame = picture_->of(frame);
  if (!found || frame.width != freed.width || frame.height != freed.height ||
      frame.layout != freed.layout)
    fail("'{}' gives different frames when it is read a second time", path_);
  frame.index = freed.index;
  return frame;
}

}  // namespace vfm::clip
