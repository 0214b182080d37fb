// The "model" of a tokenizer.json, which converts pieces of text to ids of a vocabulary.
//
//   Unigram    the tokens of a piece with the highest sum of scores (Viterbi)
//   BPE        characters, merged pair by pair in the order of training
//   WordPiece  the longest token that fits, repeatedly
//
// Sources: Kudo, "Subword regularization" (2018); Sennrich et al., "Neural machine translation of
// rare words with subword units" (2016); Devlin et al., "BERT" (2019); huggingface/tokenizers,
// models/, for text that is not in the vocabulary. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::text {

/// A hash that finds a string_view without a copy.
struct StringHash : std::hash<std::string_view> {
  using is_transparent = void;
};
using Vocabulary = std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>>;

std::optional<std::int32_t> find(const Vocabulary& vocabulary, std::string_view token);

/// Appends the id of a byte token, such as <0x41>, for each byte of `text`. If one of these tokens
/// is not in the vocabulary, returns false and appends nothing.
bool append_bytes(const Vocabulary& vocabulary, std::string_view text,
                  std::vector<std::int32_t>& ids);

class SubwordModel {
 public:
  explicit SubwordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~SubwordModel() = default;
  /// Appends the ids of a piece. The piece must not be empty.
  virtual void encode(std::string_view piece, std::vector<std::int32_t>& ids) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Vocabulary vocabulary_;
};

// These three functions make a model from the object "model". `vocabulary` is the member "vocab" of
// "model", if "vocab" is an object. For invalid or unsupported settings they throw Error{usage},
// which names `what`.
std::unique_ptr<SubwordModel> make_unigram(const Json& model, std::string_view what);
std::unique_ptr<SubwordModel> make_bpe(const Json& model, Vocabulary vocabulary,
                                       std::string_view what);
std::unique_ptr<SubwordModel> make_word_piece(const Json& model, Vocabulary vocabulary,
                                              std::string_view what);

}  // namespace vfm::text
