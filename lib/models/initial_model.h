// The model that a training run begins from: somebody's weights, under our names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "io/tensor_set.h"
#include "models/hf_folder.h"

namespace vfm::models {

/// Made from any of these folders; only configurations are read before tensors(), weights() or
/// hash():
///   - a pipeline of diffusers (model_index.json): its transformer/
///   - such a component itself (config.json and weights)
///   - a run of vfm-train, or one of its checkpoints: the averaged weights if there are some
/// Thread-safety: one thread at a time.
class InitialModel {
 public:
  /// Throws Error{usage} if `path` is none of them, or no diffusion transformer.
  explicit InitialModel(const std::string& path);

  /// The checkpoint of ours that it is; "" if it is none.
  const std::string& checkpoint() const { return checkpoint_; }
  /// As dit_config_from_json() reads it.
  const Json& config() const { return component_->config(); }
  /// weights() as their headers describe them; nothing is verified.
  const io::TensorSet& tensors();
  /// Those of a checkpoint of ours are verified first. Throws Error if they are damaged.
  const io::TensorSet& weights();
  /// Of configuration and weights(), as HfComponent::hash().
  std::string hash();

 private:
  std::string checkpoint_;  // "" if it is not ours
  std::unique_ptr<HfComponent> component_;
  std::unique_ptr<io::TensorSet> average_;
  bool verified_ = false;
};

}  // namespace vfm::models
