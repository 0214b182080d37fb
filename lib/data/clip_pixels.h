// Which frames of a clip, and which part of the picture, become pixels for a tokenizer.
// Needs FFmpeg: built without it, these functions throw. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rational.h"
#include "data/clip_size.h"
#include "media/decode/hardware.h"

namespace vfm::media {
struct Frame;
struct RgbImage;
struct ScaleOptions;
}  // namespace vfm::media

namespace vfm::data {

enum class CropMode { centre, random };

struct PixelOptions {
  int size = 256;  ///< area of the picture: about size * size pixels
  /// Not 0: instead of the picture a square of this side, cut out of it. It is shrunk before until
  /// its shorter side has `shorter_side` pixels (0: not at all), or enlarged to hold the square.
  int square = 0, shorter_side = 0;
  int frames = 17;  ///< of a window, at most
  int windows = 1;  ///< as WindowRule::most
  int overlap = 0;  ///< of these
  int only = -1;    ///< not -1: of the windows this one alone
  /// Not 0: there are as many windows as of so many frames, of which an index tells.
  std::int64_t planned = 0;
  Rational fps{0, 1};  ///< frames a second to sample at; 0: as the clip has them
  CropMode crop = CropMode::centre;
  std::uint64_t seed = 0;   ///< of random crops
  std::uint32_t step = 0;   ///< of training, or epoch; random crops are others at each
  std::uint32_t again = 0;  ///< how often the clip came in that step before: others, too
  double flip = 0;          ///< of random crops: how probable it is that the picture is mirrored
  int time_step = 8;        ///< 1 + k * time_step frames: the tokenizer's time factor
  int multiple = 16;        ///< of both sides of the picture
  /// Not empty: the picture gets this shape, and not that of its own bucket: one that was planned.
  Bucket bucket = {};
  /// Decodes the clip, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// A window of a clip.
struct ClipPixels {
  std::vector<float> pixels;  ///< (3, frames, height, width), RGB in [-1, 1]
  int frames = 0, height = 0, width = 0;
  double fps = 0;                        ///< 0 for a single frame
  std::array<int, 4> crop{};             ///< x, y, width, height in the upright picture, pixels
  std::int64_t first_frame = 0;          ///< of the clip
  double begin = 0, end = 0;             ///< seconds after the clip's first frame; 0 for a picture
  std::int64_t window = 0, windows = 1;  ///< its number, and how many there are
  std::int64_t bytes = 0;                ///< that were read for it; of a ClipSet
};

/// Where the pictures of a clip are made instead of ClipPixels::pixels: where the tokenizer is, as
/// bytes that stand for these pixels (byte / 127.5 - 1).
class ClipCanvas {
 public:
  virtual ~ClipCanvas() = default;
  /// Room for a clip; what was there is forgotten.
  virtual void begin(int frames, int height, int width) = 0;
  /// Whether frames shall stay on the GPU that decodes them, for draw().
  virtual bool draws() const = 0;
  /// Picture n of a frame with Frame::gpu, mirrored left to right at last if `mirror`, just as a
  /// media::Scaler makes it. False: it cannot; then it gets it by put().
  virtual bool draw(const media::Frame& frame, const media::ScaleOptions& scale, bool mirror,
                    int n) = 0;
  virtual void put(const media::RgbImage& image, bool mirror, int n) = 0;
};

using MakeCanvas = std::function<std::unique_ptr<ClipCanvas>()>;
/// Gets a window, and the canvas that its pictures are on, if one was made. With window 0 all
/// begins anew, if there was a window before: the container had promised more frames.
using TakeWindow = std::function<void(ClipPixels window, const ClipCanvas* canvas)>;

/// Decodes the clip in `bytes` once and gives the windows that the options name, in order, to
/// `take`; `key` seeds random crops, of which all windows have the same. With canvases their
/// pictures are there, and `pixels` is empty. Throws Error, naming `name` in quotes, if nothing can
/// be decoded, or fewer frames than were planned.
FrameCount read_windows(std::string_view bytes, const std::string& name, const std::string& key,
                        const PixelOptions& options, const TakeWindow& take,
                        const MakeCanvas& make_canvas = nullptr);

/// The only window, or the first one.
ClipPixels clip_pixels(std::string_view bytes, const std::string& name, const std::string& key,
                       const PixelOptions& options);

}  // namespace vfm::data
