// Writes and reads checkpoints (vfm-checkpoint(5)) and finds the one to resume from. All ranks of a
// run call these functions together.
//
// A checkpoint is built in RUN/checkpoints/.step-N.tmp (train/checkpoint/checkpoint_saver.h). Every
// file is synced, COMPLETE with all hashes is written last, and the folder is renamed: a killed
// program leaves the old state or the whole new one. In a bucket, where a rename would be a copy,
// it is built under its final name, and COMPLETE makes it count. The files of tensors are
// distributed over the ranks, which hash what they write (train/checkpoint/checkpoint_files.h);
// rank 0 writes everything else. A failure on one rank ends the checkpoint on all, and the
// unfinished folder is removed. Reading of models: models/folder/checkpoint_folder.h.
// Thread-safety: one thread, one run at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "dist/mesh.h"
#include "dist/world.h"
#include "train/checkpoint/checkpoint_files.h"
#include "train/state/optimizer.h"

namespace vfm::train {

/// The path of a step's checkpoint: RUN/checkpoints/step-00000500.
std::string checkpoint_path(const std::string& run, std::int64_t step);

/// A network that was trained beside the first (train/step/objective.h); in networks/NAME.
struct OtherState {
  std::string name;
  const Optimizer& optimizer;
};

/// Contents of a checkpoint. All except the optimizer are used on rank 0 only.
struct Checkpoint {
  std::int64_t step = 0;
  HeldJson config, train;      ///< model/config.json and train.json
  const Optimizer& optimizer;  ///< weights, moments, average
  /// If adapters are trained: metadata of their file (models/folder/lora_file.h), which is written
  /// in lora/ in the forms of diffusers and of peft. It must be empty on all ranks or on none.
  std::map<std::string, std::string> adapters = {};
  std::vector<OtherState> others = {};
};

/// Sizes of files and messages. The bytes of a checkpoint depend on file_bytes only.
struct SaveLimits {
  /// Most bytes of tensors in a file, except a single tensor that is larger. With its header a file
  /// has at most 1 GiB.
  std::uint64_t file_bytes = (std::uint64_t{1} << 30) - (std::uint64_t{1} << 20);
  /// Most bytes of a tensor in memory at a time, and in a message from one rank to another.
  std::uint64_t piece_bytes = CheckpointFiles::kPiece;
  /// Most bytes of a host's memory for the snapshot of a checkpoint (checkpoint_saver.h).
  double snapshot_bytes = 1e300;
};

/// Writes RUN/checkpoints/step-N, replacing a checkpoint of that step. The ranks of holders_of()
/// (train/state/state_shards.h) have all parameters together; other ranks have copies. Returns the
/// path when the checkpoint is durable. Training does that beside its steps (checkpoint_saver.h). A
/// collective.
std::string write_checkpoint(const dist::Mesh& mesh, const std::string& run,
                             const Checkpoint& checkpoint, const SaveLimits& limits = {});

/// Copies of a checkpoint's files: hash of the contents -> path (snapshot_files(),
/// train/checkpoint/snapshot_memory.h). Each rank may have its own.
using FileCopies = std::map<std::string, std::string>;

/// may_be_longer: position tables of the model may be longer than those in the files. The files
/// then give the first rows of weights, moments and average; the optimizer keeps its own for the
/// other rows.
enum class Tables { same, may_be_longer };

/// Reads weights, moments and average into the optimizer's buffers and the parameters' values. Each
/// file is read once (train/checkpoint/checkpoint_reading.h), by a rank with a copy if there is
/// one, and each rank gets only the parts whose state it keeps; then StateShards::gather() sends
/// shared weights to the other ranks. Does not verify hashes. A collective.
void read_checkpoint(dist::World& world, const std::string& folder, const Optimizer& optimizer,
                     Tables tables = Tables::same, const std::vector<OtherState>& others = {},
                     const FileCopies& copies = {});

/// Removes checkpoints that are not needed after that of `step` was written. Among those of regular
/// steps (multiples of `every`, and `last`) the newest `keep` stay. All others except `step` go:
/// those saved on request, and damaged ones after the step from which the run resumed. Earlier
/// multiples of `keep_every` (0: none) stay, beside the newest. Temporary folders go, too. Call it
/// on rank 0.
void prune_checkpoints(const std::string& run, std::int64_t step, std::int64_t every,
                       std::int64_t last, int keep, std::int64_t keep_every = 0);

/// Describes damage in a checkpoint, or returns "". The ranks share the files out, and all get the
/// same result. A file of which any has a copy is not looked at. A collective.
std::string damage_of(dist::World& world, const std::string& folder, const FileCopies& copies = {});

/// The newest checkpoint of the run that passes verification, in which all ranks take part. "" if
/// the run has no checkpoint. Warns of each newer one that is damaged. Throws Error if there are
/// some and all are damaged. A collective.
std::string newest_good_checkpoint(dist::World& world, const std::string& run,
                                   const FileCopies& copies = {});

}  // namespace vfm::train
