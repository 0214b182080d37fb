// Autoregressive decoders small enough for tests, and packs of codes for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "models/decoder/decoder.h"
#include "support/noise.h"

namespace vfm {

/// Two layers, a vocabulary of 11, heads of 12 numbers, text of width 6.
inline models::DecoderConfig small_decoder(int heads = 4, int key_heads = 2) {
  models::DecoderConfig c;
  c.vocabulary = 11;
  c.num_attention_heads = heads;
  c.attention_head_dim = 12;
  c.num_key_value_heads = key_heads;
  c.num_layers = 2;
  c.text_embed_dim = 6;
  return c;
}

/// Of 18, 6 and 2 codes, and of 3, 1 and 2 tokens of text.
inline std::vector<models::CodeSample> code_samples() {
  return {{3, 2, 3, 3}, {1, 3, 2, 1}, {2, 1, 1, 2}};
}

/// Of these samples: codes of the whole vocabulary, and noise as text if the network reads one.
inline models::CodeBatch code_pack(const models::DecoderConfig& c,
                                   std::vector<models::CodeSample> samples) {
  models::CodeBatch batch;
  std::int64_t count = 0, text = 0;
  for (const models::CodeSample& sample : samples)
    count += sample.codes(), text += sample.text_tokens;
  batch.samples = std::move(samples);
  for (std::int64_t i = 0; i < count; ++i)
    batch.codes.push_back(static_cast<std::int32_t>((i * i + 3 * i) % c.vocabulary));
  if (c.text_embed_dim > 0) batch.text = noise_tensor({text, c.text_embed_dim}, 2);
  return batch;
}

}  // namespace vfm
