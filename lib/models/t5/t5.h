// The encoder of T5 and related models: text tokens in, one vector per token out. Inference only.
//
//   x = embedding[ids]
//   for each layer:
//     x += O attention(Q n, K n, V n), n = rmsnorm(x)       unscaled, plus a bias by the distance
//     x += W_o relu(W_i n)                                  T5 v1.0: feed_forward_proj "relu"
//       or W_o (gelu_tanh(W_0 n) * W_1 n), n = rmsnorm(x)   v1.1, umT5: "gated-gelu"
//   x = rmsnorm(x)
//
// T5 takes the bias from one table, in the first layer; umT5 has a table in every layer. Distances
// beyond relative_attention_max_distance share a bucket.
// Weights stay on disk, mapped. They are converted (and put on the GPU) layer by layer while they
// are used, so a model needs little more memory than a layer. x, norms, softmax and bias are f32.
// Products compute in f32 or bf16, never in f16, because T5 exceeds its range.
// Sources: Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text
// transformer" (2020); Shazeer, "GLU variants improve transformer" (2020); Chung et al., "UniMax"
// (2023) for umT5; transformers' T5EncoderModel and UMT5EncoderModel for names and details.
// Shape letters: S tokens of the pack, D width.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/part_cost.h"
#include "tensor/tensor.h"

namespace vfm::models {

struct T5Config {
  int vocabulary = 0, width = 0, head_dim = 0, feed_forward = 0, layers = 0, heads = 0;
  int buckets = 0, max_distance = 0;
  float epsilon = 0;
  bool gated = false;               ///< gated gelu instead of relu
  bool bias_in_each_layer = false;  ///< umT5

  /// Reads the config of an HfComponent of type "t5" or "umt5". Throws Error{usage} naming `what`
  /// for values that are impossible or not supported.
  static T5Config from_json(const Json& config, std::string_view type, std::string_view what);
  /// Number of parameters of the encoder with its embedding.
  std::int64_t parameters() const;
};

class T5 {
 public:
  /// `weights` must outlive this object. Throws Error that lists the tensors that do not fit.
  T5(const T5Config& config, const io::TensorSet& weights, DType compute, Device device);

  const T5Config& config() const { return config_; }
  Device device() const { return device_; }
  DType compute() const { return compute_; }

  /// `ids` holds texts one after another, `lengths` the number of ids of each. Returns [S, D], f32,
  /// on the CPU (on Device::meta if the encoder is there). Throws Error for an id outside the
  /// vocabulary; Stopped between layers.
  Tensor encode(std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths) const;

 private:
  struct Pack;

  Tensor embed(std::span<const std::int32_t> ids) const;
  Tensor weight(const std::string& name, DType dtype) const;
  Tensor bias(int layer, std::int64_t longest) const;
  void attend(Pack& pack, int layer) const;
  void feed_forward(Pack& pack, int layer) const;

  T5Config config_;
  const io::TensorSet& weights_;
  DType compute_;
  Device device_;
};

/// The cost of a text of `tokens` tokens, found on Device::meta. Memory counts the weights that are
/// converted (or put on a GPU) while they are used, but not the mapped file.
PartCost t5_cost(const T5Config& config, std::int64_t tokens, DType stored, DType compute,
                 Device device);

/// Throws Error unless `weights` has the tensors of such an encoder. Reads no values.
void check_t5(const T5Config& config, const io::TensorSet& weights);

/// The bucket of a distance, key - query. Half of the buckets are for keys ahead. In each half the
/// first `buckets` / 4 are exact, and the others grow logarithmically up to `max_distance`.
int t5_bucket(std::int64_t distance, int buckets, int max_distance);

}  // namespace vfm::models
