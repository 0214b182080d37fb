// A query among vectors of clips: a video or picture, encoded by the encoder of those vectors, or a
// text, encoded by its text tower.
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

/// More than any text tower takes; each cuts at its own limit.
inline constexpr int kMostTextTokens = 512;

class FileQuery {
 public:
  /// Decodes the file for its look. Throws Error.
  FileQuery(std::string path, const media::HardwareDecoder* hardware);

  /// The vector by the encoder of `config`, the "video_encoder" of sample `key`; null is
  /// builtin:look. Throws Error, naming the sample, if its encoder is unknown, or its folder is
  /// gone or holds another encoder.
  const std::vector<float>& vector(const Json& config, const std::string& key);

 private:
  std::vector<float> encode(const Json& config, const std::string& key) const;

  std::string path_;
  const media::HardwareDecoder* hardware_;
  std::vector<float> look_;
  std::mutex mutex_;
  std::map<std::string, std::vector<float>> encoded_;  // by configuration
};

/// Whether texts have vectors in the space of this "video_encoder" too, as with CLIP and SigLIP.
bool has_texts(const Json& video_encoder);

/// Throws Error{usage} if options.query is a file and options.query_prompt is set.
void refuse_prompt_before_file(const SearchOptions& options);

/// Whether a text to search for has words.
bool has_words(const std::string& utf8);

/// The encoder of query texts for embeddings of this "text_encoder". `prompt` goes before the text;
/// else the encoder's own query prompt. Throws Error if it takes no prompt; what
/// models::make_text_encoder() throws.
std::unique_ptr<text::Encoder> query_encoder(const Json& text_encoder,
                                             const std::optional<std::string>& prompt);

/// The vector of a text, of length 1, in that space. Throws Error, naming sample `key`: the folder
/// is gone, holds another model now, or no tower or tokenizer for texts.
std::vector<float> encode_text_beside_clips(const std::string& utf8, const Json& video_encoder,
                                            const std::string& key);

}  // namespace vfm::columns
