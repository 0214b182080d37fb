// The encoder of BERT, RoBERTa and XLM-RoBERTa: text tokens in, one vector per token out. Inference
// only.
//
//   x = norm(word[ids] + position[0, 1, ...] + type[0])
//   for each layer (models/encoder/encoder_stack.h, with norms at the end):
//     x = norm(x + attention), x = norm(x + feed-forward)
//
// In RoBERTa the first position is one more than the number of the padding token.
// Sources: Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language
// understanding" (2019); Liu et al., "RoBERTa" (2019); Conneau et al., "Unsupervised cross-lingual
// representation learning at scale" (2020); transformers' BertModel, RobertaModel and
// XLMRobertaModel for names and details.
// Shape letters: S tokens of the pack, D width.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/encoder_stack.h"
#include "tensor/tensor.h"

namespace vfm::models {

struct BertConfig {
  EncoderStackConfig stack;
  int vocabulary = 0, positions = 0, token_types = 0;
  int first_position = 0;

  /// Reads the config of an HfComponent of type "bert", "roberta" or "xlm-roberta". Missing fields
  /// have the defaults of transformers 5.23. Throws Error{usage} naming `what` for values that are
  /// impossible or not supported.
  static BertConfig from_json(const Json& config, std::string_view type, std::string_view what);
  /// Number of tokens of the longest text that has a position for each token.
  int most_tokens() const { return positions - first_position; }
  /// The tensors of the encoder alone, for check_tensors().
  std::vector<TensorTarget> tensors() const;
};

/// The encoder's tensors of `file`. Removes a prefix ("bert.", "roberta.") from names. Leaves out a
/// pooler, heads and tables of numbers. `file` must outlive the result.
SelectedSet bert_tensors(const io::TensorSet& file);

class Bert {
 public:
  /// `weights` must outlive this object and hold exactly config.tensors(). Otherwise throws Error
  /// that lists the tensors that do not fit.
  Bert(const BertConfig& config, const io::TensorSet& weights, DType compute, Device device);

  const BertConfig& config() const { return config_; }

  /// `ids` holds texts one after another, `lengths` the number of ids of each. Returns [S, D], f32,
  /// on the CPU (on Device::meta if the encoder is there). Throws Error for an id outside the
  /// vocabulary or a text that is too long; Stopped between layers.
  Tensor encode(std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths) const;

 private:
  BertConfig config_;
  const io::TensorSet& weights_;
  Device device_;
  EncoderStack stack_;
};

}  // namespace vfm::models
