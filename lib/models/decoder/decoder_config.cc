// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_config.h"

#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "models/config_limits.h"

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
  need_field(num_attention_heads > 0 && num_attention_heads <= kMostWidth &&
                 attention_head_dim <= kMostWidth / num_attention_heads,
             "num_attention_heads", num_attention_heads,
             vfm::format("positive, and times 'attention_head_dim', {}, at most 1048576",
                         attention_head_dim));
  need_field(attention_head_dim >= 12 && attention_head_dim % 2 == 0, "attention_head_dim",
             attention_head_dim, "even and at least 12, so that it can be split over three axes");
  need_field(num_key_value_heads >= 0 && num_attention_heads % key_value_heads() == 0,
             "num_key_value_heads", num_key_value_heads,
             vfm::format("0 or a divisor of 'num_attention_heads', {}", num_attention_heads));
  need_field(stream_width >= 0 && stream_width <= kMostWidth && stream_width % 2 == 0, "width",
             stream_width, "even, and at most 1048576; 0: that of the heads");
  need_field(num_layers > 0 && num_layers <= kMostLayers, "num_layers", num_layers, "1 to 4096");
  need_field(positive(mlp_ratio) && mlp_ratio <= 64 && hidden() > 0, "mlp_ratio", mlp_ratio,
             "positive, and at most 64");
  need_field(text_embed_dim >= 0 && text_embed_dim <= kMostWidth, "text_embed_dim", text_embed_dim,
             "0 to 1048576");
  need_field(positive(rope_theta), "rope_theta", rope_theta, "positive");
  need_field(yarn_scale >= 1 && std::isfinite(yarn_scale), "yarn_scale", yarn_scale, "at least 1");
  need_field(yarn_frames > 0, "yarn_frames", yarn_frames, "positive");
  need_field(yarn_rows >= 0, "yarn_rows", yarn_rows, "0, or positive");
  need_field(start_token || read_positions, "read_positions", read_positions,
             "true where 'start_token' is false: tokens are at the codes that they read");
  need_field(yarn_betas[1] > 0 && yarn_betas[0] > yarn_betas[1] && std::isfinite(yarn_betas[0]),
             "yarn_betas", vfm::format("[{}, {}]", yarn_betas[0], yarn_betas[1]),
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

}  // namespace vfm::models
