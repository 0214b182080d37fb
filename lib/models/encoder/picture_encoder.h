// Encoders of pictures: RGB of any size in, one vector of each out. From a folder as Hugging Face
// has them: CLIP, SigLIP, SigLIP 2 of a fixed resolution or of any (NaFlex), DINOv2; config.json,
// weights and preprocessor_config.json beside each other.
//
// Vectors are those that the model gives (transformers' get_image_features, of DINOv2 the
// pooler_output), not normalised. On the CPU a picture's vector has the same bits whatever pictures
// are encoded with it; on a GPU packs of a fixed size are, or of NaFlex each picture apart.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "models/encoder/picture_resize.h"
#include "tensor/tensor.h"

namespace vfm::models {

class PictureEncoder {
 public:
  virtual ~PictureEncoder() = default;
  virtual int dim() const = 0;
  /// What the model sees of a picture, in few pixels: so many pictures may wait in little memory.
  /// Only encode_prepared() knows what the numbers are. Throws Error for one that is empty, or
  /// whose bytes are not its size.
  virtual std::vector<float> prepare(const PictureView& picture) const = 0;
  /// Of each, in order, its vector. Throws Error for what prepare() did not make; Stopped between
  /// layers.
  virtual std::vector<std::vector<float>> encode_prepared(
      std::span<const std::vector<float>> prepared) const = 0;
  /// So many, or a multiple, cost the least for each.
  virtual std::size_t together() const = 0;
  /// The same of the model on another device.
  virtual std::size_t together_on(Device) const { return together(); }
  /// Both.
  std::vector<std::vector<float>> encode(std::span<const PictureView> pictures) const;
  /// What it is, to be stored with its vectors:
  ///   {"name": "siglip", "path": "/models/siglip", "hash": "...", "dim": 768, "compute": "f32",
  ///    "input": {"size": [224, 224], "resample": "bicubic", "factor": 0.0039, "mean": [...],
  ///    "std": [...]}}
  /// (of NaFlex "patch" and "most_patches" instead of "size"). "hash" is of the whole model.
  /// Vectors of two may be compared if but for "path" they are equal.
  virtual Json config() const = 0;
};

/// `compute`, f32 or bf16, is what products are computed in. Throws Error{usage} for a folder that
/// is not there, or holds a model, settings or tensors that are not supported.
std::unique_ptr<PictureEncoder> make_picture_encoder(const std::string& folder, Device device,
                                                     DType compute);

/// `vector` / |vector|; of zeros, itself.
void normalise(std::vector<float>& vector);

}  // namespace vfm::models
