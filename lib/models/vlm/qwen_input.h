// Preprocessing of frames for Qwen2.5-VL: which frames, which size, and their patches.
//
// - A size keeps the aspect ratio as well as multiples of 28 pixels allow, between a least and a
//   most number of pixels.
// - For a still picture these limits are from preprocessor_config.json. A frame of a video has 128
//   to 768 tokens of 28x28 pixels, fewer if there are many frames: 115,200 tokens of two frames
//   each in all.
// - From a video `fps` frames per second are taken, evenly from the first to the last: at least 4,
//   at most 768, an even number.
// Pixels are resized as Pillow resizes (models/encoder/picture_resize.h), then
// (byte * factor - mean) / deviation.
// Sources: transformers 5.24, Qwen2VLImageProcessorPil, and for videos Qwen's qwen-vl-utils, with
// whose rules its models were published.
// Pure, except for reading the file. Thread-safety: const members from any thread.
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
#include "models/vlm/qwen.h"

namespace vfm::models {

inline constexpr int kLeastFrameTokens = 128, kMostFrameTokens = 768;

/// A size whose sides are multiples of `factor`, with least <= pixels <= most if possible. Throws
/// Error for a picture more than 200 times as long as wide.
PictureSize smart_resize(PictureSize picture, int factor, std::int64_t least, std::int64_t most);

/// The numbers of the frames to take at `fps` from a video of `frames` frames, at least 1, with
/// `rate` frames per second. Their number is a multiple of `pair`. If there are fewer frames than
/// `pair`, all are taken.
std::vector<std::int64_t> qwen_frames(std::int64_t frames, double rate, double fps, int pair);

struct QwenInput {
  QwenVisionConfig vision;
  PixelRule pixels{Resample::bicubic,
                   1.0 / 255,
                   {0.48145466, 0.4578275, 0.40821073},
                   {0.26862954, 0.26130258, 0.27577711}};
  /// Least and most pixels of a still picture.
  std::int64_t least = 56 * 56, most = 28 * 28 * 1280;
  int frame_tokens = kMostFrameTokens;  ///< most tokens of a pair of a video's frames

  /// Reads the contents of preprocessor_config.json. Throws Error{usage} naming `what` and the
  /// setting, for a setting that is unknown, impossible, or does not fit the model.
  static QwenInput from_json(const Json& config, const QwenVisionConfig& vision,
                             std::string_view what);
  /// Reads preprocessor_config.json of a model's folder, or without that file "image_processor" in
  /// processor_config.json. Throws Error{usage}.
  static QwenInput from_folder(const std::string& folder, const QwenVisionConfig& vision);
  Json to_json() const;

  /// The size for one of `frames` frames of a video, or for a still picture if `frames` is 0.
  PictureSize size(PictureSize picture, std::size_t frames) const;
  /// The number of tokens of `frames` frames, at least 1, of `size`.
  std::int64_t tokens(PictureSize size, std::int64_t frames) const;
  /// The picture resized to size(): packed RGB.
  std::vector<std::uint8_t> prepare(const PictureView& picture, std::size_t frames) const;
  /// Patches of frames that prepare() made, all of one size and `seconds` apart. A frame without
  /// its pair is used twice. A still picture is one frame.
  QwenPicture patches(std::span<const std::vector<std::uint8_t>> frames, PictureSize size,
                      bool still, double seconds) const;
};

}  // namespace vfm::models
