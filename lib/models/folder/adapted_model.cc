// SPDX-License-Identifier: Apache-2.0
#include "models/folder/adapted_model.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "io/folder.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_model.h"
#include "models/folder/load_tensors.h"
#include "models/folder/model_config.h"
#include "models/folder/model_facts.h"
#include "models/folder/other_models.h"

namespace vfm::models {
namespace {

Origin origin_of(const std::string& checkpoint) {
  return Origin::from_json(read_train_json(checkpoint).value("init", Json()));
}

/// The tensors of `base`, with adapters merged into those that have some: f32, rounded once. These
/// are kept in memory; the others are base's.
class MergedWeights final : public io::TensorSet {
 public:
  MergedWeights(const io::TensorSet& base, const LoraFile& adapters) : TensorSet(base.path()) {
    for (io::TensorView view : base.tensors()) {
      if (adapters.adapts(view.name)) {
        const Tensor& values = merged_.emplace_back(read_floats(view).clone());
        adapters.merge(view.name, 1, values);
        view.dtype = "F32";
        view.data = {values.data<std::byte>(), values.bytes()};
        view.scales = {};
      }
      add(std::move(view));
    }
  }

 private:
  std::vector<Tensor> merged_;
};

/// A checkpoint's adapters on what is under them, which may be such a checkpoint too.
class Adapted final : public ModelFolder::Stand {
 public:
  Adapted(const std::string& checkpoint, bool average, const std::string& base)
      : checkpoint_(checkpoint),
        under_(open_under(checkpoint, base, {.types = generator_class_names()})),
        adapters_(open_adapters(checkpoint, average)) {
    const ModelConfig config = read_model_config(under_);
    if (const auto* decoder = std::get_if<DecoderConfig>(&config))
      adapters_.check(*decoder);
    else
      adapters_.check(std::get<NetworkConfig>(config));
  }

  const ModelFolder& under() const override { return under_; }
  const io::TensorSet& tensors() const override { return under_.tensors(); }

  const io::TensorSet& weights() const override {
    if (!merged_) {
      hash_under(under_, checkpoint_);  // refuses another one
      merged_ = std::make_unique<MergedWeights>(under_.weights(), adapters_);
    }
    return *merged_;
  }

  std::string hash() const override {
    Hasher hasher;
    hasher.update(hash_under(under_, checkpoint_)).update(" ").update(adapters_.hash());
    return hasher.hex128();
  }

 private:
  std::string checkpoint_;
  ModelFolder under_;
  LoraFile adapters_;
  mutable std::unique_ptr<io::TensorSet> merged_;
};

}  // namespace

std::string hash_under(const ModelFolder& under, const std::string& checkpoint) {
  std::string hash = under.hash();
  const std::string known = origin_of(checkpoint).hash;
  if (hash != known)
    fail_usage("'{}' is not the model that the adapters of '{}' are of: its hash is {}, not {}",
               under.absolute_path(), checkpoint, hash, known.empty() ? "known" : known);
  return hash;
}

ModelFolder open_under(const std::string& checkpoint, const std::string& base, ModelChoice choice) {
  if (!base.empty()) need_model_folder(base);
  const std::string path = base.empty() ? origin_of(checkpoint).path : base;
  if (io::path_exists(path)) return open_model(path, std::move(choice));
  fail_usage(
      "'{}' has adapters of the model '{}', which is not there: move it back, or name it by its "
      "new path (vfm-generate --model, with the adapters as --lora; vfm-train --base)",
      checkpoint, path);
}

ModelFolder open_model(const std::string& path, ModelChoice choice, const std::string& base) {
  const bool average = choice.average;
  ModelFolder model(path, std::move(choice));
  if (model.has_adapters())
    model.stand_in(std::make_unique<Adapted>(model.folder(), average, base));
  else if (!base.empty())
    fail_usage("'{}' has weights of its own: a base is for runs that train adapters", path);
  return model;
}

}  // namespace vfm::models
