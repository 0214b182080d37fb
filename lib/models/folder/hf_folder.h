// One model as Hugging Face's libraries write it: a folder with config.json and weights, which are
// found as models/folder/weight_files.h says.
//
// Not here: folders of several (models/folder/model_folder.h), and what a model computes.
// Thread-safety: free functions and other objects, any thread; weights() of one object, one thread
// at first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "io/tensor_set.h"

namespace vfm::models {

/// 32 hex digits that change with the model: of its type, the configuration, and of each tensor
/// name, dtype, shape and values. Of sets above 64 MiB not all values are read: of each tensor
/// three pieces of 4 KiB, the first, the middle and the last. How the weights are spread over
/// files, and in which format, does not matter.
std::string hash_model(std::string_view type, const Json& config, const io::TensorSet& weights);

/// A JSON object that a user gave the folder of. Throws Error{usage}: there is none, or not such.
Json read_config(const std::string& folder, const char* name);

/// Its path without links, by which a model is known. Throws Error{usage} if there is none.
std::string canonical_folder(const std::string& folder);

/// Its configuration, read now, and its weights, opened when asked for.
class HfComponent {
 public:
  /// A folder without config.json, or with one that names no type, may have NVIDIA's own
  /// checkpoint: then what models/folder/published_config.h and published_decoder.h say stands for
  /// it. Throws Error{usage} if it has none.
  explicit HfComponent(std::string folder);

  const std::string& folder() const { return folder_; }
  /// diffusers' _class_name ("AutoencoderKLCosmos"), or transformers' model_type ("t5").
  const std::string& type() const { return type_; }
  /// config.json; fields that it leaves out have the defaults of the type
  /// (models/folder/hf_defaults.h).
  const Json& config() const { return config_; }
  /// What says that, for messages: its config.json, or the folder where there is none.
  std::string config_path() const;
  /// Whether its config.json has that field itself.
  bool says(const char* field) const;
  /// Throws Error{usage} unless type() is one of `known`, of which the message says that they work.
  void need_type(const std::vector<std::string_view>& known) const;

  /// Under the names of diffusers and transformers, whatever names the files have
  /// (models/folder/hf_names.h); of the type kGgufType they may be GGUF files
  /// (models/folder/gguf_folder.h). Mapped: nothing is read before it is used. Throws Error: no
  /// weights, weights of both kinds, or files that are damaged.
  const io::TensorSet& weights() const;

  /// hash_model() of all this.
  std::string hash() const;

 private:
  /// Whether NVIDIA's own checkpoint is there, whose type, configuration and weights these are.
  bool take_published();

  std::string folder_, type_;
  HeldJson said_;
  HeldJson config_;  // as it came: it is hashed, and goes into exports, with fields unknown here
  mutable std::unique_ptr<io::TensorSet> weights_;
};

}  // namespace vfm::models
