// The ways to lay out models in a folder, a NAME_layout.cc of each, for ModelFolder
// (models/folder/model_folder.h) and its neighbours. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "io/tensor_set.h"

namespace vfm::models {

/// By itself a part of a pipeline: config.json and weights.
class ModelLayout {
 public:
  explicit ModelLayout(std::string folder) : folder_(std::move(folder)) {}
  virtual ~ModelLayout() = default;

  const std::string& folder() const { return folder_; }
  virtual bool is_pipeline() const { return false; }
  virtual bool is_checkpoint() const { return false; }
  /// Of a pipeline its class, "CosmosTextToWorldPipeline".
  virtual std::string type() const { return {}; }
  /// Whether it has a part, "vae"; what is one model has it for every part.
  virtual bool has(const std::string& /*part*/) const { return true; }
  /// The folder with its config.json. Throws Error{usage} if it has none, or it is not there.
  virtual std::string folder_of(const std::string& /*part*/) const { return folder_; }
  /// Opens averaged weights, or adapters; null: there are none.
  virtual std::unique_ptr<io::TensorSet> average() const { return nullptr; }
  /// Throws Error for what is not as it was written. Each of several ranks reads a part.
  virtual void verify(int /*rank*/, int /*ranks*/) const {}

 private:
  std::string folder_;
};

/// Null if `path` is laid out otherwise. Throw Error{usage} for one that cannot be read.
std::unique_ptr<ModelLayout> open_pipeline(const std::string& path);
std::unique_ptr<ModelLayout> open_checkpoint(const std::string& path);

}  // namespace vfm::models
