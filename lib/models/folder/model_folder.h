// A folder that the user gives as a model. This is the only place that decides what a folder is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/folder/hf_folder.h"
#include "models/folder/model_layout.h"

namespace vfm::models {

/// The caller's choices for a folder.
struct ModelChoice {
  /// Part of a pipeline; also "vae", "text_encoder". If the pipeline has no network of this name,
  /// "transformer" is the one that it has.
  std::string part = kFirstNetwork;
  std::vector<std::string_view> types = {};  ///< accepted types; empty: any
  bool average = true;  ///< take averaged weights if a checkpoint of ours has some
};

/// Opens any of these (models/folder/model_layout.h), with weights under the names used here:
///   - a pipeline of diffusers (model_index.json); one of its parts is the model
///   - files of a Wan beside each other (models/folder/files_layout.cc)
///   - such a part by itself (config.json and weights), or one file with such a part of Wan
///   - NVIDIA's own checkpoint of such a part (models/folder/published_config.h,
///     models/folder/published_decoder.h)
///   - a run of vfm-train, with its newest checkpoint, or one of its checkpoints
/// Reads only the layout before more is asked for. A checkpoint of adapters has no weights of its
/// own: open_model() (models/folder/adapted_model.h) makes them and calls stand_in().
/// models/folder/model_facts.h has other facts about the model. Thread-safety: one thread at a
/// time.
class ModelFolder {
 public:
  /// Replacement for the weights of a checkpoint that has none.
  class Stand {
   public:
    virtual ~Stand() = default;
    virtual const ModelFolder& under() const = 0;      ///< the model that has weights
    virtual const io::TensorSet& tensors() const = 0;  ///< as the headers describe them
    virtual const io::TensorSet& weights() const = 0;
    virtual std::string hash() const = 0;
  };

  /// Throws Error{usage} if `path` is none of the above.
  explicit ModelFolder(const std::string& path, ModelChoice choice = {});
  void stand_in(std::unique_ptr<Stand> stand) { stand_ = std::move(stand); }

  /// The model that the adapters of a checkpoint are of; null if it has weights of its own.
  const ModelFolder* under() const { return stand_ ? &stand_->under() : nullptr; }

  const ModelLayout& layout() const { return *layout_; }
  bool is_pipeline() const { return layout_->is_pipeline(); }
  bool is_checkpoint() const { return layout_->is_checkpoint(); }
  bool has_adapters() const;  ///< a checkpoint with adapters and without weights
  /// The checkpoint for the path, or the path itself.
  const std::string& folder() const { return layout_->folder(); }
  std::string absolute_path() const;

  /// A part of a pipeline, opened at the first call. A single model is every part. Throws
  /// Error{usage} if there is none.
  const HfComponent& part(const std::string& name) const;
  /// The model. Throws Error{usage} if its type is not accepted.
  const HfComponent& component() const;
  const std::string& type() const { return component().type(); }
  /// Its config.json with defaults for missing fields; and HfComponent::config_path().
  const Json& config() const { return component().config(); }
  std::string config_path() const;
  /// Compares a checkpoint of ours with its hashes, once. Throws Error. With several ranks each
  /// compares a part, so all of them must succeed.
  void verify(int rank = 0, int ranks = 1) const;
  /// weights() as their headers describe them, without verification.
  const io::TensorSet& tensors() const;
  /// The weights, after verify(). Throws Error if they are damaged.
  const io::TensorSet& weights() const;
  /// Returns whether the weights are averaged.
  bool averaged() const;
  /// Hash of configuration and weights(), as HfComponent::hash().
  std::string hash() const;

 private:
  std::unique_ptr<ModelLayout> layout_;
  ModelChoice choice_;
  mutable const HfComponent* component_ = nullptr;  // one of parts_
  mutable std::unique_ptr<io::TensorSet> average_;
  std::unique_ptr<Stand> stand_;  // null: the weights are in the folder
  mutable bool verified_ = false;
  mutable std::map<std::string, std::unique_ptr<HfComponent>> parts_;
};

}  // namespace vfm::models
