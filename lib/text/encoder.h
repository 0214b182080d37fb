// Text encoders: a caption in, one vector per token out, unpadded.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace vfm::text {

/// `values` is (tokens, dim), row-major. Of builtin:hash an empty text has no tokens.
struct TokenEmbeddings {
  std::vector<float> values;
  int tokens = 0;
  int dim = 0;
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  virtual std::string name() const = 0;  ///< "builtin:hash"
  virtual int dim() const = 0;
  /// Any UTF-8; malformed bytes are replaced by U+FFFD. At most max_tokens tokens, the rest is cut.
  virtual TokenEmbeddings encode(std::string_view utf8) const = 0;
  /// Each of `texts`, in order; faster than one by one where there is a model to run. The last bits
  /// may depend on which texts come together.
  virtual std::vector<TokenEmbeddings> encode_all(const std::vector<std::string>& texts) const;
  /// How many tokens encode() cuts from the end of a text.
  virtual int tokens_left_out(std::string_view utf8) const = 0;
  /// All that is needed to rebuild it, stored with latents and models.
  virtual Json config() const = 0;
};

/// Builds what `config` describes, {"name":"builtin:hash","dim":64}; models/text_encoder.h also has
/// the encoders with weights. Throws Error{usage} for an unknown name or key.
std::unique_ptr<Encoder> make_encoder(const Json& config);

}  // namespace vfm::text
