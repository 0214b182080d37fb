// The preprocessing of a picture, or of a frame of a video, for an encoder, as
// preprocessor_config.json or video_preprocessor_config.json says: the picture is resized, its
// centre is cropped, and bytes are converted to numbers.
//
//   {"image_processor_type": "CLIPImageProcessor", "do_resize": true, "size": {"shortest_edge":
//    224}, "resample": 3, "do_center_crop": true, "crop_size": {"height": 224, "width": 224},
//    "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
//    "image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28]}
//
// Supported are CLIPImageProcessor, SiglipImageProcessor, Siglip2ImageProcessor (NaFlex),
// BitImageProcessor (DINOv2's), also under their older and their "Fast" names, and
// VJEPA2VideoProcessor, which resizes by its "crop_size" whatever "size" says. With NaFlex a
// picture nearly keeps its aspect ratio and has a size of its own: the largest in whole patches,
// "patch_size" each way, that has at most "max_num_patches" patches. A setting that is unknown here
// is refused unless it is null or false. Results have the bits of the processors that resize with
// Pillow. "Fast" processors resize with torchvision, whose pixels occasionally differ by one.
// Pure, except for reading the file. Thread-safety: const members from any thread. Source:
// transformers 5.24, models/{clip,siglip,siglip2,bit}/image_processing_*, image_transforms.py,
// models/vjepa2/video_processing_vjepa2.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "models/encoder/picture_resize.h"

namespace vfm::models {

struct PictureSize {
  int height = 0, width = 0;
  bool operator==(const PictureSize&) const = default;
};

struct PictureInput {
  int shortest_edge = 0;  ///< the shorter side after resizing, pixels; 0: see `resized`
  /// Size after resizing, for any aspect ratio; 0 x 0 without shortest_edge: no resizing.
  PictureSize resized;
  Resample resample = Resample::bicubic;
  PictureSize crop;  ///< centre crop after resizing, black outside the picture; 0 x 0: no crop
  int patch = 0, most_patches = 0;  ///< NaFlex: replaces the fields above except `resample`
  double factor = 1;                ///< multiplies bytes
  std::array<double, 3> mean{0, 0, 0}, deviation{1, 1, 1};
  /// Not of the file: frames of a clip for an encoder of videos; 0: as many as it was trained with.
  int frames = 0;

  /// Reads the contents of preprocessor_config.json. Throws Error{usage} naming `what` and the
  /// setting, for a setting that is unknown or impossible, or with which every picture would keep a
  /// size of its own.
  static PictureInput from_json(const Json& config, std::string_view what);
  /// Reads preprocessor_config.json of a model's folder, or without that file "image_processor" in
  /// processor_config.json. For a video the order is "video_processor" in processor_config.json,
  /// video_preprocessor_config.json, preprocessor_config.json. Throws Error{usage}.
  static PictureInput from_folder(const std::string& folder, bool video = false);
  /// All settings in one form, however the file spelled them. Two are equal if they give the same
  /// numbers.
  Json to_json() const;

  /// Size of every picture that the encoder gets; 0 x 0 if each picture has its own.
  PictureSize size() const { return crop.height > 0 ? crop : resized; }
  bool own_sizes() const { return most_patches > 0; }
  /// Size that the encoder gets for a picture of `width` x `height`. Throws Error for a picture
  /// without pixels, or so long that no size fits.
  PictureSize size_of(int width, int height) const;
  /// Writes [3, height, width]: (byte * factor - mean) / deviation in f32, channel by channel.
  /// Throws Error for an empty picture, or one with the wrong number of bytes for its size.
  void read(const PictureView& picture, std::span<float> out) const;
  /// The same before bytes are converted to numbers: packed RGB.
  std::vector<std::uint8_t> place(const PictureView& picture) const;
};

}  // namespace vfm::models
