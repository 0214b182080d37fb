// Writing and reading checkpoints (vfm-checkpoint(5)); finding the one to resume from. All ranks of
// a run do each of it together.
//
// A checkpoint is built in RUN/checkpoints/.step-N.tmp, every file synced, COMPLETE with all hashes
// last, and renamed: a killed program leaves the old state or the whole new one. The files of
// tensors are dealt to the ranks, which hash what they write (train/checkpoint/checkpoint_files.h);
// rank 0 writes all else. A failure on one rank ends the checkpoint on all, as on_all_ranks()
// (train/together.h) says, and what there is of it is removed.
// Reading models: models/folder/checkpoint_folder.h. Thread-safety: one thread, one run at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/held_json.h"
#include "dist/mesh.h"
#include "dist/world.h"
#include "train/checkpoint/checkpoint_files.h"
#include "train/state/optimizer.h"

namespace vfm::train {

/// RUN/checkpoints/step-00000500
std::string checkpoint_path(const std::string& run, std::int64_t step);

/// What a checkpoint keeps. But for the optimizer it matters on rank 0 alone.
struct Checkpoint {
  std::int64_t step = 0;
  HeldJson config, train;      ///< model/config.json and train.json
  const Optimizer& optimizer;  ///< weights, moments, average
  /// Where adapters are trained: the metadata of their file (models/folder/lora_file.h), which is
  /// in lora/, in the forms of diffusers and of peft. The same on all ranks, by whether it is
  /// empty.
  std::map<std::string, std::string> adapters = {};
};

/// How a checkpoint is divided. Its bytes depend on the first alone.
struct SaveLimits {
  /// The most bytes of tensors in a file, but for a tensor that is larger by itself. With the
  /// header a file has no more than 1 GiB.
  std::uint64_t file_bytes = (std::uint64_t{1} << 30) - (std::uint64_t{1} << 20);
  /// Of a tensor in memory at a time, and in a message from one rank to another.
  std::uint64_t piece_bytes = CheckpointFiles::kPiece;
};

/// Writes it as RUN/checkpoints/step-N, replacing one of that step. The ranks of holders_of()
/// (train/state/state_shards.h) hold it together; the others have the same. Returns its path when
/// it is durable. A collective.
std::string write_checkpoint(const dist::Mesh& mesh, const std::string& run,
                             const Checkpoint& checkpoint, const SaveLimits& limits = {});

/// Whether tables of positions may be longer in the model than in the files. Then their first rows
/// are those of the files, in weights, moments and average; the others stay as the optimizer has
/// them.
enum class Tables { same, may_be_longer };

/// Reads weights, moments and average into the optimizer's buffers and the parameters' values: each
/// rank the parts that it holds the state of, and nothing else of the files: where ranks share it,
/// StateShards::gather() gives the others the weights. Does not verify hashes. A
/// collective.
void read_checkpoint(dist::World& world, const std::string& folder, const Optimizer& optimizer,
                     Tables tables = Tables::same);

/// Removes what is no longer needed after the checkpoint of `step` was written: of those at regular
/// steps (multiples of `every`, and `step` itself if it is `last`) all but the newest `keep`; all
/// others but `step`: those saved on request, and damaged ones after the step that the run resumed
/// from; and temporary folders. For rank 0.
void prune_checkpoints(const std::string& run, std::int64_t step, std::int64_t every,
                       std::int64_t last, int keep);

/// What is damaged in a checkpoint, the same on all ranks, which share its files out; "": nothing.
/// A collective.
std::string damage_of(dist::World& world, const std::string& folder);

/// The newest checkpoint of the run that passes verification, which the ranks share out; "" if the
/// run has none at all. Warns of each newer one that is damaged. Throws Error if there are some and
/// none is good. A collective.
std::string newest_good_checkpoint(dist::World& world, const std::string& run);

}  // namespace vfm::train
