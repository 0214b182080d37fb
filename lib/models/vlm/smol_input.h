// Preprocessing of frames for SmolVLM or Idefics3: which frames, and square tiles.
//
// A still picture is resized so that its longer side is `longest`, then to multiples of a tile's
// side, and cut into tiles, row by row. The last tile is the whole picture. A picture that then
// fits in one tile, and every picture if "do_image_splitting" is false, is one tile. A frame of a
// video is resized so that its longer side is `longest`, then to one tile, without keeping its
// aspect ratio. Between these steps there are 8 bits per channel. Pixels are resized as Pillow
// resizes (models/encoder/picture_resize.h), with Lanczos unless the folder says otherwise, then
// (byte * factor - mean) / deviation. Tiles have no padding, so all patches are attended to.
//
// From a video `fps` frames per second are taken, at most `most_frames`, evenly from the first to
// the last. A video more than 2 seconds longer than most_frames times fps seconds loses its first
// and last second. Idefics3's processor has no videos: their frames are pictures of one tile, and
// the same frames are taken.
// Sources: transformers 5.24, SmolVLMImageProcessorPil and SmolVLMVideoProcessor. With torchvision
// from 0.27 on the latter's pixels equal Pillow's up to a rounding.
// Pure, except for reading files. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/encoder/picture_input.h"
#include "models/encoder/picture_resize.h"
#include "models/vlm/pixel_rule.h"
#include "models/vlm/smol_config.h"
#include "models/vlm/vision_language.h"

namespace vfm::models {

/// Preprocessing of the pixels of a picture.
struct SmolPixels {
  PixelRule rule{Resample::lanczos, 1.0 / 255, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}};
  int longest = 4 * 364, tile = 364;
  bool split = true;

  bool operator==(const SmolPixels&) const = default;
  /// Reads the contents of preprocessor_config.json. Throws Error{usage} naming `what` and the
  /// setting, for a setting that is unknown or impossible.
  static SmolPixels from_json(const Json& config, std::string_view what);
  Json to_json() const;
};

/// The tiles of a picture; 0 rows: the picture is one tile.
struct SmolTiles {
  int rows = 0, columns = 0;
  int count() const { return rows * columns + 1; }
  bool operator==(const SmolTiles&) const = default;
};

struct SmolInput {
  SmolPixels still, video;
  int patch = 0, merge = 0;
  double fps = 1;
  int most_frames = 64;

  /// Reads preprocessor_config.json of a model's folder, or without that file "image_processor" in
  /// processor_config.json. For videos also video_preprocessor_config.json or "video_processor".
  /// Throws Error{usage}, also for tiles that do not fit.
  static SmolInput from_folder(const std::string& folder, const SmolConfig& config);
  Json to_json() const;

  /// The numbers of the frames to take at `fps` from a video of `frames` frames, at least 1, with
  /// `rate` frames per second.
  std::vector<std::int64_t> frames(std::int64_t frames, double rate, double fps) const;
  /// The tiles of a still picture.
  SmolTiles tiles(PictureSize picture) const;
  /// Number of tokens of a tile, and of patches along its side.
  int tokens() const { return side() / merge * (side() / merge); }
  int side() const { return still.tile / patch; }

  /// The tiles of a still picture or of a video's frame, one after another: packed RGB.
  std::vector<std::uint8_t> prepare(const PictureView& picture, bool is_still) const;
  /// Patches of tiles that prepare() made.
  QwenPicture patches(std::span<const std::vector<std::uint8_t>> frames, bool is_still) const;
};

}  // namespace vfm::models
