// Makes one clip of --smart-cut: encodes some frames, and joins them with copied packets
// (media/container/splice_plan.h decides which).
//
// Frames are added as they are decoded, before the clip's end is known. The clip's head, the frames
// before its first key frame, is encoded at once. After the head the last few frames are kept,
// since they may become the tail, which is encoded, too. If frames do not fit together, add() or
// finish() throws Error, and the caller encodes the whole clip.
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

/// The facts known when a clip begins.
struct SmartStart {
  std::string reason;   ///< reason to copy nothing; empty: a part may be copied
  std::string encoder;  ///< encoder for head and tail
  /// pts of the first key frame where copying can begin, if a further key frame exists.
  std::optional<std::int64_t> key;
  media::SpliceKind kind;
  std::string path;  ///< the source's path, for decoding it again
  media::DecodeOptions decode;
};

/// Sets `encoder`, or a `reason` valid for all clips of the source: frames are not shown as coded,
/// or frames of the chosen encoder do not fit.
SmartStart smart_start(const ClipRecipe& recipe, const media::StreamInfo& info);

/// Decodes the source again, and calls `use` with the frames of [begin, end), in order.
void decode_again(const SmartStart& from, std::int64_t begin, std::int64_t end,
                  const std::function<void(const media::Frame&)>& use);

class SmartCut {
 public:
  /// `options`: the settings of the encoder. `start.reason` must be empty.
  SmartCut(const SmartStart& start, const media::EncodeOptions& options);

  /// Adds the next frame. Throws Error if the frame's format or size differs from the first frame's
  /// or the encoder's.
  void add(const media::Frame& frame);
  /// Returns true if the frame is before the first frame that may be copied.
  bool is_head(const media::Frame& frame) const { return !start_.key || frame.pts < *start_.key; }
  /// Returns the mp4. `later`: times of frames after the head; `copied`: their packets from
  /// SourcePackets; `end`: the end of the last frame. A clip without frames after the head is
  /// encoded as a whole. Throws Error.
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
  std::optional<media::VideoEncoder> head_;
  std::optional<media::Frame> first_;      // its format, without planes
  std::optional<media::Frame> key_frame_;  // the first that may be copied
  std::deque<media::Frame> last_;          // the last few that may be copied
  std::int64_t head_frames_ = 0, copied_frames_ = 0;
};

}  // namespace vfm::clip
