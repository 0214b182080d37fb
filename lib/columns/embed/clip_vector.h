// Computes a clip's vector with an encoder of pictures or videos. The clip is cut into N equal
// parts. The middle frame of each part is taken, as a player shows it (as_shown() in
// columns/clip_frames.h). In a clip of fewer than N frames, all frames are taken. With an encoder
// of pictures the clip's vector is the mean of the frames' unit vectors, scaled to length 1. An
// encoder of videos makes one vector of the frames in order, which is scaled to length 1. It always
// gets N frames: those of a shorter clip are repeated. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "media/decode/hardware.h"
#include "models/encoder/picture_encoder.h"
#include "shard/sample.h"

namespace vfm::columns {

inline constexpr int kClipFrames = 8, kMostClipFrames = models::kMostVideoFrames;

/// Returns N: `asked`, or if that is 0 kClipFrames, or the frames that an encoder of videos has.
int clip_frames(const models::PictureEncoder& encoder, int asked);

/// The frames of a clip, prepared by PictureEncoder::prepare(), and the facts from take_frames(). A
/// clip that cannot be decoded has no frames.
struct PreparedClip {
  std::vector<std::vector<float>> frames;
  HeldJson facts = HeldJson::object();
};
PreparedClip prepare_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const models::PictureEncoder& encoder, int count,
                          const media::HardwareDecoder* hardware);

/// Prepares the frames of a file or URL.
PreparedClip prepare_file(const std::string& path, const models::PictureEncoder& encoder, int count,
                          const media::HardwareDecoder* hardware);

/// Computes a score from a frame's unit vector.
using FrameScore = std::function<double(std::span<const float> frame)>;

struct ClipVector {
  std::vector<float> vector;
  double score = 0;        ///< Mean of the frames' scores, or 0 if there are none.
  std::size_t frames = 0;  ///< Number of frames, or 1 for all. If 0, the vector is zeros.
  std::vector<std::vector<float>> windows;  ///< Vectors of the windows, computed like `vector`.
};

/// An encoder of clips that encodes batches of PictureEncoder::together() frames or clips. A batch
/// may have frames of several clips. Thread-safety: one thread.
class ClipVectors {
 public:
  /// `score` is called for each frame of a clip. `score` may be empty.
  explicit ClipVectors(const models::PictureEncoder& encoder, FrameScore score = {})
      : encoder_(encoder), score_(std::move(score)) {}
  /// Adds the frames of a PreparedClip.
  void push(std::vector<std::vector<float>> frames);
  /// Begins a clip whose frames are added one by one. `frames` is the number of frames for the
  /// clip's vector, and `windows` the number of windows. A second call before end() discards the
  /// clip of the first call.
  void begin(std::size_t frames, std::size_t windows);
  /// Adds a frame for the clip's vector, for one of its windows, or for both. Windows come in
  /// order.
  void add(std::vector<float> prepared, bool of_clip, std::optional<std::size_t> window);
  void end();
  /// Discards the clip of begin().
  void drop();
  /// Removes and returns the vectors of completely encoded clips, in order. If `rest` is true, the
  /// incomplete batch is encoded, too, and all clips are returned.
  std::vector<ClipVector> take(bool rest);

 private:
  struct Clip {
    ClipVector sums;  // sums of unit vectors
    std::size_t planned = 0, waiting = 0;
  };
  struct Place {  // destination of a waiting frame; its clip may be discarded
    std::shared_ptr<Clip> clip;
    bool of_clip = false;
    std::optional<std::size_t> window;
  };
  void keep(std::vector<float> prepared, bool of_clip, std::optional<std::size_t> window);
  void end_window();
  void wait(std::vector<float> prepared, Place place);
  void encode(std::size_t count);
  void count_in(std::vector<float> vector, const Place& place) const;

  const models::PictureEncoder& encoder_;
  FrameScore score_;
  std::vector<std::vector<float>> prepared_;
  std::vector<Place> places_;                // destinations of `prepared_`
  std::deque<std::shared_ptr<Clip>> clips_;  // not yet taken
  std::shared_ptr<Clip> open_;               // last clip between begin() and end()
  // Of an encoder of videos: the frames of the open clip, and of its last window.
  std::vector<std::vector<float>> clip_frames_, window_frames_;
  std::optional<std::size_t> window_;
};

/// Returns the encoder's config() with two more members: "frames" (`count`) and "pool", which is
/// "mean" for the mean of frames' vectors and "tokens" for one vector of all frames.
Json clip_vector_config(const models::PictureEncoder& encoder, int count);

}  // namespace vfm::columns
