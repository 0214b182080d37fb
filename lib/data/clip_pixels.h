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
  /// Not 0: cuts a square of this side out of the picture. Before that the picture is shrunk until
  /// its shorter side has `shorter_side` pixels (0: it is not shrunk), or enlarged to hold the
  /// square.
  int square = 0, shorter_side = 0;
  int frames = 17;  ///< most frames of a window
  int windows = 1;  ///< as WindowRule::most
  int overlap = 0;  ///< as WindowRule::overlap
  int only = -1;    ///< number of the only window to give; -1: all windows
  /// Frames by which the windows are planned, from an index; 0: the frames that are found.
  std::int64_t planned = 0;
  Rational fps{0, 1};  ///< frames a second to sample at; 0: as the clip has them
  CropMode crop = CropMode::centre;
  std::uint64_t seed = 0;  ///< for random crops
  std::uint32_t step = 0;  ///< training step, or epoch; random crops differ from step to step
  /// How often the clip came before in that step; random crops differ here, too.
  std::uint32_t again = 0;
  double flip = 0;    ///< probability that a random crop is mirrored
  int time_step = 8;  ///< windows have 1 + k * time_step frames; the tokenizer's time factor
  int multiple = 16;  ///< both sides of the picture are multiples of it
  /// Not empty: the planned shape of the picture. Otherwise the picture gets the bucket of its own
  /// shape.
  Bucket bucket = {};
  /// Decodes the clip, with the same result as software; null: software decodes it.
  const media::HardwareDecoder* hardware = nullptr;
};

/// A window of a clip.
struct ClipPixels {
  std::vector<float> pixels;  ///< (3, frames, height, width), RGB in [-1, 1]
  int frames = 0, height = 0, width = 0;
  double fps = 0;                        ///< 0 for a single frame
  std::array<int, 4> crop{};             ///< x, y, width, height in the upright picture, pixels
  std::int64_t first_frame = 0;          ///< number of the window's first frame in the clip
  double begin = 0, end = 0;             ///< seconds after the clip's first frame; 0 for a picture
  std::int64_t window = 0, windows = 1;  ///< number of this window, and of all windows of the clip
  std::int64_t bytes = 0;                ///< bytes that a ClipSet read for it
};

/// A canvas on the tokenizer's device, on which the pictures of a window are made instead of
/// ClipPixels::pixels. It holds bytes; the pixel of a byte is byte / 127.5 - 1.
class ClipCanvas {
 public:
  virtual ~ClipCanvas() = default;
  /// Makes room for a window and forgets what was there.
  virtual void begin(int frames, int height, int width) = 0;
  /// True if frames shall stay on the GPU that decodes them, for draw().
  virtual bool draws() const = 0;
  /// Makes picture n from a frame with Frame::gpu as a media::Scaler would, and mirrors it left to
  /// right at the end if `mirror`. Returns false if it cannot; the picture then comes by put().
  virtual bool draw(const media::Frame& frame, const media::ScaleOptions& scale, bool mirror,
                    int n) = 0;
  virtual void put(const media::RgbImage& image, bool mirror, int n) = 0;
};

using MakeCanvas = std::function<std::unique_ptr<ClipCanvas>()>;
/// Takes a window, and the canvas with its pictures; null without canvases. If window 0 comes
/// again, drop the windows before it: the container had promised more frames than there are.
using TakeWindow = std::function<void(ClipPixels window, const ClipCanvas* canvas)>;

/// Decodes the clip in `bytes` once and gives the windows that the options name to `take`, in
/// order. `key` seeds the random crop, which all windows of the clip share. With canvases the
/// pictures are there, and `pixels` is empty. Throws Error, naming `name` in quotes, if nothing can
/// be decoded, or fewer frames than were planned.
FrameCount read_windows(std::string_view bytes, const std::string& name, const std::string& key,
                        const PixelOptions& options, const TakeWindow& take,
                        const MakeCanvas& make_canvas = nullptr);

/// Returns the window options.only, or the first one if that is -1.
ClipPixels clip_pixels(std::string_view bytes, const std::string& name, const std::string& key,
                       const PixelOptions& options);

}  // namespace vfm::data
