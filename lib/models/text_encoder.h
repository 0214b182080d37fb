// Text encoders by their configuration, as latents.json and train.json hold it: builtin:hash
// (text/hash_encoder.h), T5 from a folder, or a sentence encoder from one, which gives one vector
// for a whole text (models/encoder/sentence_encoder.h).
//
//   {"name": "t5", "path": "/models/t5-11b", "hash": "...", "dim": 1024, "max_tokens": 512,
//    "compute": "bf16"}
//
// Of these "name" and "path" are needed; "max_tokens" is 512 and "compute" f32 if not given.
//
// The folder is one of these:
//   a pipeline   text_encoder/ with config.json and weights, tokenizer/ with the tokenizer's files
//   a model      config.json, weights and the tokenizer's files beside each other; text_encoder/ of
//                a pipeline will do, too
//   sentences    models/encoder/sentence_folder.h
// T5's tokenizer is tokenizer.json, or spiece.model where there is none.
// Thread-safety: free functions, any thread; encoders as text/encoder.h says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "models/part_cost.h"
#include "models/t5/t5.h"
#include "tensor/tensor.h"
#include "text/encoder.h"

namespace vfm::models {

/// Reads a configuration. Of another program's encoder only name, path, hash and dim are read.
/// Throws Error{usage}.
text::EncoderConfig text_config_from_json(const Json& json);

struct TextEncoderOptions {
  Device device = Device::cpu;
  std::optional<DType> compute;  ///< f32 or bf16; else what the configuration says
  std::string folder;            ///< instead of "path", for a folder that has moved
  std::string folder_option;     ///< the program's option for that, which messages name; or empty
};

/// Where the parts of a text encoder's folder lie. Throws Error{usage} if it is not there.
struct TextFolders {
  std::string model, tokenizer;
};
TextFolders text_encoder_folders(const std::string& folder);

/// What make_text_encoder builds an encoder of, for a folder. Throws Error{usage} if it is none of
/// a type that is known, or has no tokenizer.
text::EncoderConfig text_encoder_config(const std::string& folder, int max_tokens, DType compute);

/// The same, of texts that are searched: models::searched_sentence_config(). Throws Error{usage}
/// for prompts of what is no sentence encoder.
text::EncoderConfig searched_encoder_config(const std::string& folder, int max_tokens,
                                            DType compute, const std::optional<std::string>& prompt,
                                            const std::optional<std::string>& query_prompt);

/// Throws Error{usage} for a configuration that is malformed or not known, for a folder that is not
/// there, and for one that holds another model than the one that the hash stands for.
std::unique_ptr<text::TextEncoder> make_text_encoder(const text::EncoderConfig& config,
                                                     const TextEncoderOptions& options = {});

/// What the headers of an encoder's folder say.
struct TextEncoderFolder {
  int width = 0;           ///< of a vector
  double file_bytes = 0;   ///< of the weights
  double table_bytes = 0;  ///< of the embedding among them, of which only a text's rows are read
  /// Of a text of so many tokens; of a sentence encoder, which gives one, always of the longest.
  std::function<PartCost(std::int64_t tokens, Device device)> cost;
};

/// Of a configuration with a folder. Throws what make_text_encoder() throws; but the hash, for
/// which values would be read, is not compared.
TextEncoderFolder inspect_text_encoder(const text::EncoderConfig& config,
                                       const TextEncoderOptions& options);

/// All that is known of an encoder by its name.
struct TextEncoderFamily {
  std::string_view name;  ///< of several, such as "sentence:...", how they begin
  std::span<const std::string_view> keys;        ///< of its configuration, "name" too
  std::span<const std::string_view> types = {};  ///< of the models in its folder
  std::string_view class_name = {};  ///< in transformers, for pipelines of diffusers; or empty
  /// For a configuration with a folder that is there; null: it has no folder.
  std::unique_ptr<text::TextEncoder> (*make)(const text::EncoderConfig& config,
                                             const TextEncoderOptions& options) = nullptr;
  TextEncoderFolder (*inspect)(const text::EncoderConfig& config,
                               const TextEncoderOptions& options) = nullptr;
};

/// All of them.
std::span<const TextEncoderFamily> text_encoder_families();
/// Returns the one of this name; null: it is another program's.
const TextEncoderFamily* find_text_encoder_family(std::string_view name);
/// Types of models in folders, but for half models; or those that pipelines of diffusers take.
std::vector<std::string_view> text_encoder_types(bool in_diffusers = false);

}  // namespace vfm::models
