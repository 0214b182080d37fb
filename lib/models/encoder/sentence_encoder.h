// Sentence encoders: one vector for a whole text, by a model in a folder as
// models/encoder/sentence_folder.h has it. As a text::TextEncoder it gives one "token" a text.
//
//   {"name": "sentence:bert", "path": "/models/all-MiniLM-L6-v2", "hash": "...", "dim": 384,
//    "max_tokens": 256, "compute": "f32", "rule": "mean, normalised"}
//
// and where something goes before texts "prompt" and "query_prompt" (text/encoder.h).
//
// "sentence:clip" and "sentence:siglip" are text towers, whose vectors are compared with pictures'.
// The result of a text does not depend on which texts come with it, but for the last bits: nothing
// is padded, or all to one length, and texts of a pack do not see each other.
// Thread-safety: free functions, any thread; encoders as text/encoder.h says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "models/part_cost.h"
#include "tensor/tensor.h"
#include "text/encoder.h"

namespace vfm::models {

/// Of a folder: the model's name, path, hash, dim and rule, and the most tokens of a text, which
/// are `max_tokens`, or fewer where the model takes fewer. Throws Error{usage}.
text::EncoderConfig sentence_encoder_config(const std::string& folder, int max_tokens,
                                            DType compute);

/// The same, of texts that are searched: what goes before them, and before those that are searched
/// for, is what is given, else what the folder says (SentencePrompts); where it says nothing,
/// nothing is said.
text::EncoderConfig searched_sentence_config(const std::string& folder, int max_tokens,
                                             DType compute,
                                             const std::optional<std::string>& prompt,
                                             const std::optional<std::string>& query_prompt);

/// The encoder of a folder. Throws Error{usage}. Of `as` the hash, unless empty, must be its own,
/// and prompts are as it has them.
std::unique_ptr<text::TextEncoder> make_sentence_encoder(const std::string& folder, int max_tokens,
                                                         DType compute, Device device,
                                                         const text::EncoderConfig& as = {});

/// What the headers of a folder say.
struct SentenceModelFacts {
  int dim = 0;
  DType stored = DType::f32;
  double file_bytes = 0, table_bytes = 0;  ///< of the weights; of the words' table among them
  std::function<PartCost(Device)> cost;    ///< of a text of the most tokens, on Device::meta
};
/// Reads no weights. Throws what make_sentence_encoder() throws, but for the hash.
SentenceModelFacts inspect_sentence_encoder(const std::string& folder, int max_tokens,
                                            DType compute);

}  // namespace vfm::models
