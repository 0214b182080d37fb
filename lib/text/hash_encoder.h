// `builtin:hash`: a text encoder without weights. One token per word; its vector is a fixed random
// function of the word.
//
// A token's vector is the sum of three parts, each of random signs (Philox keyed by a hash of the
// string), scaled to unit variance per element:
//   word     30 %  the whole word, case folded: equal words agree
//   letters  55 %  its character 2-, 3- and 4-grams: misspellings and inflections stay near
//                  (Bojanowski et al., "Enriching word vectors with subword information", 2017)
//   pair     15 %  the word with the previous word: shows word order
// Vectors of unrelated words are orthogonal, except for noise of 1/sqrt(dim).
// It is not a language model: synonyms are as far apart as any two words.
// Same vectors on every machine: signs, sums in a fixed order, one square root.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "text/encoder.h"

namespace vfm::text {

class HashEncoder : public TextEncoder {
 public:
  /// 8 <= dim <= 8192, max_tokens >= 1; throws Error{usage}.
  explicit HashEncoder(int dim = 64, int max_tokens = 512);

  std::string name() const override { return "builtin:hash"; }
  int dim() const override { return dim_; }
  TokenEmbeddings encode(std::string_view utf8) const override;
  int tokens_left_out(std::string_view utf8) const override;
  EncoderConfig config() const override;

 private:
  int dim_, max_tokens_;
};

}  // namespace vfm::text
