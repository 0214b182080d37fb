// The configuration of the autoregressive decoder, and what a model of it costs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "models/config_limits.h"
#include "models/decoder/decoder.h"

namespace vfm::models {
namespace {

bool positive(double value) {
  return value > 0 && std::isfinite(value);
}

}  // namespace

std::int64_t DecoderConfig::hidden() const {
  return std::llround(mlp_ratio * width());
}

void DecoderConfig::validate() const {
  need_field(vocabulary > 0 && vocabulary <= 1 << 24, "vocabulary", vocabulary, "1 to 16777216");
  need_field(
      num_attention_heads > 0 && num_attention_heads <= kMostWidth &&
          attention_head_dim <= kMostWidth / num_attention_heads,
      "num_attention_heads", num_attention_heads,
      format("positive, and times 'attention_head_dim', {}, at most 1048576", attention_head_dim));
  need_field(attention_head_dim >= 12 && attention_head_dim % 2 == 0, "attention_head_dim",
             attention_head_dim, "even and at least 12, so that it can be split over three axes");
  need_field(num_key_value_heads >= 0 && num_attention_heads % key_value_heads() == 0,
             "num_key_value_heads", num_key_value_heads,
             format("0 or a divisor of 'num_attention_heads', {}", num_attention_heads));
  need_field(num_layers > 0 && num_layers <= kMostLayers, "num_layers", num_layers, "1 to 4096");
  need_field(positive(mlp_ratio) && mlp_ratio <= 64 && hidden() > 0, "mlp_ratio", mlp_ratio,
             "positive, and at most 64");
  need_field(text_embed_dim >= 0 && text_embed_dim <= kMostWidth, "text_embed_dim", text_embed_dim,
             "0 to 1048576");
  need_field(positive(rope_theta), "rope_theta", rope_theta, "positive");
  need_field(yarn_scale >= 1 && std::isfinite(yarn_scale), "yarn_scale", yarn_scale, "at least 1");
  need_field(yarn_frames > 0, "yarn_frames", yarn_frames, "positive");
  need_field(yarn_betas[1] > 0 && yarn_betas[0] > yarn_betas[1] && std::isfinite(yarn_betas[0]),
             "yarn_betas", format("[{}, {}]", yarn_betas[0], yarn_betas[1]),
             "two positive numbers, the larger one first");
}

void CodeBatch::check(const DecoderConfig& config) const {
  std::int64_t count = 0, text_rows = 0;
  for (const CodeSample& s : samples) {
    if (s.frames <= 0 || s.height <= 0 || s.width <= 0)
      fail("a sample of {}x{}x{} codes", s.frames, s.height, s.width);
    if (s.text_tokens < 1) fail("a sample has no text token; no text is one zero token");
    count += s.codes();
    text_rows += s.text_tokens;
  }
  if (samples.empty()) fail("a pack without samples");
  if (static_cast<std::int64_t>(codes.size()) != count)
    fail("{} codes do not fit the pack, which has {}", codes.size(), count);
  for (const std::int32_t code : codes)
    if (code < 0 || code >= config.vocabulary)
      fail("code {} of a vocabulary of {}", code, config.vocabulary);
  if (config.text_embed_dim == 0) {
    if (text.defined()) fail("text for a model without text");
  } else if (!text.defined() || text.dtype() != DType::f32 ||
             text.shape() != Shape{text_rows, config.text_embed_dim}) {
    fail("text {} is not [{}, {}]", to_string(text.shape()), text_rows, config.text_embed_dim);
  }
}

NetworkCost decoder_cost(const DecoderConfig& config, double tokens, double text_tokens,
                         double pack_tokens, DType compute, Recompute recompute) {
  const std::int64_t d = config.width(), k = config.attention_head_dim;
  const std::int64_t g = config.key_value_heads() * k, e = config.text_embed_dim;
  const std::int64_t of_tokens =
      2 * d * d + 2 * d * g + (e > 0 ? 2 * d * d : 0) + 3 * d * config.hidden();
  const std::int64_t norms = 2 * d + 2 * k + (e > 0 ? d + 2 * k : 0);
  const double layers = config.num_layers, dd = static_cast<double>(d);
  NetworkCost cost;
  cost.parameters = config.num_layers * (of_tokens + 2 * g * e + norms) + d +
                    d * (2 * std::int64_t{config.vocabulary} + 1);

  // As of the diffusion networks; a token sees half of its sample on average, and every token is
  // multiplied with the last matrix.
  const double matrices = 2 * static_cast<double>(of_tokens);
  const double scores = 4 * (tokens / 2) * dd + (e > 0 ? 4 * text_tokens * dd : 0);
  const double text = 4 * static_cast<double>(g * e) * text_tokens / std::max(tokens, 1.0);
  cost.flops_per_token =
      3 * (layers * (matrices + scores + text) + 2 * dd * static_cast<double>(config.vocabulary));

  // What is kept of a token in a layer, in bytes a unit of width: of two sub-layers, or three, the
  // f32 stream and what is added to it; q, k, v before and after their norm, attention's output; of
  // cross-attention q twice and its output; gate and value. Elementwise recomputation leaves out
  // the normed rows, f32 and cast, and the product of gate and value. In backward that product's
  // gradient and those of gate and value stand beside what is kept.
  const double size = compute == DType::bf16 ? 2 : 4, cast = compute == DType::bf16 ? size : 0;
  const double ratio = static_cast<double>(config.hidden()) / dd, cross = e > 0 ? 1 : 0;
  const double qkv = 1 + 2.0 * static_cast<double>(g) / dd;
  const double elementwise = (2 + cross) * 8 + size * (2 * qkv + 1 + 3 * cross + 2 * ratio);
  const double all = elementwise + (2 + cross) * (4 + cast) + size * ratio;
  const double backward = size * 3 * ratio;
  // Outside of the layers: the codes' vectors, and the last norm. The logits become their gradient,
  // which is cast.
  const double v = config.vocabulary, ends = dd * (8 + 2 * cast) + 4 * v;
  const double of_logits = cast * v + dd * size;
  if (recompute == Recompute::block)
    cost.activation_bytes = layers * dd * 4 + std::max(of_logits, dd * (elementwise + backward));
  else
    cost.activation_bytes = layers * dd * (recompute == Recompute::none ? all : elementwise) +
                            std::max(of_logits, dd * backward);
  cost.activation_bytes = pack_tokens * (ends + cost.activation_bytes);
  return cost;
}

PartCost decoder_writing_cost(const DecoderConfig& config, double codes, double text_tokens,
                              DType compute) {
  const NetworkCost whole =
      decoder_cost(config, codes, text_tokens, codes, compute, Recompute::none);
  const double size = static_cast<double>(dtype_size(compute));
  const double keys = 2.0 * config.key_value_heads() * config.attention_head_dim * size;
  PartCost cost;
  cost.parameters = whole.parameters;
  cost.flops = whole.flops_per_token / 3 * codes;  // forward is a third of forward and backward
  // Keys and values of codes and text; two tables of angles.
  cost.activation_bytes =
      config.num_layers * keys * (codes + (config.text_embed_dim > 0 ? text_tokens : 0)) +
      4.0 * codes * config.attention_head_dim;
  return cost;
}

}  // namespace vfm::models
