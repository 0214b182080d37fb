// What a diffusion network of a configuration costs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/dit/network.h"

namespace vfm::models {
namespace {

/// Matrix elements of a block, by who goes through them.
struct BlockMatrices {
  std::int64_t of_tokens = 0;   ///< each visual token
  std::int64_t of_text = 0;     ///< each text token
  std::int64_t of_samples = 0;  ///< conditioning, once a sample
  std::int64_t vectors = 0;     ///< norms
};

BlockMatrices block_matrices(const NetworkConfig& c) {
  const std::int64_t d = c.width(), k = c.attention_head_dim, e = c.text_embed_dim;
  const std::int64_t a = c.adaln_lora_dim, g = c.key_value_heads() * k;
  BlockMatrices m;
  if (c.type == NetworkType::moviegen) {
    // q and o, k and v; the same of cross-attention, with k and v of the text; three of the MLP.
    m.of_tokens = 2 * d * d + 2 * d * g + 2 * d * d + 3 * d * c.hidden();
    m.of_text = 2 * g * e;
    m.of_samples = 6 * d * d;
    return m;
  }
  const std::int64_t attentions = c.type == NetworkType::stdit ? 3 : 1;
  m.of_tokens = 4 * d * d * attentions + 2 * d * d + 2 * d * c.hidden();
  m.of_text = 2 * d * e;
  m.of_samples = (attentions + 2) * (a * d + 3 * d * a);
  m.vectors = 2 * k * (attentions + 1);
  return m;
}

/// Outside of the blocks.
std::int64_t other_parameters(const NetworkConfig& c) {
  const std::int64_t d = c.width(), a = c.adaln_lora_dim;
  const auto& p = c.patch_size;
  const std::int64_t patch = std::int64_t{p[0]} * p[1] * p[2];
  std::int64_t count =
      (c.in_channels + (c.concat_padding_mask ? 1 : 0)) * patch * d + d * patch * c.out_channels;
  if (c.type == NetworkType::moviegen)
    count += 4 * d * d + 2 * d * d;  // two embedders of two matrices; the last modulation
  else
    count += d * d + 3 * d * d + d + a * d + 2 * d * a;  // time: two, and a norm; the last AdaLN
  if (c.learnable_positions || c.type == NetworkType::moviegen)
    for (std::size_t i = 0; i < 3; ++i)
      count += c.max_size[i] / p[i] * d;
  return count;
}

/// What the tape keeps of a token in a block, in bytes a unit of width, and without the norms' and
/// the activation's results.
struct Kept {
  double all = 0, elementwise = 0;
};

Kept kept_of_token(const NetworkConfig& c, DType compute) {
  const double d = c.width(), size = compute == DType::bf16 ? 2 : 4;
  const double ratio = static_cast<double>(c.hidden()) / d;
  Kept kept;
  if (c.type == NetworkType::moviegen) {
    // f32 streams of three residuals; normed outputs (2); q, k, v; attention's output and its
    // projection (2); the stream in the compute dtype, q, the output and its projection of
    // cross-attention (4); the MLP's gate and value, their product and its projection.
    const double kv = 2.0 * c.key_value_heads() / c.num_attention_heads;
    kept.all = 12 + size * (2 + 1 + kv + 2 + 4 + 3 * ratio + 1);
    kept.elementwise = kept.all - size * (2 + ratio);
    return kept;
  }
  // f32 streams of the three residuals (3 * 4 bytes); in the compute dtype their normed outputs
  // (3), q, k, v before and after the norm (6), the attention output and its projection (2), the
  // same of cross-attention with q twice (4), the MLP's two hidden rows (2 * ratio) and its output
  // (1). Elementwise recomputation leaves out the normed outputs and the second hidden row. The
  // other two self-attentions of an ST-DiT keep a stream, a norm, six of q, k, v and two outputs
  // each, and the temporal one q, k, v and its output in the other order.
  const bool stdit = c.type == NetworkType::stdit;
  kept.all = 12 + size * (16 + 2 * ratio) + (stdit ? 8 + size * (2 * 9 + 4) : 0);
  kept.elementwise = kept.all - size * (3 + (stdit ? 2 : 0) + ratio);
  return kept;
}

}  // namespace

NetworkCost network_cost(const NetworkConfig& config, double tokens, double text_tokens,
                         double pack_tokens, DType compute, Recompute recompute) {
  const double d = config.width(), layers = config.num_layers;
  const BlockMatrices m = block_matrices(config);
  NetworkCost cost;
  cost.parameters = config.num_layers * (m.of_tokens + m.of_text + m.of_samples + m.vectors) +
                    other_parameters(config);

  // Multiply-adds of a token, twice; three times for forward and backward. A token attends to
  // `tokens` of its sample and `text_tokens` of text; the projection of the text is shared by the
  // sample's tokens. AdaLN, embedders and both ends are left out (below 0.2 %), as is
  // recomputation; of an ST-DiT also the attention in space and in time, which depends on the shape
  // of the sample and is small beside that in full.
  const double matrices = 2 * static_cast<double>(m.of_tokens);
  const double scores = 4 * tokens * d + 4 * text_tokens * d;
  const double text = 2 * static_cast<double>(m.of_text) * text_tokens / std::max(tokens, 1.0);
  cost.flops_per_token = 3 * layers * (matrices + scores + text);
  cost.weight_flops = layers * (matrices + text);

  // With recomputation of blocks only the stream between them stays, and one block's worth exists
  // at a time. In backward there are the MLP's hidden rows and their gradients once more, and the
  // gradients of the stream and of a branch.
  const Kept kept = kept_of_token(config, compute);
  const double size = static_cast<double>(dtype_size(compute));
  const double rows = config.type == NetworkType::moviegen ? 3 : 2;
  const double backward = size * (rows * static_cast<double>(config.hidden()) / d + 1) + 8;
  const double bytes = recompute == Recompute::none          ? layers * kept.all
                       : recompute == Recompute::elementwise ? layers * kept.elementwise
                                                             : layers * 4 + kept.elementwise;
  // Positions, and the stream that enters.
  cost.activation_bytes = pack_tokens * d * (bytes + 8 + backward);
  return cost;
}

}  // namespace vfm::models
