// Writing video: frames in, one mp4 in memory or in a file out. The bytes depend only on the frames and
// the options (fixed thread count, no clock, no build strings).
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rational.h"
#include "media/frame.h"
#include "media/scaler.h"

namespace vfm::media {

struct EncodeOptions {
  std::string encoder;        ///< FFmpeg's name; empty: the first available of the list in the manual
  int quality = 18;           ///< CRF-like, 0 best to 51 worst; mapped per encoder
  std::string preset;         ///< encoder's own; empty: this project's default for it
  int gop = 0;                ///< frames between key frames at most; 0: a default; GOPs are closed
  int threads = 1;            ///< part of the bytes: keep fixed
  int width = 0, height = 0;  ///< of the input frames; odd sizes are kept (4:2:0 pads by one)
  Rational time_base;         ///< of the frames' pts
  Rational frame_rate;        ///< nominal
  Rational sample_aspect{1, 1};
  int rotation = 0;           ///< stored as display matrix
};

/// The encoders that this FFmpeg has, of those the project knows, best first.
std::vector<std::string> available_encoders();

class Encoder {
 public:
  /// Throws Error{usage} if the named encoder does not exist here (with the list that does).
  explicit Encoder(const EncodeOptions& options);
  ~Encoder();
  Encoder(Encoder&&) noexcept;

  /// Frames in order of pts. The first pts becomes time zero; the gaps are kept exactly.
  void add(const Frame& frame);
  /// RGB convenience: one frame at `pts`.
  void add(const RgbImage& image, std::int64_t pts);
  /// Flushes and returns the whole mp4 (moov first).
  std::string finish();
  const std::string& encoder_name() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::media
