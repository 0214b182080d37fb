// What becomes of frames before SmolVLM or Idefics3 sees them: which ones, and square tiles.
//
// A still picture is resized so that its longer side is `longest`, then to multiples of a tile's
// side, and cut into tiles, row by row; the last tile is all of it. A picture that is no larger
// than a tile then, and any where "do_image_splitting" is false, is one tile. A frame of a video is
// resized so that its longer side is `longest`, then to one tile, whatever its shape.
// Between these steps there are 8 bits a channel. Pixels are resized as Pillow resizes
// (models/encoder/picture_resize.h), by lanczos unless the folder says otherwise, then
// (byte * factor - mean) / deviation. No tile has padding, so all patches are attended to.
//
// Of a video `fps` frames a second are taken, at most `most_frames`, evenly from the first to the
// last; of one that is 2 seconds longer than most_frames times fps seconds, not those of its first
// and last second. Idefics3's processor knows no videos: their frames are pictures of one tile, and
// the same ones are taken.
// Sources: transformers 5.24, SmolVLMImageProcessorPil and SmolVLMVideoProcessor; whose pixels are
// Pillow's by torchvision from 0.27 on, to a rounding.
// Pure but for reading files. Thread-safety: const members from any thread.
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

/// What becomes of pixels.
struct SmolPixels {
  PixelRule rule{Resample::lanczos, 1.0 / 255, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}};
  int longest = 4 * 364, tile = 364;
  bool split = true;

  bool operator==(const SmolPixels&) const = default;
  /// Of the contents of preprocessor_config.json. Throws Error{usage} naming `what` and the
  /// setting, for one that is not known, or impossible.
  static SmolPixels from_json(const Json& config, std::string_view what);
  Json to_json() const;
};

/// How a picture lies in tiles; 0 rows: it is one tile, which is all of it.
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

  /// Of a model's folder: of preprocessor_config.json, or of "image_processor" in
  /// processor_config.json where there is none; of videos what video_preprocessor_config.json or
  /// "video_processor" has to say, too. Throws Error{usage}, also for tiles that do not fit.
  static SmolInput from_folder(const std::string& folder, const SmolConfig& config);
  Json to_json() const;

  /// The numbers of the frames of `frames`, at least 1, at `rate` a second, that are taken at
  /// `fps`.
  std::vector<std::int64_t> frames(std::int64_t frames, double rate, double fps) const;
  /// How a still picture is cut.
  SmolTiles tiles(PictureSize picture) const;
  /// The tokens of a tile; patches along its side.
  int tokens() const { return side() / merge * (side() / merge); }
  int side() const { return still.tile / patch; }

  /// Packed RGB of tiles, one behind the other: of a still picture, or of a frame of a video.
  std::vector<std::uint8_t> prepare(const PictureView& picture, bool is_still) const;
  /// Of what prepare() made.
  QwenPicture patches(std::span<const std::vector<std::uint8_t>> frames, bool is_still) const;
};

}  // namespace vfm::models
