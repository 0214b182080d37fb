// The folders of a training run (vfm-checkpoint(5)), for all types of model.
//
//   model/config.json, model/diffusion_pytorch_model.safetensors   diffusers' layout: raw weights
//   lora/pytorch_lora_weights.safetensors            adapters, in place of the weights
//   state/ema.safetensors, state/adam_m..., state/adam_v...        the same names as the weights
//   train.json                                                     step, recipe, tokenizer, ...
//   COMPLETE             written last: hash and name, one line per file, sorted by name
//
// Not here: writing a checkpoint (train/checkpoint/checkpoint.h). Thread-safety: free functions,
// any thread.
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

/// Name of the set of weights in model/, as diffusers expects it.
inline constexpr const char* kWeightsName = "diffusion_pytorch_model";

/// Returns whether a file name is "step-" and digits. Copies with other names belong to the user.
bool is_checkpoint_name(std::string_view name);

/// While it lives, this process holds the lock of a run. It then knows what is in RUN/checkpoints
/// of a bucket, from one listing and from what it writes and removes, so the functions below list
/// no more. Nothing on a disk. One object at a time in a process.
class HeldRun {
 public:
  explicit HeldRun(const std::string& run);
  ~HeldRun();
  HeldRun(const HeldRun&) = delete;
  HeldRun& operator=(const HeldRun&) = delete;

  /// Tells of a checkpoint that was written, with the text of its COMPLETE.
  static void wrote(const std::string& folder, const std::string& complete);
};

/// The checkpoints of a run folder, RUN/checkpoints/step-*, oldest first, without checking that
/// they are complete. In a bucket, where a checkpoint is written under its final name, only those
/// with a COMPLETE. Empty if there are none.
std::vector<std::string> list_checkpoints(const std::string& run);

/// Removes what a killed run left of unfinished checkpoints: temporary folders, and in a bucket
/// checkpoints without their COMPLETE. Only for the program that holds the lock of the run.
void remove_unfinished_checkpoints(const std::string& run);

/// Removes a checkpoint, its COMPLETE first: what a kill leaves of the rest is no checkpoint any
/// more. No error if there is none.
void remove_checkpoint(const std::string& folder);

/// Parses the lines of COMPLETE: name -> hash. Throws Error, naming `what`, for other contents.
std::map<std::string, std::string> parse_complete(std::string_view text, std::string_view what);

/// A file that COMPLETE lists.
struct CompleteFile {
  std::string name, hash;
  std::uint64_t bytes = 0;
};

/// The files that COMPLETE lists, sorted by name. Reads no other file. Throws Error that names a
/// file that is missing or unlisted, or if COMPLETE is missing.
std::vector<CompleteFile> list_complete(const std::string& folder);
/// Reads the file, and throws Error that names it unless it has the listed hash. An object is not
/// read if its writer stored a hash with it (io/remote/upload.h).
void verify_file(const std::string& folder, const CompleteFile& file);
/// Calls list_complete(), then verify_file() for every file, so it reads the whole checkpoint. With
/// several `ranks` each rank verifies its share of the files.
void verify_checkpoint(const std::string& folder, int rank = 0, int ranks = 1);

/// The checkpoint folder for `path`: `path` itself, or the newest checkpoint of the run `path`.
/// Throws Error{usage} if `path` is neither.
std::string find_checkpoint(const std::string& path);

/// The same, but "" if `path` is neither a run nor a checkpoint.
std::string checkpoint_at(const std::string& path);

/// The newest checkpoint of the run folder `path`; "" if it is not a run or has no checkpoint.
std::string newest_of_run(const std::string& path);

/// The checkpoint's train.json, with fields that only readers of recipes know
/// (train/recipe/recipe_file.h); and the name of that file in messages. Throws Error.
/// models/folder/model_facts.h has types for the other fields.
Json read_train_json(const std::string& checkpoint);
std::string train_json_name(const std::string& checkpoint);

/// Calls `use`, which finds the checkpoint for `path` and reads it. Repeats that a few times if it
/// fails because a run that is still training has removed the checkpoint: the run then has a newer
/// one.
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

/// The absolute path of a folder, without "." and ".." and a slash at its end. Of an address the
/// same without a slash at its end.
std::string absolute_path_of(const std::string& path);

/// The folder of a checkpoint's adapters; and whether it has adapters instead of weights.
std::string lora_folder(const std::string& checkpoint);
bool has_adapters(const std::string& checkpoint);

}  // namespace vfm::models
