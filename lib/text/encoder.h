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

/// The configuration of an encoder, as in latents.json and train.json. Missing fields are empty.
struct EncoderConfig {
  /// "builtin:hash", "t5", "umt5", "sentence:bert" and the like (one vector for the whole text), or
  /// another program's.
  std::string name;
  std::string path = {}, hash = {};  ///< of an encoder from a folder
  std::optional<std::int64_t> dim = {}, max_tokens = {};
  std::string compute = {};  ///< "f32", "bf16"; only of an encoder from a folder
  std::string rule = {};     ///< "mean, normalised"; only of a sentence encoder
  /// For a sentence encoder: the text before each text, instead of its folder's; and before a query
  /// among these.
  std::optional<std::string> prompt = {}, query_prompt = {};
  std::optional<std::int64_t> version = {};  ///< only of a built-in encoder
  std::string unknown = {};                  ///< an unknown key, which make_encoder() refuses

  /// Throws Error{usage}. For another program's encoder, whose embeddings are used unchanged, it
  /// reads only name, path, hash and dim.
  static EncoderConfig from_json(const Json& json);
  Json to_json() const;
  /// Whether another program made the embeddings: no encoder here has that name.
  bool foreign() const;
  /// Whether it is a sentence encoder: the embedding of any text has one token.
  bool one_token() const { return name.starts_with("sentence:"); }
  bool operator==(const EncoderConfig&) const = default;
};

/// `values` is (tokens, dim), row-major. With builtin:hash an empty text has no tokens.
struct TokenEmbeddings {
  std::vector<float> values;
  int tokens = 0;
  int dim = 0;
};

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  virtual std::string name() const = 0;  ///< "builtin:hash"
  virtual int dim() const = 0;
  /// Any UTF-8; malformed bytes are replaced by U+FFFD. At most max_tokens tokens, the rest is cut.
  virtual TokenEmbeddings encode(std::string_view utf8) const = 0;
  /// Encodes each of `texts`, in order; faster than one by one if a model runs. The last bits may
  /// depend on the other texts.
  virtual std::vector<TokenEmbeddings> encode_all(const std::vector<std::string>& texts) const;
  /// The number of tokens that encode() cuts from the end of a text.
  virtual int tokens_left_out(std::string_view utf8) const = 0;
  /// The configuration to rebuild it, stored with latents and models.
  virtual EncoderConfig config() const = 0;
};

/// Builds the encoder of `config`, such as {.name = "builtin:hash", .dim = 64};
/// models/text_encoder.h also has the encoders with weights. Throws Error{usage} for an unknown
/// name or key.
std::unique_ptr<TextEncoder> make_encoder(const EncoderConfig& config);

}  // namespace vfm::text
