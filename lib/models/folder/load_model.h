// Loads a model from its folder for generation. Thread-safety: free functions, any thread.
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
#include "models/folder/model_config.h"
#include "models/folder/model_facts.h"

namespace vfm::models {

/// A model's folder, opened once for everything that generation reads in it. Facts and
/// configuration are read at the first call. Thread-safety: one thread at a time.
class OpenedModel {
 public:
  /// Opens a pipeline, a run or a checkpoint; of adapters, also the model that they are of. `ema`
  /// selects the averaged weights if the checkpoint has them, `part` the network of a pipeline.
  /// Throws Error{usage} if `path` is none of these.
  OpenedModel(const std::string& path, bool ema, std::string part = kFirstNetwork);

  const ModelFolder& folder() const { return folder_; }
  bool ema() const { return ema_; }
  const ModelFacts& facts() const;    ///< throws what read_facts() throws
  const ModelConfig& config() const;  ///< throws what read_model_config() throws

 private:
  ModelFolder folder_;
  bool ema_;
  mutable std::optional<ModelFacts> facts_;
  mutable std::optional<ModelConfig> config_;
};

/// Adapters that change a model, and their source.
struct AdaptersInUse {
  std::string hash;
  double scale = 1;
  bool separate = false;  ///< separate from the weights; false: merged into them
  std::string path;
};

struct LoadedModel {
  /// Null for a decoder. For a model with two networks a SwitchedNetwork with the first of them.
  std::unique_ptr<DiffusionNetwork> network;
  ModelFacts facts;
  std::string folder;  ///< folder of the checkpoint
  bool ema = false;    ///< the weights are averaged
  DType compute = DType::f32;
  std::vector<AdaptersInUse> adapters = {};
  std::unique_ptr<CausalDecoder> decoder = nullptr;
  std::string hash = {};  ///< hash_all() of the folder
  bool pipeline = false;  ///< the folder is a pipeline of diffusers

  const nn::ParameterList& parameters() const;
  Device device() const;
};

/// Adapters to put on a model when it is loaded.
struct AdapterChoice {
  struct Set {
    std::string path;  ///< a file, a folder with one, or a run or checkpoint with adapters
    double scale = 1;  ///< factor on all adapters of the set
  };
  std::vector<Set> sets;  ///< a matrix with adapters in several sets gets their sum
  bool separate = false;  ///< separate, not merged into the weights; needs adapters

  /// Throws Error{usage} if the model cannot have these adapters.
  void check_for(const ModelFolder& model) const;
};

/// The adapters for the path of a set. `ema` selects the averaged adapters of a run. Reads headers
/// but no values, and verifies nothing. `network` is that of LoraFile. Throws Error{usage} if there
/// are none.
LoraFile open_adapters(const std::string& path, bool ema, std::optional<int> network = {});

/// The type in which models of the folder compute: f32 or bf16.
DType stored_type(const ModelFolder& model);

/// Loads the model, and verifies a checkpoint. Without `compute` the model computes in the type of
/// its training, or of its weights. A checkpoint of adapters loads the model that it adapts, which
/// must be unchanged, with its adapters. Any other model gets the adapters of `adapters`. Throws
/// Error{usage} if tensors do not fit, which the message lists; Error if it is damaged. With
/// `ranks` this is a collective: all load the same checkpoint together, read its bytes once, and
/// each has its part of the network. A model with two networks opens its folder again for each
/// switch between them, and throws Error if the model has changed.
LoadedModel load_model(const OpenedModel& model, std::optional<DType> compute = DType::f32,
                       Device device = Device::cpu, const AdapterChoice& adapters = {},
                       const LoadingRanks& ranks = {});

}  // namespace vfm::models
