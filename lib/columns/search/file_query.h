// Encodes a query for comparison with vectors of clips: a video or picture by the clips' encoder, a
// text by that encoder's text tower.
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

/// Above the limit of every text tower; each tower cuts at its own limit.
inline constexpr int kMostTextTokens = 512;

class FileQuery {
 public:
  /// Decodes the file and computes its look. Throws Error.
  FileQuery(std::string path, const media::HardwareDecoder* hardware);

  /// Returns the file's vector by the encoder `config`, the "video_encoder" of sample `key`. If
  /// `config` is null, the encoder is builtin:look. Throws Error, which names the sample, if the
  /// encoder is unknown, or its folder is gone or has a different encoder now.
  const std::vector<float>& vector(const Json& config, const std::string& key);

 private:
  std::vector<float> encode(const Json& config, const std::string& key) const;

  std::string path_;
  const media::HardwareDecoder* hardware_;
  std::vector<float> look_;
  std::mutex mutex_;
  std::map<std::string, std::vector<float>> encoded_;  // by configuration
};

/// Returns true if this "video_encoder" also encodes texts, as CLIP and SigLIP do.
bool has_texts(const Json& video_encoder);

/// Throws Error{usage} if options.query is a file and options.query_prompt is set.
void refuse_prompt_before_file(const SearchOptions& options);

/// Returns true if a query text has words.
bool has_words(const std::string& utf8);

/// Returns an encoder of query texts that fits embeddings of this "text_encoder". `prompt` precedes
/// the text. If `prompt` is unset, the encoder's own query prompt is used. Throws Error if the
/// encoder takes no prompt; what models::make_text_encoder() throws.
std::unique_ptr<text::TextEncoder> query_encoder(const Json& text_encoder,
                                                 const std::optional<std::string>& prompt);

/// Returns the unit vector of a text in the space of `video_encoder`. Throws Error, which names
/// sample `key`, if the encoder's folder is gone, has a different model now, or lacks a text tower
/// or tokenizer.
std::vector<float> encode_text_beside_clips(const std::string& utf8, const Json& video_encoder,
                                            const std::string& key);

}  // namespace vfm::columns
