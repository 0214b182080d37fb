// Text encoders, which convert a caption to one vector for each token, without padding.
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
  /// "builtin:hash", the name of a model, such as "t5" or the sentence encoder "sentence:bert" (one
  /// vector for the whole text), or the name of another program's encoder.
  std::string name;
  std::string path = {}, hash = {};  ///< Folder of the encoder and hash of its files, or empty.
  std::optional<std::int64_t> dim = {}, max_tokens = {};
  std::string compute = {};  ///< "f32" or "bf16" for an encoder from a folder.
  std::string rule = {};     ///< "mean, normalised" or similar, for a sentence encoder.
  /// For a sentence encoder, `prompt` is put before each text, and `query_prompt` before each
  /// query. If not set, the folder's prompts are used.
  std::optional<std::string> prompt = {}, query_prompt = {};
  bool clean = false;  ///< texts go through text::clean_prompt() (text/clean_prompt.h) first
  std::optional<std::int64_t> version = {};  ///< Version of a built-in encoder.
  std::string unknown = {};                  ///< An unknown key, which make_encoder() refuses.
  bool others = false;                       ///< Another program made the embeddings.

  Json to_json() const;
  bool foreign() const { return others; }
  /// Returns whether the encoder is a sentence encoder, so that the embedding of any text has one
  /// token.
  bool one_token() const { return name.starts_with("sentence:"); }
  bool operator==(const EncoderConfig&) const = default;
};

/// The vectors of a text. `values` has shape (tokens, dim), row-major. With builtin:hash an empty
/// text has no tokens.
struct TokenEmbeddings {
  std::vector<float> values;
  int tokens = 0;
  int dim = 0;
};

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  std::string name() const { return config().name; }
  virtual int dim() const = 0;
  /// Encodes any text in UTF-8. Malformed bytes become U+FFFD. Uses at most max_tokens tokens, and
  /// ignores the rest of the text.
  virtual TokenEmbeddings encode(std::string_view utf8) const = 0;
  /// Encodes all `texts`, in order. If a model runs, encode_all() is faster than encode() for each
  /// text. The last bits of a vector may depend on the other texts.
  virtual std::vector<TokenEmbeddings> encode_all(const std::vector<std::string>& texts) const;
  /// Returns the number of tokens at the end of a text that encode() ignores.
  virtual int tokens_left_out(std::string_view utf8) const = 0;
  /// Returns the configuration for make_encoder(), which is stored with latents and models.
  virtual EncoderConfig config() const = 0;
};

/// Makes the encoder of `config`, such as {.name = "builtin:hash", .dim = 64}. Throws Error{usage}
/// for an unknown name or key. models/text_encoder.h also makes encoders with weights.
std::unique_ptr<TextEncoder> make_encoder(const EncoderConfig& config);

}  // namespace vfm::text
