// Makes one clip of --smart-cut: encodes some frames, and joins them with copied packets. The
// copied frames are chosen by media/container/splice_plan.h.
//
// Frames are added before the clip's end is known. The head (the frames before the clip's first key
// frame) is encoded immediately. The tail (the frames after the last copied frame) is encoded by
// finish(). If encoded and copied frames do not fit together, add() or finish() throws Error, and
// the caller encodes the whole clip.
//
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "clip/options.h"
#include "media/container/source_packets.h"
#include "media/decode/decoder.h"
#include "media/encode/encoder.h"
#include "media/sound/audio.h"

namespace vfm::clip {

struct SmartStart {
  std::string reason;  ///< Reason why nothing can be copied, or empty.
  std::string encoder;
  /// pts of the first key frame where copying can begin, or nullopt.
  std::optional<std::int64_t> key;
  media::SpliceKind kind;
  std::string path;
  media::DecodeOptions decode;
};

/// Returns a SmartStart with `encoder`. If no clip of the source can be copied, `reason` says
/// why.
SmartStart smart_start(const ClipRecipe& recipe, const media::StreamInfo& info);

/// Decodes the source again, and calls `use` with the frames of [begin, end), in order.
void decode_again(const SmartStart& from, std::int64_t begin, std::int64_t end,
                  const std::function<void(const media::Frame&)>& use);

class SmartCut {
 public:
  /// Begins a clip. `options` are the encoder's settings. `start.reason` must be empty.
  SmartCut(const SmartStart& start, const media::EncodeOptions& options);

  /// Adds the next frame. Throws Error if the frame is interlaced, if its format or size differs
  /// from the first frame's, or if its size is not the encoder's.
  void add(const media::Frame& frame);
  /// Returns true if the frame is before the first frame that may be copied.
  bool is_head(const media::Frame& frame) const { return !start_.key || frame.pts < *start_.key; }
  /// Returns the mp4. `later` has the times of the frames after the head. `copied` has the packets
  /// from SourcePackets. `end` is the end of the last frame. If `later` is empty, the whole clip is
  /// encoded. Throws Error.
  std::string finish(std::span<const std::int64_t> later, const media::CopiedVideo& copied,
                     std::int64_t end, const media::AudioTrack& audio);

  // Call these functions after finish().
  std::int64_t head() const { return head_frames_; }  ///< Number of frames in the head.
  std::int64_t copied() const { return copied_frames_; }

 private:
  void check_kind(const media::Frame& frame);
  media::CodedVideo make_tail(std::span<const std::int64_t> times, std::int64_t end);

  SmartStart start_;
  media::EncodeOptions options_;
  std::optional<media::VideoEncoder> head_;
  std::optional<media::Frame> first_;
  std::optional<media::Frame> key_frame_;
  std::deque<media::Frame> last_;
  std::int64_t head_frames_ = 0, copied_frames_ = 0;
};

}  // namespace vfm::clip
