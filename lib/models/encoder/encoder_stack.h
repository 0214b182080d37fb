// The layers that BERT, CLIP, SigLIP, DINOv2 and V-JEPA 2 have in common: a stack of transformer
// layers with layer norms and biases. Inference only.
//
//   norm_first                                    else (BERT)
//   x += s1 * (O attention(Q n, K n, V n) + o)    x = norm(x + O attention(Q x, K x, V x) + o)
//       with n = norm1(x)
//   x += s2 * (W2 gelu(W1 n + b1) + b2)           x = norm(x + W2 gelu(W1 x + b1) + b2)
//       with n = norm2(x)
//
// Only DINOv2 has the vectors s1 and s2. In V-JEPA 2 the place of a token turns Q n and K n. The
// samples of a pack do not see each other, so the result of a sample does not depend on the rest of
// the pack.
// Weights stay on disk, mapped. They are converted (and put on the GPU) layer by layer while they
// are used, once per call. So samples in one call share this work. x and norms are f32; products
// compute in f32 or bf16.
// Sources: Devlin et al., "BERT" (2019); Radford et al., "Learning transferable visual models from
// natural language supervision" (2021); Zhai et al., "Sigmoid loss for language image pre-training"
// (2023); Oquab et al., "DINOv2" (2023); Assran et al., "V-JEPA 2" (2025).
// Shape letters: S tokens of the pack, D width.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_set.h"
#include "models/folder/load_tensors.h"
#include "ops/pointwise/activations.h"
#include "ops/position/positions.h"
#include "tensor/tensor.h"

namespace vfm::models {

struct EncoderStackConfig {
  int width = 0, heads = 0, feed_forward = 0, layers = 0;
  float epsilon = 0;
  ops::ActivationKind activation = ops::ActivationKind::gelu;
  bool norm_first = true;
  bool causal = false;       ///< a token sees only itself and earlier tokens
  bool layer_scale = false;  ///< layers have s1 and s2
  /// [T, K], on the device: the places of a sample's T tokens turn the queries and keys in its
  /// heads of K elements (turn_neighbours in ops/position/turn_heads.h). Undefined: nothing is
  /// turned.
  ops::RotaryAngles turns;

  /// Throws Error{usage} naming `what` for values that no model has.
  void check(const std::string& what) const;
};

/// The parts of a layer. Every part except the scales has a ".weight" and a ".bias".
enum class EncoderPart { query, key, value, out, norm1, norm2, up, down, scale1, scale2 };

/// The name of a part of layer `layer` in the file, without ".weight" or ".bias". For scales the
/// whole name.
using EncoderNames = std::function<std::string(int layer, EncoderPart part)>;

class EncoderStack {
 public:
  /// `weights` must outlive this object and hold the tensors that tensors() lists.
  EncoderStack(const EncoderStackConfig& config, EncoderNames names, const io::TensorSet& weights,
               DType compute, Device device);

  const EncoderStackConfig& config() const { return config_; }
  /// All tensors of the layers with their shapes, for check_tensors().
  static std::vector<TensorTarget> tensors(const EncoderStackConfig& config,
                                           const EncoderNames& names);

  /// x [S, D], f32, on the device, holds the tokens of samples one after another; `lengths` has the
  /// number of tokens of each sample. Returns the output of the last layer, [S, D]. How a product
  /// is summed may depend on its number of rows. With `apart`, each sample has products of its own,
  /// and so the bits that it has when it is alone. Throws Stopped between layers.
  Tensor forward(const Tensor& x, std::span<const std::int64_t> lengths, bool apart = false) const;

 private:
  EncoderStackConfig config_;
  EncoderNames names_;
  const io::TensorSet& weights_;
  DType compute_;
  Device device_;
};

/// A tensor of the file in `dtype` on `device`. Not copied if it is stored so already. On
/// Device::meta only the shape.
Tensor use_weight(const io::TensorView& view, DType dtype, Device device);

}  // namespace vfm::models
