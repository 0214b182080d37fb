// What becomes of a picture before an encoder sees it, as preprocessor_config.json says: resized,
// cut to its middle, and its bytes made numbers.
//
//   {"image_processor_type": "CLIPImageProcessor", "do_resize": true, "size": {"shortest_edge":
//    224}, "resample": 3, "do_center_crop": true, "crop_size": {"height": 224, "width": 224},
//    "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
//    "image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28]}
//
// Known are CLIPImageProcessor, SiglipImageProcessor, Siglip2ImageProcessor (NaFlex) and
// BitImageProcessor (DINOv2's), also under their older and their "Fast" names. Of NaFlex a picture
// keeps its shape, nearly, and has a size of its own: the largest in whole patches, "patch_size"
// each way, that has no more than "max_num_patches" of them. A setting that is not known here is
// refused, unless it is null or false. Results have the bits of the processors that resize with
// Pillow; "Fast" ones resize with torchvision, whose pixels differ by one here and there. Pure but
// for reading the file. Thread-safety: const members from any thread. Source: transformers 5.24,
// models/{clip,siglip,siglip2,bit}/image_processing_*, image_transforms.py.
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
  int shortest_edge = 0;  ///< the shorter side is made so long; 0: see `resized`
  PictureSize resized;    ///< whatever its shape was; 0 x 0, without shortest_edge: not at all
  Resample resample = Resample::bicubic;
  PictureSize crop;  ///< the middle of that, black where it is smaller; 0 x 0: all of it
  int patch = 0, most_patches = 0;  ///< NaFlex, instead of the four above but for the filter
  double factor = 1;                ///< of bytes
  std::array<double, 3> mean{0, 0, 0}, deviation{1, 1, 1};

  /// Of the contents of preprocessor_config.json. Throws Error{usage} naming `what` and the
  /// setting: one that is not known or impossible, or with which pictures would have sizes of
  /// their own.
  static PictureInput from_json(const Json& config, std::string_view what);
  /// Of a model's folder: of preprocessor_config.json, or of "image_processor" in
  /// processor_config.json where there is none. Throws Error{usage}.
  static PictureInput from_folder(const std::string& folder);
  /// All of this, whatever words the file had: two are equal if they make the same numbers.
  Json to_json() const;

  /// Of every picture that an encoder gets; 0 x 0 where each has its own.
  PictureSize size() const { return crop.height > 0 ? crop : resized; }
  bool own_sizes() const { return most_patches > 0; }
  /// Of a picture of that size. Throws Error for one without pixels, or so long that it has no such
  /// size.
  PictureSize size_of(int width, int height) const;
  /// [3, height, width]: (byte * factor - mean) / deviation in f32, channel by channel. Throws
  /// Error for an empty picture, or one whose bytes are not its size.
  void read(const PictureView& picture, std::span<float> out) const;
  /// The same before bytes are made numbers: packed RGB.
  std::vector<std::uint8_t> place(const PictureView& picture) const;
};

}  // namespace vfm::models
