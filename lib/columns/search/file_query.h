// Encodes a query for comparison with vectors of clips. The clips' encoder encodes a video or
// picture, and the encoder's text tower encodes a text.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "columns/search/search.h"
#include "media/decode/hardware.h"
#include "text/encoder.h"

namespace vfm::columns {

/// Largest number of tokens of a query. A text tower may have a smaller limit.
inline constexpr int kMostTextTokens = 512;

class FileQuery {
 public:
  /// Decodes the file and computes its vector by builtin:look. Throws Error.
  FileQuery(std::string path, const media::HardwareDecoder* hardware);

  /// Returns the file's vector by the encoder that `config` describes. `config` is "video_encoder"
  /// of sample `key`, or null for builtin:look. Throws Error, which names the sample, if the
  /// encoder is unknown, or if its folder is missing or now has a different encoder.
  const std::vector<float>& vector(const Json& config, const std::string& key);

 private:
  std::vector<float> encode(const Json& config, const std::string& key) const;

  std::string path_;
  const media::HardwareDecoder* hardware_;
  std::vector<float> look_;
  std::mutex mutex_;
  std::map<std::string, std::vector<float>> encoded_;  // vectors by the encoder's config
};

/// Returns whether the encoder also encodes texts, like CLIP and SigLIP.
bool has_texts(const Json& video_encoder);

/// Throws Error{usage} if options.query is a file and options.query_prompt is set.
void refuse_prompt_before_file(const SearchOptions& options);

bool has_words(const std::string& utf8);

/// Returns an encoder for query texts. Its vectors are comparable with embeddings of
/// `text_encoder`. `prompt` precedes the text. If `prompt` is unset, the encoder's query prompt is
/// used. Throws what models::make_text_encoder() throws, and Error if the encoder takes no prompt.
std::unique_ptr<text::TextEncoder> query_encoder(const Json& text_encoder,
                                                 const std::optional<std::string>& prompt);

/// Returns the unit vector of a text by the text tower of `video_encoder`. Throws Error, which
/// names sample `key`, if the encoder's folder is missing, has a different model now, or lacks a
/// text tower or tokenizer.
std::vector<float> encode_text_beside_clips(const std::string& utf8, const Json& video_encoder,
                                            const std::string& key);

}  // namespace vfm::columns
