// SPDX-License-Identifier: Apache-2.0
#include "models/folder/adapted_model.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "io/file.h"
#include "models/dit/network_json.h"
#include "models/folder/checkpoint.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"

namespace vfm::models {
namespace {

/// A checkpoint's adapters on what is under them, which may be such a checkpoint too.
class Adapted final : public InitialModel::Stand {
 public:
  Adapted(const Json& train, const std::string& checkpoint, bool average, const std::string& base)
      : checkpoint_(checkpoint),
        known_(get_string(train.value("init", Json()), "hash").value_or("")),
        under_(open_adapted(adapted_model(train, checkpoint, base), "transformer",
                            network_class_names())) {
    adapters_.push_back({open_adapters(checkpoint, average)});
    adapters_.front().file.check(network_config_from_json(under_.config()));
  }

  const io::TensorSet& tensors() const override { return under_.tensors(); }

  const io::TensorSet& weights() const override {
    if (!merged_) {
      under_hash();
      merged_ = std::make_unique<MergedWeights>(under_.weights(), adapters_);
    }
    return *merged_;
  }

  std::string hash() const override {
    Hasher hasher;
    hasher.update(under_hash()).update(" ").update(adapters_.front().file.hash());
    return hasher.hex128();
  }

 private:
  std::string under_hash() const {
    const std::string hash = under_.hash();
    if (hash != known_)
      fail_usage("'{}' is not the model that the adapters of '{}' are of: its hash is {}, not {}",
                 under_.absolute_path(), checkpoint_, hash, known_.empty() ? "known" : known_);
    return hash;
  }

  std::string checkpoint_, known_;
  InitialModel under_;
  std::vector<CountedAdapters> adapters_;  // one
  mutable std::unique_ptr<io::TensorSet> merged_;
};

}  // namespace

MergedWeights::MergedWeights(const io::TensorSet& base,
                             const std::vector<CountedAdapters>& adapters)
    : TensorSet(base.path()) {
  for (io::TensorView view : base.tensors()) {
    const auto adapts = [&](const CountedAdapters& some) { return some.file.adapts(view.name); };
    if (std::ranges::any_of(adapters, adapts)) {
      const Tensor& values = merged_.emplace_back(read_floats(view).clone());
      for (const CountedAdapters& some : adapters)
        some.file.merge(view.name, some.strength, values);
      view.dtype = "F32";
      view.data = {values.data<std::byte>(), values.bytes()};
    }
    add(std::move(view));
  }
}

std::string adapted_model(const Json& train, const std::string& folder, const std::string& base) {
  std::string path = base;
  if (path.empty()) path = get_string(train.value("init", Json()), "path").value_or("");
  if (io::file_exists(path)) return path;
  fail_usage("'{}' has adapters of the model '{}', which is not there: say where it is (--base)",
             folder, path);
}

InitialModel open_adapted(const std::string& path, const std::string& component,
                          const std::vector<std::string_view>& known, bool average,
                          const std::string& base) {
  InitialModel model(path, component, known, average);
  const std::string& checkpoint = model.checkpoint();
  if (checkpoint.empty() || !has_adapters(checkpoint)) {
    if (!base.empty())
      fail_usage("'{}' has weights of its own: a base is for runs that train adapters", path);
    return model;
  }
  const std::string file = io::join_path(checkpoint, "train.json");
  const Json train = parse_json(io::read_file(file), fmt::format("'{}'", file));
  model.stand_in(std::make_unique<Adapted>(train, checkpoint, average, base));
  return model;
}

}  // namespace vfm::models
