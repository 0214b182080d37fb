// Loading the model of a training run or one of its checkpoints
// (models/folder/checkpoint_folder.h). Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/decoder/decoder.h"
#include "models/dit/network.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/lora_file.h"

namespace vfm::models {

/// What the recipe of a train.json computed in; f32 if there is none.
DType trained_in(const Json& train);

struct LoadedModel {
  std::unique_ptr<DiffusionNetwork> network;  ///< or null: it is a decoder
  Json train;                                 ///< train.json
  std::string folder;                         ///< of the checkpoint
  bool ema = false;                           ///< whether the weights are the averaged ones
  DType compute = DType::f32;
  /// What adapters change it, {"hash", "scale", "mode"}, and where they are from; of several a list
  /// of each; or null.
  Json lora = nullptr, lora_path = nullptr;
  std::unique_ptr<CausalDecoder> decoder = nullptr;
  std::string complete = {};  ///< hash of the checkpoint's COMPLETE

  const nn::ParameterList& parameters() const;
  Device device() const;
};

/// Adapters for a model that is loaded.
struct AdapterChoice {
  struct Set {
    std::string path;  ///< a file, a folder with one, or a run or checkpoint that has adapters
    double scale = 1;  ///< factor on all of them
  };
  std::vector<Set> sets;     ///< of a matrix that several adapt, their sum
  bool separate = false;     ///< beside the weights, not merged into them
  bool mode_chosen = false;  ///< `separate` was asked for, or not to be so: needs adapters
  std::string base;  ///< where the model under the adapters of a run is now; "": where it was

  /// Throws Error{usage} if this is no choice for the model in `folder`, which may be adapters on
  /// another one (`adapted`).
  void check_for(const std::string& folder, bool autoregressive, bool adapted) const;
};

/// The adapters that the path of a set means; `ema`: the averaged ones of a run. Headers are
/// read, no values, and nothing is verified. Throws Error{usage} if there are none.
LoraFile open_adapters(const std::string& path, bool ema);

/// Puts the adapters of choice.sets on the model; `ema`: the averaged ones of a run. Throws
/// Error{usage} for what does not fit, or a second time.
void add_adapters(LoadedModel& model, const AdapterChoice& choice, bool ema);

/// The model of a run or checkpoint folder, verified. `ema` asks for the averaged weights, where
/// the checkpoint has them. Without `compute` it computes as it was trained. One of adapters brings
/// the model that it adapts, which must be as it was, and its adapters on it. Throws Error{usage}
/// if `path` is no checkpoint, Error if it is damaged. A run may train on meanwhile: if it removes
/// the checkpoint that is being read, its newest one is taken.
LoadedModel load_model(const std::string& path, bool ema, std::optional<DType> compute = DType::f32,
                       Device device = Device::cpu, const AdapterChoice& adapters = {});

}  // namespace vfm::models
