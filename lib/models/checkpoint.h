// Reading a checkpoint folder (vfm-checkpoint(5)): what training resumes from and generation loads.
//
//   model/config.json, model/diffusion_pytorch_model.safetensors   diffusers' layout: raw weights
//   state/ema.safetensors, state/adam_m..., state/adam_v...        the same names as the weights
//   train.json                                                     step, recipe, tokenizer, ...
//   COMPLETE                                                       written last: hash and name, a
//   line
//                                                                  a file, sorted by name
// Not here: writing one (train/checkpoint.h). Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/decoder.h"
#include "models/network.h"

namespace vfm::models {

/// Name of the set of weights in model/, as diffusers wants it.
inline constexpr const char* kWeightsName = "diffusion_pytorch_model";

/// Whether a file name is "step-" and digits. Copies that users make under other names are theirs.
bool is_checkpoint_name(std::string_view name);

/// The complete-looking checkpoints of a run folder, RUN/checkpoints/step-*, oldest first. Empty if
/// there is none.
std::vector<std::string> list_checkpoints(const std::string& run);

/// Checks every file against COMPLETE. Throws Error naming the first file that is missing, changed
/// or unlisted, or that COMPLETE is absent. Reads the whole checkpoint.
void verify_checkpoint(const std::string& folder);

/// The checkpoint folder that `path` means: itself, or the newest of the run folder `path`. Throws
/// Error{usage} if it is neither.
std::string find_checkpoint(const std::string& path);

struct LoadedModel {
  std::unique_ptr<DiffusionNetwork> network;  ///< or null: it is a decoder
  Json train;                                 ///< train.json
  std::string folder;                         ///< of the checkpoint
  bool ema = false;                           ///< whether the weights are the averaged ones
  DType compute = DType::f32;
  std::unique_ptr<Decoder> decoder = nullptr;

  const nn::ParameterList& parameters() const;
  Device device() const;
};

/// The model of a run or checkpoint folder, verified. `ema` asks for the averaged weights, where
/// the checkpoint has them. Without `compute` it computes as it was trained. Throws Error{usage} if
/// `path` is no checkpoint, Error if it is damaged.
LoadedModel load_model(const std::string& path, bool ema, std::optional<DType> compute = DType::f32,
                       Device device = Device::cpu);

}  // namespace vfm::models
