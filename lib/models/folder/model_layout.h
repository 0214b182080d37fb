// The layouts of models in a folder, each in a NAME_layout.cc, for ModelFolder
// (models/folder/model_folder.h) and other code of this folder. Thread-safety: free functions, any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/tensor_set.h"

namespace vfm::models {

/// The parts of a pipeline that may be networks.
inline constexpr const char *kFirstNetwork = "transformer", *kSecondNetwork = "transformer_2";

/// The base class is the layout of a single model: config.json and weights.
class ModelLayout {
 public:
  explicit ModelLayout(std::string folder) : folder_(std::move(folder)) {}
  virtual ~ModelLayout() = default;

  const std::string& folder() const { return folder_; }
  virtual bool is_pipeline() const { return false; }
  virtual bool is_checkpoint() const { return false; }
  /// Returns whether it is a pipeline by open_files(), which says nothing of sampling.
  virtual bool is_files() const { return false; }
  /// Class of a pipeline, "CosmosTextToWorldPipeline"; empty for other layouts.
  virtual std::string type() const { return {}; }
  /// Returns whether the folder has a part such as "vae". A single model counts as every part.
  virtual bool has(const std::string& /*part*/) const { return true; }
  /// The parts that are diffusion networks: one, or the two of a model whose networks are chosen by
  /// noise level. The first of two is for the high levels.
  virtual std::vector<std::string> networks() const { return {kFirstNetwork}; }
  /// For two networks, the lowest noise level of the first, as t of flow matching. Throws
  /// Error{usage} if it is missing or not between 0 and 1.
  virtual double boundary() const { return 0; }
  /// The folder with the part's config.json, or a file of weights that needs none. Throws
  /// Error{usage} if there is no such part or folder.
  virtual std::string folder_of(const std::string& /*part*/) const { return folder_; }
  /// Returns whether a pipeline's index has the field `name`, and it is true.
  virtual bool flag(const std::string& /*name*/) const { return false; }
  /// Opens averaged weights or adapters; null if there are none.
  virtual std::unique_ptr<io::TensorSet> average() const { return nullptr; }
  /// Throws Error if a file has changed since it was written. With several ranks each reads a part.
  virtual void verify(int /*rank*/, int /*ranks*/) const {}

 private:
  std::string folder_;
};

/// Null if `path` has another layout. Throws Error{usage} if it cannot be read.
std::unique_ptr<ModelLayout> open_pipeline(const std::string& path);
std::unique_ptr<ModelLayout> open_checkpoint(const std::string& path);
/// The files of a Wan beside each other. They are a pipeline without a scheduler; folder_of() is a
/// file, or a folder with config.json. Of the part "tokenizer" it is that of "text_encoder"; who
/// needs the tokenizer calls text_encoder_folders(). A missing part is told when it is asked for.
std::unique_ptr<ModelLayout> open_files(const std::string& path);
/// Returns whether a file of weights is the text encoder of a Wan.
bool is_text_encoder_of_wan(const std::string& file);
/// Returns what has to stand beside a lone transformer of a Wan, with names of files as they are
/// published; empty if `path`, a file or a folder, is none.
std::string beside_transformer(const std::string& path);

}  // namespace vfm::models
