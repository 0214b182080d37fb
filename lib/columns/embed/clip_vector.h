// The vector of a clip from a picture encoder. It encodes the middle frame of each of N equal parts
// (each frame once if there are fewer; the one frame of a still picture), upright and in the shape
// shown. The vector is the mean of the frames' unit vectors, scaled to length 1.
// Thread-safety: any thread.
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

inline constexpr int kClipFrames = 8, kMostClipFrames = 64;

/// Frames from the encoder's prepare(), held one at a time in full size; none if nothing decodes.
/// `facts` and errors are those of take_frames().
struct PreparedClip {
  std::vector<std::vector<float>> frames;
  HeldJson facts = HeldJson::object();
};
PreparedClip prepare_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const models::PictureEncoder& encoder, int count,
                          const media::HardwareDecoder* hardware);

/// The same for a file or URL.
PreparedClip prepare_file(const std::string& path, const models::PictureEncoder& encoder, int count,
                          const media::HardwareDecoder* hardware);

/// A number for the vector of a frame, of length 1.
using FrameScore = std::function<double(std::span<const float> frame)>;

struct ClipVector {
  /// The mean of the frames' unit vectors, scaled to length 1.
  std::vector<float> vector;
  double score = 0;        ///< the mean of its frames'; without frames or FrameScore 0
  std::size_t frames = 0;  ///< without any the vector is zeros
  std::vector<std::vector<float>> windows;  ///< of the frames of each, likewise
};

/// Collects frames of clips for the encoder, which gets them in packs of its size
/// (PictureEncoder::together()) across clips. Thread-safety: one thread.
class ClipVectors {
 public:
  /// `score`, if not empty, is called for each frame of a clip.
  explicit ClipVectors(const models::PictureEncoder& encoder, FrameScore score = {})
      : encoder_(encoder), score_(std::move(score)) {}
  /// Adds the frames of one PreparedClip.
  void push(std::vector<std::vector<float>> frames);
  /// Begins a clip whose frames come one by one, `frames` for the clip itself. Full packs are
  /// encoded at once, so that few frames wait. A second call before end() makes earlier frames
  /// void.
  void begin(std::size_t frames, std::size_t windows);
  /// Adds a frame that counts for the clip, for one of its windows, or for both.
  void add(std::vector<float> prepared, bool of_clip, std::optional<std::size_t> window);
  void end() { open_ = nullptr; }
  /// Drops the clip of begin().
  void drop();
  /// The vectors of completely encoded clips that were not taken yet, in order. `rest`: encodes the
  /// last pack, although not full, and returns all.
  std::vector<ClipVector> take(bool rest);

 private:
  struct Clip {
    ClipVector sums;  // of vectors of length 1
    std::size_t planned = 0, waiting = 0;
  };
  struct Place {  // of a frame that waits; its clip may be void
    std::shared_ptr<Clip> clip;
    bool of_clip = false;
    std::optional<std::size_t> window;
  };
  void wait(std::vector<float> prepared, Place place);
  void encode(std::size_t count);
  void count_in(std::vector<float> vector, const Place& place) const;

  const models::PictureEncoder& encoder_;
  FrameScore score_;
  std::vector<std::vector<float>> prepared_;
  std::vector<Place> places_;                // of these
  std::deque<std::shared_ptr<Clip>> clips_;  // that were not taken
  std::shared_ptr<Clip> open_;               // the last of them, if more of it comes
};

/// The encoder's config(), with {"frames": 8, "pool": "mean"} of this rule.
Json clip_vector_config(const models::PictureEncoder& encoder, int count);

}  // namespace vfm::columns
