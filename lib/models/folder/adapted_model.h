// A model to begin from, to export, or under adapters, that may itself be a run of adapters: then
// its weights are those of the model under these, with them merged in.
// Thread-safety: as models/folder/initial_model.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/folder/initial_model.h"
#include "models/folder/lora_file.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// The tensors of `base`, with adapters merged into those that have some: f32, rounded once. These
/// are kept in memory; the others are base's. Keeps the reference to `base`.
class MergedWeights : public io::TensorSet {
 public:
  MergedWeights(const io::TensorSet& base, const std::vector<CountedAdapters>& adapters);

 private:
  std::vector<Tensor> merged_;
};

/// Where the model is that the adapters of the checkpoint `folder` are of: `base`, or if that is
/// empty where its train.json says. Throws Error{usage} if nothing is there.
std::string adapted_model(const Json& train, const std::string& folder, const std::string& base);

/// Opens a diffusion network, whatever InitialModel takes, and also runs of adapters: `average`
/// means their averaged values then, `base` where the model under them is now, "" being where it
/// was. Hash and weights throw Error{usage} if that is another model than it was.
InitialModel open_adapted(const std::string& path, const std::string& component,
                          const std::vector<std::string_view>& known, bool average = true,
                          const std::string& base = {});

}  // namespace vfm::models
