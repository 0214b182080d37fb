// Makes text encoders from their configuration, which latents.json and train.json hold. There are
// builtin:hash (text/hash_encoder.h), T5 from a folder, and sentence encoders from a folder, which
// return one vector for a whole text (models/encoder/sentence_encoder.h).
//
//   {"name": "t5", "path": "/models/t5-11b", "hash": "...", "dim": 1024, "max_tokens": 512,
//    "compute": "bf16"}
//
// "name" and "path" are required. "max_tokens" is 512 and "compute" f32 if not given. "clean" is
// true for an encoder of a pipeline that cleans its texts (PipelineForm::clean_texts), such as
// Wan's: captions are cleaned for training as prompts are for generation.
//
// The folder is one of these:
//   a pipeline   text_encoder/ with config.json and weights, tokenizer/ with the tokenizer's files
//   a model      config.json, weights and the tokenizer's files beside each other; text_encoder/ of
//                a pipeline will do, too
//   a file       a text encoder of Wan or a folder with its files (models/folder/files_layout.cc).
//                The tokenizer is beside it, in google/umt5-xxl, or within the file
//                (models/folder/inner_tokenizer.h)
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
#include "models/folder/load_together.h"
#include "models/part_cost.h"
#include "models/t5/t5.h"
#include "tensor/tensor.h"
#include "text/encoder.h"

namespace vfm::models {

/// Reads a configuration. For another program's encoder reads only name, path, hash and dim. Throws
/// Error{usage} for an invalid configuration.
text::EncoderConfig text_config_from_json(const Json& json);

struct TextEncoderOptions {
  Device device = Device::cpu;
  std::optional<DType> compute;  ///< f32 or bf16; nullopt: as in the configuration
  std::string folder;            ///< instead of "path", for a folder that has moved
  std::string folder_option;     ///< the program's option for `folder`, for messages; or empty
  LoadingRanks ranks = {};       ///< they open the folder together, and the first one hashes it
  /// A collective of `ranks`. Returns the tensors to compute with in place of those of the folder,
  /// which stay open; null: there are none.
  std::function<std::unique_ptr<io::TensorSet>(const io::TensorSet& of_folder)> share = {};
};

/// The folders of a text encoder's model and of its tokenizer, or files. text_encoder_folders()
/// throws Error{usage} if `folder` does not exist.
struct TextFolders {
  std::string model, tokenizer;
  bool clean = false;  ///< they are of a pipeline that cleans its texts
};
TextFolders text_encoder_folders(const std::string& folder);

/// Returns the configuration with which make_text_encoder() builds the encoder in a folder. Throws
/// Error{usage} if the model's type is unknown or the folder has no tokenizer.
text::EncoderConfig text_encoder_config(const std::string& folder, int max_tokens, DType compute);

/// The same for texts to be searched: see models::searched_sentence_config(). Throws Error{usage}
/// if prompts are given and the folder does not hold a sentence encoder.
text::EncoderConfig searched_encoder_config(const std::string& folder, int max_tokens,
                                            DType compute, const std::optional<std::string>& prompt,
                                            const std::optional<std::string>& query_prompt);

/// Builds the encoder. Throws Error{usage} if the configuration is malformed or unknown, if the
/// folder does not exist, or if its model does not match the hash. With `options.ranks` this is a
/// collective.
std::unique_ptr<text::TextEncoder> make_text_encoder(const text::EncoderConfig& config,
                                                     const TextEncoderOptions& options = {});

/// Facts about an encoder, from the file headers of its folder.
struct TextEncoderFolder {
  int width = 0;           ///< width of a vector
  double file_bytes = 0;   ///< of the weights
  double table_bytes = 0;  ///< of the embedding; a text reads only its tokens' rows
  /// Returns the cost of encoding a text of `tokens` tokens. For a sentence encoder the cost is
  /// always that of its longest text.
  std::function<PartCost(std::int64_t tokens, Device device)> cost;
};

/// Returns the facts for a configuration with a folder. Throws what make_text_encoder() throws,
/// except that a sentence encoder's hash is not compared.
TextEncoderFolder inspect_text_encoder(const text::EncoderConfig& config,
                                       const TextEncoderOptions& options);

/// All that is known of an encoder from its name.
struct TextEncoderFamily {
  std::string_view name;                   ///< a name, or how several names begin: "sentence:..."
  std::span<const std::string_view> keys;  ///< keys of its configuration, "name" too
  std::span<const std::string_view> types = {};  ///< types of the models in its folder
  std::string_view class_name = {};  ///< class in transformers for pipelines of diffusers; or empty
  /// Null for encoders without a folder. Otherwise the configuration's folder must exist.
  std::unique_ptr<text::TextEncoder> (*make)(const text::EncoderConfig& config,
                                             const TextEncoderOptions& options) = nullptr;
  TextEncoderFolder (*inspect)(const text::EncoderConfig& config,
                               const TextEncoderOptions& options) = nullptr;
};

/// Returns all families.
std::span<const TextEncoderFamily> text_encoder_families();
/// Returns the family of this name; null for another program's encoder.
const TextEncoderFamily* find_text_encoder_family(std::string_view name);
/// Returns the types of models in folders, without those that are only the text half of a model.
std::vector<std::string_view> text_encoder_types();

}  // namespace vfm::models
