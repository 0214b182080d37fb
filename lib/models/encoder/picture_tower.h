// What the image towers of CLIP, SigLIP and DINOv2 have in common: pictures cut into square
// patches, each patch a token, before them a class token or none, and places added; then the layers
// of models/encoder/encoder_stack.h.
//
// Not here: what makes one vector of the tokens, which each tower does in its own way
// (clip_vision.h, siglip_vision.h, siglip_naflex.h, dinov2.h), and pixels of any size
// (picture_input.h). Shape letters: N pictures, T tokens of a picture, D width, P side of a patch.
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

/// What the weights of a tower are used with.
struct TowerWeights {
  const io::TensorSet& set;
  DType compute;
  Device device;

  Tensor floats(const std::string& name) const;
  /// f32 [N, D] to f32 [N, out]: NAME.weight, and NAME.bias where it has one.
  Tensor linear(ops::Tape& tape, const Tensor& x, const std::string& name) const;
  Tensor norm(ops::Tape& tape, const Tensor& x, const std::string& name, float epsilon) const;
};

/// Sizes of a tower: those of its layers, and of its pictures.
struct PictureTowerConfig {
  EncoderStackConfig stack;
  int image_size = 0, patch = 0;

  /// Of config.json (or of its part for pictures), with `fallback` for what it leaves out; but for
  /// stack.feed_forward where that is 0 in `fallback`. Throws Error{usage} naming `what`.
  static PictureTowerConfig from_json(const Json& config, const PictureTowerConfig& fallback,
                                      std::string_view activation, std::string_view what);
  /// Patches along a side of a picture of image_size.
  int side() const { return image_size / patch; }
  /// Throws Error{usage} unless pictures are made `size`: that of the model.
  void need_size(PictureSize size, std::string_view what) const;
};

/// Pictures in, one vector of each out. Inference only.
class PictureTower {
 public:
  virtual ~PictureTower() = default;
  PictureTower(const PictureTower&) = delete;
  virtual int dim() const = 0;
  /// Of a picture; where pictures have sizes of their own, of the largest.
  virtual std::int64_t tokens() const = 0;
  /// pixels [N, 3, height, width], f32, on the CPU, of the size that the tower was made for; [N,
  /// dim()], f32, on the CPU. Not normalised to length 1. On the CPU a picture's vector has the
  /// same bits whatever others come with it. Throws Error for another size; Stopped between layers.
  Tensor encode(const Tensor& pixels) const;
  /// The same for pictures [1, 3, height, width] which may have sizes of their own if the tower
  /// takes such. Each has products of its own, whatever the device, and so the bits that it would
  /// have alone; the reading of weights is shared.
  Tensor encode_each(std::span<const Tensor> pictures) const;

 protected:
  /// `folder` must outlive it. `select` gives a tensor's name here, or "" (SelectedSet).
  PictureTower(const PictureTowerConfig& config, const HfComponent& folder,
               const std::function<std::string(const std::string&)>& select,
               const EncoderNames& layer_names, DType compute, Device device);
  /// What goes into the layers: [N T, D], f32, on the device.
  virtual Tensor begin(ops::Tape& tape, const Tensor& pixels) const = 0;
  /// [N, dim()] of what comes out of them.
  virtual Tensor end(ops::Tape& tape, const Tensor& x) const = 0;

  const PictureTowerConfig config_;
  const SelectedSet selected_;
  const TowerWeights weights_;

 private:
  const EncoderStack stack_;
};

/// pixels [N, 3, height, width] to [N height/P width/P, 3 P P], patches row by row; what is left
/// over at the right and below is not used.
Tensor cut_patches(const Tensor& pixels, int patch);

/// The places of a grid of side x side patches [side side, D] for one of height x width patches:
/// bicubic with a = -0.75 and without antialiasing, as PyTorch's interpolate(align_corners=False).
Tensor resample_places(const Tensor& places, int side, int height, int width);

/// What a picture's first tokens are made with.
struct PatchEmbedding {
  std::string projection;  ///< the name of the convolution, with or without bias
  int patch = 0;
  Tensor first;   ///< [D]: the class token; undefined: none
  Tensor places;  ///< [T, D]
};
/// [N T, D], f32, on the device.
Tensor embed_pictures(ops::Tape& tape, const Tensor& pixels, const PatchEmbedding& embedding,
                      const TowerWeights& weights);

/// The first token of each picture: x [N T, D] to [N, D].
Tensor first_tokens(const Tensor& x, std::int64_t each);

}  // namespace vfm::models
