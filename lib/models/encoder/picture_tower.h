// Parts that the image towers of CLIP, SigLIP and DINOv2 and the video tower of V-JEPA 2 share.
// Pictures are cut into square patches, and each patch is a token. A class token may come first,
// and position embeddings ("places") are added. Then the layers of models/encoder/encoder_stack.h
// follow.
//
// Not here: how each tower makes one vector of the tokens (clip_vision.h, siglip_vision.h,
// siglip_naflex.h, dinov2.h, vjepa2.h), and pictures of any size (picture_input.h). Shape letters:
// N pictures, T tokens of a picture, D width, P side of a patch.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/encoder_stack.h"
#include "models/encoder/picture_input.h"
#include "models/folder/hf_folder.h"
#include "ops/tape.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// The weights of a tower, with the type and device of the computation.
struct TowerWeights {
  const io::TensorSet& set;
  DType compute;
  Device device;

  Tensor floats(const std::string& name) const;
  /// f32 [N, D] to f32 [N, out], with NAME.weight, and NAME.bias if there is one.
  Tensor linear(ops::Tape& tape, const Tensor& x, const std::string& name) const;
  Tensor norm(ops::Tape& tape, const Tensor& x, const std::string& name, float epsilon) const;
};

/// Sizes of a tower's layers and of its pictures.
struct PictureTowerConfig {
  EncoderStackConfig stack;
  int image_size = 0, patch = 0;

  /// Reads config.json (or its part for pictures). `fallback` has the values of missing fields. If
  /// stack.feed_forward is 0 in `fallback`, it is not read. Throws Error{usage} naming `what`.
  static PictureTowerConfig from_json(const Json& config, const PictureTowerConfig& fallback,
                                      std::string_view activation, std::string_view what);
  /// Number of patches along a side of a picture of image_size.
  int side() const { return image_size / patch; }
  /// Throws Error{usage} unless `size`, which the preprocessing gives, is the model's.
  void need_size(PictureSize size, std::string_view what) const;
};

/// Pictures in, one vector per picture out. Inference only. Below, a picture may be the frames of a
/// clip, with the three channels of frame after frame.
class PictureTower {
 public:
  virtual ~PictureTower() = default;
  PictureTower(const PictureTower&) = delete;
  virtual int dim() const = 0;
  /// Number of tokens of a picture; if pictures have sizes of their own, of the largest.
  virtual std::int64_t tokens() const = 0;
  /// Number of frames of a clip; 1: single pictures.
  virtual int frames() const { return 1; }
  /// pixels [N, 3 frames(), height, width], f32, on the CPU, of the size that the tower was made
  /// for. Returns [N, dim()], f32, on the CPU, not normalised to length 1. On the CPU the bits of a
  /// picture's vector do not depend on the other pictures. Throws Error for another size; Stopped
  /// between layers.
  Tensor encode(const Tensor& pixels) const;
  /// The same for pictures [1, 3, height, width], which may have sizes of their own if the tower
  /// takes such pictures. Each has products of its own on every device, and so the bits that it has
  /// when it is alone. All share the reading of weights.
  Tensor encode_each(std::span<const Tensor> pictures) const;

 protected:
  /// `folder` must outlive this object. `select` maps names of tensors as in SelectedSet.
  PictureTower(const PictureTowerConfig& config, const HfComponent& folder,
               const std::function<std::string(const std::string&)>& select,
               const EncoderNames& layer_names, DType compute, Device device);
  /// The input of the layers: [N T, D], f32, on the device.
  virtual Tensor begin(ops::Tape& tape, const Tensor& pixels) const = 0;
  /// Makes the vectors [N, dim()] from the output of the layers.
  virtual Tensor end(ops::Tape& tape, const Tensor& x) const = 0;

  const PictureTowerConfig config_;
  const SelectedSet selected_;
  const TowerWeights weights_;

 private:
  const EncoderStack stack_;
};

/// pixels [N, 3, height, width] to [N height/P width/P, 3 P P], patches row by row. Pixels left
/// over at the right and bottom are not used.
Tensor cut_patches(const Tensor& pixels, int patch);

/// Resizes the places of a grid of side x side patches, [side side, D], to a grid of height x width
/// patches: bicubic with a = -0.75 and without antialiasing, as PyTorch's
/// interpolate(align_corners=False).
Tensor resample_places(const Tensor& places, int side, int height, int width);

/// What the first tokens of a picture are made from.
struct PatchEmbedding {
  std::string projection;  ///< name of the convolution, with or without bias
  int patch = 0;
  Tensor first;   ///< [D], the class token; undefined: none
  Tensor places;  ///< [T, D]
};
/// The first tokens of the pictures: [N T, D], f32, on the device.
Tensor embed_pictures(ops::Tape& tape, const Tensor& pixels, const PatchEmbedding& embedding,
                      const TowerWeights& weights);

/// The first token of each picture: x [N T, D] to [N, D].
Tensor first_tokens(const Tensor& x, std::int64_t each);

}  // namespace vfm::models
