// Text encoders: a caption in, one vector per token out, unpadded.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::text {

/// Which encoder, as latents.json and train.json hold it. What is not said is empty.
struct EncoderConfig {
  /// "builtin:hash", "t5", "umt5", "sentence:bert" and the like (one vector for the whole text), or
  /// another program's.
  std::string name;
  std::string path = {}, hash = {};  ///< of an encoder from a folder
  std::optional<std::int64_t> dim = {}, max_tokens = {};
  std::string compute = {};  ///< "f32", "bf16"; of an encoder from a folder
  std::string rule = {};     ///< "mean, normalised"; of a sentence encoder
  /// Of a sentence encoder: what goes before each text, instead of what its folder has for all; and
  /// before a text that is searched for among these.
  std::optional<std::string> prompt = {}, query_prompt = {};
  std::optional<std::int64_t> version = {};  ///< of a built-in one
  std::string unknown = {};  ///< a key that no encoder of the name has: who makes one refuses it

  /// Throws Error{usage}. Of another program's encoder, whose embeddings are trained on as they
  /// are, only name, path, hash and dim are read.
  static EncoderConfig from_json(const Json& json);
  Json to_json() const;
  /// Whether another program made the embeddings: no encoder of that name is here.
  bool foreign() const;
  /// Whether it is a sentence encoder: whatever a text is, its embedding has one token.
  bool one_token() const { return name.starts_with("sentence:"); }
  bool operator==(const EncoderConfig&) const = default;
};

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
  virtual EncoderConfig config() const = 0;
};

/// Builds what `config` describes, such as {.name = "builtin:hash", .dim = 64};
/// models/text_encoder.h also has the encoders with weights. Throws Error{usage} for an unknown
/// name or key.
std::unique_ptr<Encoder> make_encoder(const EncoderConfig& config);

}  // namespace vfm::text
