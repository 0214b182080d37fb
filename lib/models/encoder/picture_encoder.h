// Encoders of pictures and videos: RGB of any size in, one vector per picture or clip out. They are
// read from Hugging Face folders, with config.json, weights and preprocessor_config.json. Models of
// pictures: CLIP, SigLIP, SigLIP 2 of a fixed resolution or of any (NaFlex), DINOv2. Of videos:
// V-JEPA 2.
//
// Vectors are the model's output (transformers' get_image_features; for DINOv2 the pooler_output,
// for V-JEPA 2 the mean of get_vision_features), not normalised. On the CPU the bits of a vector do
// not depend on the pictures encoded with it. On a GPU all packs have the same size, and NaFlex
// encodes each picture by itself.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/encoder/picture_resize.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// The most frames of a clip that an encoder of videos takes.
inline constexpr int kMostVideoFrames = 64;

class PictureEncoder {
 public:
  virtual ~PictureEncoder() = default;
  virtual int dim() const = 0;
  /// Number of frames of a clip that make one vector, in order; 1: an encoder of pictures. Below, a
  /// picture of encode_prepared() is then the joined results of prepare() for so many frames.
  virtual int frames() const { return 1; }
  /// The picture as the model sees it, in few pixels, so that many pictures may wait in little
  /// memory. Only encode_prepared() interprets the numbers. Throws Error for an empty picture, or
  /// one with the wrong number of bytes for its size.
  virtual std::vector<float> prepare(const PictureView& picture) const = 0;
  /// The vectors of the pictures, in order. Throws Error for input that prepare() did not make;
  /// Stopped between layers.
  virtual std::vector<std::vector<float>> encode_prepared(
      std::span<const std::vector<float>> prepared) const = 0;
  /// The number of pictures in one call at which, or at a multiple of it, a picture costs least.
  virtual std::size_t together() const = 0;
  /// together() of the same model on another device.
  virtual std::size_t together_on(Device) const { return together(); }
  /// Calls prepare() and encode_prepared(). Each frames() pictures make one vector; throws Error if
  /// some are left over.
  std::vector<std::vector<float>> encode(std::span<const PictureView> pictures) const;
  /// Description of the encoder, stored with its vectors:
  ///   {"name": "siglip", "path": "/models/siglip", "hash": "...", "dim": 768, "compute": "f32",
  ///    "input": {"size": [224, 224], "resample": "bicubic", "factor": 0.0039, "mean": [...],
  ///    "std": [...]}}
  /// NaFlex has "patch" and "most_patches" instead of "size". "hash" covers the whole model.
  /// Vectors of two encoders may be compared if their descriptions are equal, except for "path".
  virtual Json config() const = 0;
};

class HfComponent;
struct PictureInput;
class PictureTower;

/// All that is known of an encoder by the type of its model, which is its name.
struct PictureFamily {
  std::string_view type;
  bool texts = false;      ///< it has a part for texts, which makes vectors to compare
  bool aesthetic = false;  ///< heads score its vectors (models/encoder/aesthetic_head.h)
  bool video = false;      ///< it takes the frames of a clip
  std::unique_ptr<PictureTower> (*make)(const HfComponent& folder, const PictureInput& input,
                                        DType compute, Device device);
};

/// Returns the one of this type; null if it is not supported.
const PictureFamily* find_picture_family(std::string_view type);

/// `compute`, f32 or bf16, is the type in which products are computed. `frames` is the number of
/// frames for an encoder of videos, 0 for as many as it was trained with; without it such an
/// encoder is refused. Throws Error{usage} for a folder that does not exist, or that holds a model,
/// settings or tensors that are not supported.
std::unique_ptr<PictureEncoder> make_picture_encoder(const std::string& folder, Device device,
                                                     DType compute, std::optional<int> frames = {});

/// Replaces `vector` by `vector` / |vector|. A vector of zeros stays.
void normalise(std::vector<float>& vector);

}  // namespace vfm::models
