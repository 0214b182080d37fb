// The text encoder `builtin:hash`, which has no weights. Each word is one token. The vector of a
// word is a fixed random function of the word.
//
// A token's vector is the sum of three parts. Each part has random signs (Philox with a hash of the
// string as key), scaled so that each element of the sum has variance 1:
//   word     30 %  the whole word, case folded; equal for equal words
//   letters  55 %  its character 2-, 3- and 4-grams; similar for misspellings and inflections
//                  (Bojanowski et al., "Enriching word vectors with subword information", 2017)
//   pair     15 %  the word with the previous word; depends on word order
// Vectors of different words are orthogonal, except for noise of 1/sqrt(dim). The encoder is not a
// language model: synonyms are not more similar than other words. Vectors are equal on all
// machines. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "text/encoder.h"

namespace vfm::text {

class HashEncoder : public TextEncoder {
 public:
  /// Throws Error{usage} unless 8 <= dim <= 8192 and max_tokens >= 1.
  explicit HashEncoder(int dim = 64, int max_tokens = 512);

  int dim() const override { return dim_; }
  TokenEmbeddings encode(std::string_view utf8) const override;
  int tokens_left_out(std::string_view utf8) const override;
  EncoderConfig config() const override;

 private:
  int dim_, max_tokens_;
};

}  // namespace vfm::text
