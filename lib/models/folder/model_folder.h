// A folder that somebody gives as a model: the only place that decides what it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/tensor_set.h"
#include "models/folder/hf_folder.h"
#include "models/folder/model_layout.h"

namespace vfm::models {

/// What is wanted of a folder.
struct ModelChoice {
  std::string part = "transformer";          ///< of a pipeline; "vae", "text_encoder"
  std::vector<std::string_view> types = {};  ///< that will do; none: any
  bool average = true;  ///< of a checkpoint of ours the averaged weights, if it has some
};

/// Any of these (models/folder/model_layout.h), with weights under our names:
///   - a pipeline of diffusers (model_index.json), of which one part is the model
///   - such a part itself (config.json and weights)
///   - NVIDIA's own checkpoint of such a part (models/folder/published_config.h,
///     models/folder/published_decoder.h)
///   - a run of vfm-train, of which the newest checkpoint is taken, or one of its checkpoints
/// Nothing but the layout is read before it is asked for. A checkpoint of adapters has no weights
/// of its own: open_model() (models/folder/adapted_model.h) knows how they are made, and puts
/// itself in their place. What such a folder says of its model beside: models/folder/model_facts.h.
/// Thread-safety: one thread at a time.
class ModelFolder {
 public:
  /// What stands for the weights of a checkpoint that has none.
  class Stand {
   public:
    virtual ~Stand() = default;
    virtual const io::TensorSet& tensors() const = 0;  ///< as the headers describe them
    virtual const io::TensorSet& weights() const = 0;
    virtual std::string hash() const = 0;
  };

  /// Throws Error{usage} if `path` is none of them.
  explicit ModelFolder(const std::string& path, ModelChoice choice = {});
  void stand_in(std::unique_ptr<Stand> stand) { stand_ = std::move(stand); }

  const ModelLayout& layout() const { return *layout_; }
  bool is_pipeline() const { return layout_->is_pipeline(); }
  bool is_checkpoint() const { return layout_->is_checkpoint(); }
  bool has_adapters() const;  ///< a checkpoint that has these, and no weights
  /// The checkpoint that the path means, else the path.
  const std::string& folder() const { return layout_->folder(); }
  std::string absolute_path() const;

  /// The model. Throws Error{usage} if it is of no type that was wanted.
  const HfComponent& component() const;
  const std::string& type() const { return component().type(); }
  /// Its config.json, with what that leaves out; and HfComponent::config_path().
  const Json& config() const { return component().config(); }
  std::string config_path() const;
  /// Compares a checkpoint of ours with its hashes, once. Throws Error. Of several ranks each
  /// compares a part of it: then all of them must have done so.
  void verify(int rank = 0, int ranks = 1) const;
  /// weights() as their headers describe them; nothing is verified.
  const io::TensorSet& tensors() const;
  /// After verify(). Throws Error if they are damaged.
  const io::TensorSet& weights() const;
  /// Whether these are averaged.
  bool averaged() const;
  /// Of configuration and weights(), as HfComponent::hash().
  std::string hash() const;

 private:
  std::unique_ptr<ModelLayout> layout_;
  ModelChoice choice_;
  mutable std::unique_ptr<HfComponent> component_;
  mutable std::unique_ptr<io::TensorSet> average_;
  std::unique_ptr<Stand> stand_;  // or null
  mutable bool verified_ = false;
};

}  // namespace vfm::models
