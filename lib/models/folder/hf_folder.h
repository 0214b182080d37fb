// One model as Hugging Face's libraries write it: a folder with config.json and weights
// (models/folder/weight_files.h). Of models whose tensors say enough one file of weights will do.
//
// Not here: folders of several models (models/folder/model_folder.h), and what a model computes.
// Thread-safety: free functions and other objects, any thread. Two threads must not make the first
// call of weights() of one object at the same time.
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

/// A hash of 32 hex digits over the type, the configuration, and the name, dtype, shape and values
/// of each tensor. In sets above 64 MiB only three pieces of 4 KiB of each tensor are read: the
/// first, the middle and the last. The format of the files and the distribution of weights over
/// files do not matter.
std::string hash_model(std::string_view type, const Json& config, const io::TensorSet& weights);

/// Reads a JSON object from a folder that the user gave. Throws Error{usage} if the file is missing
/// or not a JSON object.
Json read_config(const std::string& folder, const char* name);

/// The path of a folder without links, by which a model is identified. Throws Error{usage} if it
/// does not exist.
std::string canonical_folder(const std::string& folder);
/// The folder that `folder` lies in: FOLDER/.., or an address without its last part.
std::string folder_above(const std::string& folder);

/// A model's configuration, read by the constructor, and its weights, opened when asked for.
class HfComponent {
 public:
  /// If the folder has no config.json, or one without a type, it may have its authors' checkpoint,
  /// and `folder` may be a file of weights instead. Then models/folder/published_config.h and
  /// published_decoder.h give the configuration. Throws Error{usage} without either.
  explicit HfComponent(std::string folder);

  const std::string& folder() const { return folder_; }
  /// diffusers' _class_name ("AutoencoderKLCosmos"), or transformers' model_type ("t5").
  const std::string& type() const { return type_; }
  /// config.json, with the defaults of the type for missing fields (models/folder/hf_defaults.h).
  const Json& config() const { return config_; }
  /// The source of the configuration for messages: config.json, or the folder without one.
  std::string config_path() const;
  /// Returns whether config.json itself has that field.
  bool says(const char* field) const;
  /// Throws Error{usage} unless type() is in `known`. The message lists these as supported.
  void need_type(const std::vector<std::string_view>& known) const;

  /// The weights under the names of diffusers and transformers, whatever names the files have
  /// (models/folder/hf_names.h). For type kGgufType they may be GGUF files
  /// (models/folder/gguf_folder.h). Mapped: nothing is read before it is used. Throws Error if
  /// there are no weights, weights of both kinds, or damaged files.
  const io::TensorSet& weights() const;

  /// hash_model() of type, configuration and weights.
  std::string hash() const;

 private:
  /// If the folder has NVIDIA's own checkpoint, takes its type, configuration and weights and
  /// returns true.
  bool take_published();

  std::string folder_, type_;
  HeldJson said_;
  HeldJson config_;  // unchanged: it is hashed and exported with unknown fields
  mutable std::unique_ptr<io::TensorSet> weights_;
};

}  // namespace vfm::models
