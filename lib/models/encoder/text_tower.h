// The text towers of CLIP and SigLIP: text tokens in, one vector per text out, in the space of the
// pictures' vectors. Inference only.
//
//   x = token[ids] + position[0, 1, ...]
//   for each layer (models/encoder/encoder_stack.h, with norms first):
//   CLIP's tokens see only earlier tokens, SigLIP's see all
//   CLIP:    v = projection norm(x[e]), e: the end-of-text token, which has seen all
//   SigLIP:  v = head norm(x[L - 1]) + bias
//
// SigLIP was trained on texts that are padded to its L positions, without a mask: the caller pads.
// CLIP's end is the first token whose number is eos_token_id. If that is 2, as configurations from
// before 2023 have it by mistake, the end is the first token with the largest number.
// Sources: Radford et al., "Learning transferable visual models from natural language supervision"
// (2021); Zhai et al., "Sigmoid loss for language image pre-training" (2023); Tschannen et al.,
// "SigLIP 2" (2025); transformers' CLIPModel and SiglipModel for names and details.
// Shape letters: N texts, S tokens of the pack, D width, P width of a vector.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/encoder_stack.h"
#include "tensor/tensor.h"

namespace vfm::models {

struct TextTowerConfig {
  EncoderStackConfig stack;
  int vocabulary = 0, positions = 0, dim = 0;
  bool siglip = false;
  std::int64_t end = 0;  ///< CLIP: eos_token_id

  /// Reads the config of an HfComponent of type "clip", "clip_text_model", "siglip",
  /// "siglip_text_model", "siglip2" (NaFlex) or "siglip2_text_model". Missing fields have the
  /// defaults of transformers 5.23. Throws Error{usage} naming `what` for values that are
  /// impossible or not supported.
  static TextTowerConfig from_json(const Json& config, std::string_view type,
                                   std::string_view what);
  /// The tensors of the tower with its projection, for check_tensors().
  std::vector<TensorTarget> tensors() const;
};

/// The tower's tensors of `file`, which may also have the pictures' tower and tables of numbers.
/// `file` must outlive the result.
SelectedSet text_tower_tensors(const io::TensorSet& file);

class TextTower {
 public:
  /// `weights` must outlive this object and hold exactly config.tensors(). Otherwise throws Error
  /// that lists the tensors that do not fit.
  TextTower(const TextTowerConfig& config, const io::TensorSet& weights, DType compute,
            Device device);

  const TextTowerConfig& config() const { return config_; }

  /// `ids` holds texts one after another, `lengths` the number of ids of each; for SigLIP every
  /// length is config().positions. Returns [N, P], f32, not normalised, on the CPU (on Device::meta
  /// if the tower is there). Throws Error for an id outside the vocabulary, a text that is too
  /// long, or one without an end; Stopped between layers.
  Tensor encode(std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths) const;

 private:
  std::int64_t pooled_token(std::span<const std::int32_t> ids) const;

  TextTowerConfig config_;
  const io::TensorSet& weights_;
  DType compute_;
  Device device_;
  EncoderStack stack_;
};

}  // namespace vfm::models
