// What is searched for among vectors of clips: a video or picture by whatever encoder those were
// made with, or a text by its other tower.
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
#include "columns/search.h"
#include "media/hardware.h"
#include "text/encoder.h"

namespace vfm::columns {

/// More than any tower for texts takes: each cuts at its own.
inline constexpr int kMostTextTokens = 512;

class FileQuery {
 public:
  /// Decodes the file for its look. Throws Error.
  FileQuery(std::string path, const media::HardwareDecoder* hardware);

  /// By the encoder of `config`, the "video_encoder" of sample `key`; null is builtin:look. Throws
  /// Error, naming the sample: its encoder is not known here, its folder is gone or holds another
  /// one now.
  const std::vector<float>& vector(const Json& config, const std::string& key);

 private:
  std::vector<float> encode(const Json& config, const std::string& key) const;

  std::string path_;
  const media::HardwareDecoder* hardware_;
  std::vector<float> look_;
  std::mutex mutex_;
  std::map<std::string, std::vector<float>> encoded_;  // by configuration
};

/// Whether the vectors of clips of this "video_encoder" are of a space that texts have vectors in,
/// too: those of CLIP and SigLIP are.
bool has_texts(const Json& video_encoder);

/// Throws Error{usage} where options.query is a file and a prompt is to go before it.
void refuse_prompt_before_file(const SearchOptions& options);

/// Whether a text to search for has any.
bool has_words(const std::string& utf8);

/// What makes of a text what is searched for among embeddings of this "text_encoder": `prompt` goes
/// before it, or what goes before such a text there. Throws Error if it takes none; what
/// models::make_text_encoder() throws.
std::unique_ptr<text::Encoder> query_encoder(const Json& text_encoder,
                                             const std::optional<std::string>& prompt);

/// The vector of a text, of length 1, in that space. Throws Error, naming sample `key`: the folder
/// is gone, holds another model now, or no tower or tokenizer for texts.
std::vector<float> encode_text_beside_clips(const std::string& utf8, const Json& video_encoder,
                                            const std::string& key);

}  // namespace vfm::columns
