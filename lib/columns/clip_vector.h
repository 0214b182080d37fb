// The vector of a clip, made of some of its frames by an encoder of pictures: the frame in the
// middle of each of N equal parts (each frame once, if there are fewer; of a still picture the
// one), upright and in the shape that is shown, encoded; the mean of their vectors of length 1,
// again of length 1.
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
#include "media/hardware.h"
#include "models/encoder/picture_encoder.h"
#include "shard/sample.h"

namespace vfm::columns {

inline constexpr int kClipFrames = 8, kMostClipFrames = 64;

/// The frames as the encoder's prepare() makes them, one at a time in full size; none if nothing
/// can be decoded. `facts` as take_frames() returns them, and what it throws.
struct PreparedClip {
  std::vector<std::vector<float>> frames;
  HeldJson facts = HeldJson::object();
};
PreparedClip prepare_clip(const shard::Member& member, const std::string& where, const Json& known,
                          const models::PictureEncoder& encoder, int count,
                          const media::HardwareDecoder* hardware);

/// Of a file or URL.
PreparedClip prepare_file(const std::string& path, const models::PictureEncoder& encoder, int count,
                          const media::HardwareDecoder* hardware);

/// A number for the vector of a frame, of length 1.
using FrameScore = std::function<double(std::span<const float> frame)>;

struct ClipVector {
  /// The mean of its frames' vectors, each first brought to length 1, itself so.
  std::vector<float> vector;
  double score = 0;        ///< the mean of its frames'; without frames or FrameScore 0
  std::size_t frames = 0;  ///< without any the vector is zeros
  std::vector<std::vector<float>> windows;  ///< of the frames of each, likewise
};

/// Frames of clips that wait for the encoder: it gets them in packs as it likes them
/// (PictureEncoder::together()), whichever clips they are of. One thread.
class ClipVectors {
 public:
  /// `score`, if not empty, is asked for each frame of a clip.
  explicit ClipVectors(const models::PictureEncoder& encoder, FrameScore score = {})
      : encoder_(encoder), score_(std::move(score)) {}
  /// Those of one clip, as its PreparedClip has them.
  void push(std::vector<std::vector<float>> frames);
  /// A clip whose frames come one by one, `frames` for the clip itself. Packs that become full are
  /// encoded at once, so that few wait. Called anew before end(), what came before is void.
  void begin(std::size_t frames, std::size_t windows);
  /// A frame that counts for the clip, for one of its windows, or for both.
  void add(std::vector<float> prepared, bool of_clip, std::optional<std::size_t> window);
  void end() { open_ = nullptr; }
  /// There is no such clip after all.
  void drop();
  /// The vectors of the clips whose frames are all encoded and that were not taken yet, in order:
  /// with `rest` of all, else of those that packs are full of.
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
