// The folders of a training run (vfm-checkpoint(5)), whatever the model in them is.
//
//   model/config.json, model/diffusion_pytorch_model.safetensors   diffusers' layout: raw weights
//   lora/pytorch_lora_weights.safetensors            of adapters: these instead of the weights
//   state/ema.safetensors, state/adam_m..., state/adam_v...        the same names as the weights
//   train.json                                                     step, recipe, tokenizer, ...
//   COMPLETE                       written last: hash and name, a line a file, sorted by name
//
// Not here: writing one (train/checkpoint/checkpoint.h). Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"
#include "base/log.h"

namespace vfm::models {

/// Name of the set of weights in model/, as diffusers wants it.
inline constexpr const char* kWeightsName = "diffusion_pytorch_model";

/// Whether a file name is "step-" and digits. Copies that users make under other names are theirs.
bool is_checkpoint_name(std::string_view name);

/// The complete-looking checkpoints of a run folder, RUN/checkpoints/step-*, oldest first. Empty if
/// there is none.
std::vector<std::string> list_checkpoints(const std::string& run);

/// The lines of COMPLETE as name -> hash. Throws Error, naming `what`, for anything else.
std::map<std::string, std::string> parse_complete(std::string_view text, std::string_view what);

/// A file that COMPLETE lists.
struct CompleteFile {
  std::string name, hash;
  std::uint64_t bytes = 0;
};

/// What COMPLETE lists, sorted by name. Reads no other file. Throws Error naming one that is
/// missing or unlisted, or that COMPLETE is absent.
std::vector<CompleteFile> list_complete(const std::string& folder);
/// Reads the file; throws Error, naming it, unless it has that hash.
void verify_file(const std::string& folder, const CompleteFile& file);
/// Both, with each file of a checkpoint: reads all of it. Or with some of the files, where each of
/// so many ranks does its part.
void verify_checkpoint(const std::string& folder, int rank = 0, int ranks = 1);

/// The checkpoint folder that `path` means: itself, or the newest of the run folder `path`. Throws
/// Error{usage} if it is neither.
std::string find_checkpoint(const std::string& path);

/// The same; "" if `path` is neither a run nor a checkpoint.
std::string checkpoint_at(const std::string& path);

/// The newest checkpoint of the run folder `path`; "" if it is no run, or has none.
std::string newest_of_run(const std::string& path);

/// Its train.json, with what only the recipe's readers know (train/recipe/recipe_file.h), and how
/// messages name that file. Throws Error. The rest has types: models/folder/model_facts.h.
Json read_train_json(const std::string& checkpoint);
std::string train_json_name(const std::string& checkpoint);

/// Calls `use`, which finds the checkpoint that `path` means and reads it; and repeats that, a few
/// times, if it fails because `path` is a run that removed that checkpoint meanwhile: a run that is
/// still training has a newer one.
template <class Use>
auto retry_if_gone(const std::string& path, const Use& use) {
  for (int tries = 5;; --tries) {
    const std::string before = newest_of_run(path);
    try {
      return use();
    } catch (const Error& error) {
      if (tries == 1 || before.empty() || newest_of_run(path) == before) throw;
      log_info("{}: the run has gone on, and its newest checkpoint is taken", error.what());
    }
  }
}

/// Where the adapters of a checkpoint are; and whether it has such, and no weights of its own.
std::string lora_folder(const std::string& checkpoint);
bool has_adapters(const std::string& checkpoint);

}  // namespace vfm::models
