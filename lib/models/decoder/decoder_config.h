// The configuration of an autoregressive decoder (models/decoder/decoder.h), and the packs of codes
// that it takes.
//
// `start_token` and `read_positions` choose one of three ways in which tokens stand for codes:
//
//   start_token   read_positions   token i reads        at the position of   and predicts
//   yes           no               code i - 1, start    code i               code i
//   yes           yes              code i - 1, start    code i - 1           code i
//   no            yes              code i               code i               code i + 1
//
// Models made here use the first way. The models of Cosmos-1.0 with text, 5B and 13B, use the
// second. Their start token has the position of the first code, but no absolute position. The
// models of Cosmos-1.0 without text, 4B and 12B, use the third. They cannot predict the first code,
// so they only continue videos. Source: the public code of Cosmos-1.0 (cosmos-predict1,
// autoregressive/networks/transformer.py and tokenizer/tokenizer.py).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nn/cp_kind.h"
#include "tensor/tensor.h"

namespace vfm::nn {
struct NetworkLayout;
}

namespace vfm::models {

struct DecoderConfig {
  int vocabulary = 64000;
  int num_attention_heads = 32, attention_head_dim = 128;
  int num_key_value_heads = 8;  ///< divides the heads; 0: as many as heads
  int num_layers = 16;
  int stream_width = 0;    ///< width of the residual stream; 0: number of heads times their dim
  double mlp_ratio = 3.5;  ///< hidden width of the MLP / width; the hidden width is rounded
  int text_embed_dim = 0;  ///< 0: no text, and no cross-attention
  double rope_theta = 500000;
  double yarn_scale = 1;  ///< how many times longer than yarn_frames videos may be; 1: no YaRN
  int yarn_frames = 3;    ///< trained latent frames, in which YaRN counts rotations
  int yarn_rows = 0;      ///< trained latent rows and columns; 0 or yarn_scale 1: no YaRN there
  std::array<double, 2> yarn_betas = {4, 1};  ///< fast, slow: kept above, fully stretched below
  bool start_token = true;                    ///< false: the first code is always given
  bool read_positions = false;  ///< a token has the position of the code it reads, not of the next
  bool absolute_positions = false;  ///< sinusoids of frame, row and column before each layer

  int heads_width() const { return num_attention_heads * attention_head_dim; }
  int width() const { return stream_width > 0 ? stream_width : heads_width(); }
  int key_value_heads() const {
    return num_key_value_heads > 0 ? num_key_value_heads : num_attention_heads;
  }
  nn::HeadShape heads() const {
    return {num_attention_heads, key_value_heads(), attention_head_dim};
  }
  std::int64_t hidden() const;
  int table_rows() const { return vocabulary + (start_token ? 1 : 0); }  ///< of the embeddings
  /// Throws Error{usage} naming the field.
  void validate() const;
};

/// Throws Error{usage}, which names the nearest possible layout, for a layout that the decoder
/// cannot have.
void check_layout(const DecoderConfig& config, const nn::NetworkLayout& layout);

/// One video, or image, of a pack.
struct CodeSample {
  int frames = 1, height = 0, width = 0;  ///< of the latent
  int text_tokens = 1;                    ///< >= 1 if the model has text; "no text": one zero token
  std::int64_t codes() const { return std::int64_t{frames} * height * width; }
};

struct CodeBatch {
  std::vector<CodeSample> samples;
  std::vector<std::int32_t> codes;  ///< each sample's (T, H, W), one after the other
  Tensor text;                      ///< f32 (L, E), or undefined for a model without text

  /// Throws Error unless samples, codes and text fit each other and the configuration.
  void check(const DecoderConfig& config) const;
};

}  // namespace vfm::models
