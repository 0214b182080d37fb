// The configuration of the diffusion transformer, and what a model of it costs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/network.h"

namespace vfm::models {
namespace {

void need(bool condition, const char* field, const char* what) {
  if (!condition) fail_usage("model configuration: '{}' must be {}", field, what);
}

}  // namespace

void DitConfig::validate() const {
  need(in_channels > 0, "in_channels", "positive");
  need(out_channels > 0, "out_channels", "positive");
  need(num_attention_heads > 0, "num_attention_heads", "positive");
  need(attention_head_dim >= 12 && attention_head_dim % 2 == 0, "attention_head_dim",
       "even and at least 12, so that it can be split over three axes");
  need(num_layers > 0, "num_layers", "positive");
  need(mlp_ratio > 0 && std::isfinite(mlp_ratio) && mlp_ratio * width() >= 1, "mlp_ratio",
       "positive");
  need(text_embed_dim > 0, "text_embed_dim", "positive");
  need(adaln_lora_dim > 0, "adaln_lora_dim", "positive");
  for (std::size_t i = 0; i < 3; ++i) {
    need(patch_size[i] > 0, "patch_size", "positive");
    need(max_size[i] >= patch_size[i], "max_size", "at least the patch size");
    need(rope_scale[i] > 0 && std::isfinite(rope_scale[i]), "rope_scale", "positive");
  }
}

std::int64_t DitSample::tokens(const DitConfig& config) const {
  const auto& p = config.patch_size;
  return std::int64_t{frames / p[0]} * (height / p[1]) * (width / p[2]);
}

void DitBatch::check(const DitConfig& config) const {
  std::int64_t latent_values = 0, text_rows = 0;
  const auto& p = config.patch_size;
  for (const DitSample& s : samples) {
    if (s.frames <= 0 || s.height <= 0 || s.width <= 0 || s.frames % p[0] || s.height % p[1] ||
        s.width % p[2])
      fail("a latent of {}x{}x{} is not made of patches of {}x{}x{}", s.frames, s.height, s.width,
           p[0], p[1], p[2]);
    if (s.text_tokens < 1) fail("a sample has no text token; no text is one zero token");
    latent_values += std::int64_t{s.frames} * s.height * s.width * config.in_channels;
    text_rows += s.text_tokens;
  }
  if (samples.empty()) fail("a pack without samples");
  if (latents.dtype() != DType::f32 || latents.elements() != latent_values)
    fail("latents {} do not fit the pack, which has {} values", to_string(latents.shape()),
         latent_values);
  if (text.dtype() != DType::f32 || text.shape() != Shape{text_rows, config.text_embed_dim})
    fail("text {} is not [{}, {}]", to_string(text.shape()), text_rows, config.text_embed_dim);
}

DitCost dit_cost(const DitConfig& config, double tokens, double text_tokens, double pack_tokens,
                 DType compute, Recompute recompute) {
  const std::int64_t d = config.width(), layers = config.num_layers, k = config.attention_head_dim;
  const std::int64_t e = config.text_embed_dim, a = config.adaln_lora_dim;
  const auto hidden = static_cast<std::int64_t>(config.mlp_ratio * static_cast<double>(d));
  const auto& p = config.patch_size;
  const std::int64_t patch = std::int64_t{p[0]} * p[1] * p[2];
  DitCost cost;

  // Per block: self q, k, v, o; cross q, o and k, v; the MLP; three AdaLN pairs; four head norms.
  const std::int64_t block =
      4 * d * d + 2 * d * d + 2 * d * e + 2 * d * hidden + 3 * (a * d + 3 * d * a) + 4 * k;
  std::int64_t ends = (config.in_channels + (config.concat_padding_mask ? 1 : 0)) * patch * d +
                      d * patch * config.out_channels;
  ends += d * d + 3 * d * d + d;  // time: linear_1, linear_2, norm
  ends += a * d + 2 * d * a;      // the last AdaLN
  if (config.learnable_positions)
    for (std::size_t i = 0; i < 3; ++i)
      ends += config.max_size[i] / p[i] * d;
  cost.parameters = layers * block + ends;

  // Multiply-adds of a token, twice; three times for forward and backward. A token attends to
  // `tokens` of its sample and `text_tokens` of text; the projection of the text is shared by the
  // sample's tokens. AdaLN, embedders and both ends are left out (below 0.2 %), as is
  // recomputation.
  const double dd = static_cast<double>(d);
  const double matrices = 2 * (6 * dd * dd + 2 * dd * static_cast<double>(hidden));
  const double scores = 4 * tokens * dd + 4 * text_tokens * dd;
  const double text = 4 * static_cast<double>(e) * dd * text_tokens / std::max(tokens, 1.0);
  cost.flops_per_token = 3 * static_cast<double>(layers) * (matrices + scores + text);

  // What the tape keeps of a token in a block, in units of the width: f32 streams of the three
  // residuals (3 * 4 bytes); in the compute dtype their normed outputs (3), q, k, v before and
  // after the norm (6), the attention output and its projection (2), the same of cross-attention
  // with q twice (4), the MLP's two hidden rows (2 * ratio) and its output (1). Elementwise
  // recomputation leaves out the normed outputs and the second hidden row. With that of blocks only
  // the stream between them stays, and one block's worth exists at a time.
  const double size = compute == DType::bf16 ? 2 : 4;
  const double ratio = static_cast<double>(hidden) / dd;
  const double kept = 12 + size * (16 + 2 * ratio);
  const double blocks = static_cast<double>(layers);
  const double lean = kept - size * (3 + ratio);
  const double bytes = recompute == Recompute::none          ? blocks * kept
                       : recompute == Recompute::elementwise ? blocks * lean
                                                             : blocks * 4 + lean;
  cost.activation_bytes = pack_tokens * dd * (bytes + 8);  // positions, and the stream that enters
  return cost;
}

std::string_view recompute_name(Recompute recompute) {
  return recompute == Recompute::none          ? "none"
         : recompute == Recompute::elementwise ? "elementwise"
                                               : "block";
}

}  // namespace vfm::models
