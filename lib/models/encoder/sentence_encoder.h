// Sentence encoders: one vector for a whole text, by a model in a folder
// (models/encoder/sentence_folder.h). Used as a text::TextEncoder, a sentence encoder gives one
// "token" per text.
//
//   {"name": "sentence:bert", "path": "/models/all-MiniLM-L6-v2", "hash": "...", "dim": 384,
//    "max_tokens": 256, "compute": "f32", "rule": "mean, normalised"}
//
// With prompts there are also "prompt" and "query_prompt" (text/encoder.h).
//
// "sentence:clip" and "sentence:siglip" are text towers, whose vectors are compared with those of
// pictures. The result of a text depends on the texts encoded with it only in the last bits. Texts
// are not padded, or all padded to one length, and texts of a pack do not see each other.
// Thread-safety: free functions, any thread; encoders as text/encoder.h says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "models/text_encoder.h"

namespace vfm::models {

/// Describes the encoder of a folder: name, path, hash, dim, rule, and the most tokens of a text:
/// `max_tokens`, or fewer if the model takes fewer. Throws Error{usage}.
text::EncoderConfig sentence_encoder_config(const std::string& folder, int max_tokens,
                                            DType compute);

/// The same for texts that will be searched. `prompt` goes before these texts, `query_prompt`
/// before queries. What is not given comes from the folder (SentencePrompts). If neither is given
/// and the folder has none, the description has none.
text::EncoderConfig searched_sentence_config(const std::string& folder, int max_tokens,
                                             DType compute,
                                             const std::optional<std::string>& prompt,
                                             const std::optional<std::string>& query_prompt);

/// The encoder of a folder, with the device, the ranks and the share of `options`. The hash in `as`
/// must be empty or the folder's, and the prompts are those in `as`. Throws Error{usage}.
std::unique_ptr<text::TextEncoder> make_sentence_encoder(const std::string& folder, int max_tokens,
                                                         DType compute,
                                                         const TextEncoderOptions& options,
                                                         const text::EncoderConfig& as = {});

/// Reads no weights. Throws what make_sentence_encoder() throws, except for a wrong hash.
TextEncoderFolder inspect_sentence_encoder(const std::string& folder, int max_tokens,
                                           DType compute);

}  // namespace vfm::models
