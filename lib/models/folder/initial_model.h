// A model in a folder that the user gives, to begin a training run from, or to use as a tokenizer:
// weights, under our names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "io/tensor_set.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {

/// Made from any of these folders; only configurations are read before tensors(), weights() or
/// hash():
///   - a pipeline of diffusers (model_index.json): one of its components
///   - such a component itself (config.json and weights)
///   - a run of vfm-train, or one of its checkpoints: the averaged weights if there are some
/// A checkpoint of adapters has no weights of its own: open_adapted()
/// (models/folder/adapted_model.h) knows how they are made, and puts itself in their place.
/// Thread-safety: one thread at a time.
class InitialModel {
 public:
  /// Replaces the weights of a checkpoint that has none.
  class Stand {
   public:
    virtual ~Stand() = default;
    virtual const io::TensorSet& tensors() const = 0;  ///< as the headers describe them
    virtual const io::TensorSet& weights() const = 0;
    virtual std::string hash() const = 0;
  };

  /// `component` is that of a pipeline, "transformer" or "vae". Throws Error{usage} if `path` is
  /// none of them, or of no type in `known`. `average`: of a checkpoint of ours the averaged
  /// weights, if it has some.
  InitialModel(const std::string& path, const std::string& component,
               const std::vector<std::string_view>& known, bool average = true);
  void stand_in(std::unique_ptr<Stand> stand) { stand_ = std::move(stand); }

  const HfComponent& component() const { return *component_; }
  /// The checkpoint of vfm-train that `path` means; "" if it is none.
  const std::string& checkpoint() const { return checkpoint_; }
  /// Where it is, in full: the checkpoint() if it is one, else the folder given.
  std::string absolute_path() const;
  /// Its config.json, with what that leaves out.
  const Json& config() const { return component_->config(); }
  /// weights() as their headers describe them; nothing is verified.
  const io::TensorSet& tensors() const;
  /// Those of a checkpoint of ours are verified first. Throws Error if they are damaged.
  const io::TensorSet& weights() const;
  /// Whether these are averaged.
  bool averaged() const;
  /// Of configuration and weights(), as HfComponent::hash().
  std::string hash() const;

 private:
  std::string path_;        // as it was given
  std::string checkpoint_;  // "" if it is not ours
  std::unique_ptr<HfComponent> component_;
  bool want_average_;
  mutable std::unique_ptr<io::TensorSet> average_;
  std::unique_ptr<Stand> stand_;  // or null
  mutable bool verified_ = false;
};

}  // namespace vfm::models
