// Makes one clip of --smart-cut: encodes a part of it and joins that with the copied part
// (media/container/splice_plan.h divides them).
//
// Frames come as they are decoded, before the clip's end is known. Frames before its first key
// frame, its head, are encoded at once. After that the last few wait, since they may be its tail.
// Frames that do not fit are an Error, here or at the end; the caller then encodes the clip in
// full.
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

#include "clip/clip.h"
#include "media/container/source_packets.h"
#include "media/decode/decoder.h"
#include "media/encode/encoder.h"
#include "media/sound/audio.h"

namespace vfm::clip {

/// The facts of a clip when it begins.
struct SmartStart {
  std::string reason;   ///< why nothing is copied; empty: a part may be
  std::string encoder;  ///< of its head and tail
  /// pts of the first key frame where copying can begin; none: up to the end of the video.
  std::optional<std::int64_t> key;
  media::SpliceKind kind;
  std::string path;  ///< of the source, which may have to be decoded once more, and how
  media::DecodeOptions decode;
};

/// `encoder`, or the `reason` that holds for all clips of a source: frames are not shown as coded,
/// or the chosen encoder's frames do not fit beside them.
SmartStart smart_start(const ClipRecipe& recipe, const media::StreamInfo& info);

/// Calls `use` with the source's frames of [begin, end), in order: decoded once more.
void decode_again(const SmartStart& from, std::int64_t begin, std::int64_t end,
                  const std::function<void(const media::Frame&)>& use);

class SmartCut {
 public:
  /// `options`: how frames are encoded. A `start` with a reason is not for this.
  SmartCut(const SmartStart& start, const media::EncodeOptions& options);

  /// Adds the next frame. Throws Error if its kind differs from the first frame's, or if a clip
  /// would show it differently.
  void add(const media::Frame& frame);
  /// Whether a frame comes before those that may be copied.
  bool is_head(const media::Frame& frame) const { return !start_.key || frame.pts < *start_.key; }
  /// The mp4. `later`: the times of the frames after the head; `copied`: their packets from
  /// SourcePackets; `end`: the end of the last frame. A clip that is all head is encoded whole.
  /// Throws Error.
  std::string finish(std::span<const std::int64_t> later, const media::CopiedVideo& copied,
                     std::int64_t end, const media::AudioTrack& audio);

  // After finish().
  std::int64_t head() const { return head_frames_; }      ///< frames
  std::int64_t copied() const { return copied_frames_; }  ///< frames; the rest is the tail

 private:
  void check_kind(const media::Frame& frame);
  media::CodedVideo make_tail(std::span<const std::int64_t> times, std::int64_t end);

  SmartStart start_;
  media::EncodeOptions options_;
  std::optional<media::Encoder> head_;
  std::optional<media::Frame> first_;      // without planes: its kind
  std::optional<media::Frame> key_frame_;  // the first that may be copied
  std::deque<media::Frame> last_;          // of those, the last few
  std::int64_t head_frames_ = 0, copied_frames_ = 0;
};

}  // namespace vfm::clip
