// What becomes of frames before Qwen2.5-VL sees them: which ones, how large, and their patches.
//
// - A size keeps the picture's shape as well as multiples of 28 pixels allow, within a least and a
//   most number of pixels.
// - Of a still picture these are preprocessor_config.json's; of a video's frames 128 to 768 tokens
// of
//   28x28 pixels, and fewer where there are many frames: 115,200 tokens of two frames each in all.
// - Of a video `fps` frames a second are taken, evenly from the first to the last: at least 4, at
//   most 768, an even number.
// Pixels are resized as Pillow resizes (models/encoder/picture_resize.h), then
// (byte * factor - mean) / deviation.
// Sources: transformers 5.24, Qwen2VLImageProcessorPil, and Qwen's qwen-vl-utils for videos, whose
// rules its models were published with.
// Pure but for reading the file. Thread-safety: const members from any thread.
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

/// Sides that are multiples of `factor`, of least <= pixels <= most where there are such. Throws
/// Error for a picture that is over 200 times as long as wide.
PictureSize smart_resize(PictureSize picture, int factor, std::int64_t least, std::int64_t most);

/// The numbers of the frames of `frames`, at least 1, at `rate` a second, that are taken at `fps`;
/// `pair`: of frames that go together. Of fewer frames than a pair: all.
std::vector<std::int64_t> qwen_frames(std::int64_t frames, double rate, double fps, int pair);

struct QwenInput {
  QwenVisionConfig vision;
  PixelRule pixels{Resample::bicubic,
                   1.0 / 255,
                   {0.48145466, 0.4578275, 0.40821073},
                   {0.26862954, 0.26130258, 0.27577711}};
  std::int64_t least = 56 * 56, most = 28 * 28 * 1280;  ///< pixels of a still picture
  int frame_tokens = kMostFrameTokens;                  ///< of a pair of a video's frames, at most

  /// Of the contents of preprocessor_config.json. Throws Error{usage} naming `what` and the
  /// setting, for one that is not known, impossible, or does not fit the model.
  static QwenInput from_json(const Json& config, const QwenVisionConfig& vision,
                             std::string_view what);
  /// Of a model's folder: of preprocessor_config.json, or of "image_processor" in
  /// processor_config.json where there is none. Throws Error{usage}.
  static QwenInput from_folder(const std::string& folder, const QwenVisionConfig& vision);
  Json to_json() const;

  /// Of one of `frames` frames of a video; of a still picture where that is 0.
  PictureSize size(PictureSize picture, std::size_t frames) const;
  /// The tokens that `frames` frames of that size, at least 1, become.
  std::int64_t tokens(PictureSize size, std::int64_t frames) const;
  /// Packed RGB of that size.
  std::vector<std::uint8_t> prepare(const PictureView& picture, std::size_t frames) const;
  /// Of frames of one size that prepare() made, `seconds` apart; one that lacks its pair is there
  /// twice. Of a still picture one frame.
  QwenPicture patches(std::span<const std::vector<std::uint8_t>> frames, PictureSize size,
                      bool still, double seconds) const;
};

}  // namespace vfm::models
