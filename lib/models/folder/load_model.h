// Loading a model from its folder, to generate with it. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/decoder/decoder.h"
#include "models/dit/network.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_together.h"
#include "models/folder/lora_file.h"
#include "models/folder/model_facts.h"

namespace vfm::models {

/// Adapters that change a model: what they are, and where they are from.
struct AdaptersInUse {
  std::string hash;
  double scale = 1;
  bool separate = false;  ///< beside the weights; else merged into them
  std::string path;
};

struct LoadedModel {
  std::unique_ptr<DiffusionNetwork> network;  ///< or null: it is a decoder
  ModelFacts facts;
  std::string folder;  ///< of the checkpoint
  bool ema = false;    ///< whether the weights are the averaged ones
  DType compute = DType::f32;
  std::vector<AdaptersInUse> adapters = {};
  std::unique_ptr<CausalDecoder> decoder = nullptr;
  std::string hash = {};  ///< hash_all() of the folder

  const nn::ParameterList& parameters() const;
  Device device() const;
};

/// Adapters for a model that is loaded.
struct AdapterChoice {
  struct Set {
    std::string path;  ///< a file, a folder with one, or a run or checkpoint that has adapters
    double scale = 1;  ///< factor on all of them
  };
  std::vector<Set> sets;  ///< a matrix that several adapt gets their sum
  bool separate = false;  ///< beside the weights, not merged into them: needs adapters

  /// Throws Error{usage} if the model cannot be adapted so.
  void check_for(const ModelFolder& model) const;
};

/// The adapters that the path of a set means; `ema`: the averaged ones of a run. Headers are
/// read, no values, and nothing is verified. Throws Error{usage} if there are none.
LoraFile open_adapters(const std::string& path, bool ema);

/// Whether models of the folder compute in f32, or in bf16.
DType stored_type(const ModelFolder& model);

/// The model of a pipeline, a run or a checkpoint, which is verified. `ema` asks for the averaged
/// weights, where the checkpoint has them. Without `compute` it computes as it was trained, or as
/// its weights are. A checkpoint of adapters brings the model that it adapts, which must be as it
/// was, and its adapters on it; else those of `adapters` come on it. Throws Error{usage} if `path`
/// is none of them or its tensors do not fit, listing these, Error if it is damaged. A run may
/// train on meanwhile: if it removes the checkpoint that is being read, its newest one is taken.
/// Several `ranks` load it together, the same `path` of a checkpoint of that run: its bytes are
/// read once over all of them. Then it is a collective, and each has its part of the network.
LoadedModel load_model(const std::string& path, bool ema, std::optional<DType> compute = DType::f32,
                       Device device = Device::cpu, const AdapterChoice& adapters = {},
                       const LoadingRanks& ranks = {});

}  // namespace vfm::models
