// Writes checkpoints while training goes on.
//
// begin() copies the bytes of the files that this rank writes into the host's memory
// (train/checkpoint/snapshot_memory.h): the step waits for that copy, and for the parts that other
// ranks send, and for no disk. From a GPU the bytes are copied while the next step computes
// (train/checkpoint/gpu_snapshot.h), and parts are sent after it. A thread then writes, hashes and
// syncs the files. At the end of each step all ranks add up how many have done their part (notes())
// and follow the sums (advance()).
// When all have, the thread of rank 0 writes the other files, COMPLETE last, and renames the
// folder. If a rank fails, the unfinished folder is removed, and nothing else is. What is written
// is the snapshot, so a checkpoint is a pure function of its step.
// A rank whose host has no room for a snapshot writes in begin(). Ranks leave begin() together: who
// is in the next step waits less long for others than a disk may take.
// Thread-safety: the thread that made the world. The threads call no MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dist/mesh.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/file_collection.h"
#include "train/checkpoint/gpu_snapshot.h"
#include "train/checkpoint/save_job.h"
#include "train/checkpoint/snapshot_memory.h"

namespace vfm::train {

/// What each rank tells of its part of a checkpoint that is being written; or the sums over ranks.
struct SaveNotes {
  double done = 0;    ///< 1: this rank has done its part, or failed
  double failed = 0;  ///< 1: it failed
  double due = 0;     ///< 1 on rank 0: 'train.checkpoint_minutes' have passed
};

/// A checkpoint that was written, or could not be.
struct SavedCheckpoint {
  std::int64_t step = 0;
  std::string folder;
  bool complete = false;
  std::string failure = {};     ///< on rank 0: what the first rank that failed says
  std::exception_ptr own = {};  ///< what this rank threw, if it failed

  /// Throws unless it is complete, as on_all_ranks() does. A collective.
  void need(dist::World& world) const;
};

class CheckpointSaver {
 public:
  /// `memory` is the folder of SnapshotMemory. Keeps the reference.
  CheckpointSaver(const dist::Mesh& mesh, std::string run, const SaveLimits& limits = {},
                  const std::string& memory = kMemoryFolder);
  /// Abandons a checkpoint that is being written. A thread whose disk hangs is left behind.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  /// Begins to make room for checkpoints like this one on a thread: new memory takes longer than a
  /// copy.
  void prepare(const Checkpoint& checkpoint);
  /// Begins to write RUN/checkpoints/step-N; none may be pending. Afterwards the checkpoint's
  /// tensors may change; those on a GPU by their optimizer alone, which waits for the copies
  /// (Optimizer::before_change). A collective.
  void begin(const Checkpoint& checkpoint, AroundComplete around = {});
  bool pending() const { return phase_ != Phase::idle; }
  /// What this rank tells now.
  SaveNotes notes() const;
  /// Goes on by the sums of all ranks' notes. Returns the checkpoint that thereby ended, if any. A
  /// collective.
  std::optional<SavedCheckpoint> advance(const SaveNotes& sums);
  /// Waits until the pending checkpoint, if any, has ended. After `limit` seconds (0: none) all
  /// ranks fail, and say which rank writes which file. A collective.
  std::optional<SavedCheckpoint> finish(double limit = 0);
  /// Abandons what is pending, and removes the snapshots, at the end of a run.
  void forget() noexcept;

 private:
  enum class Phase { idle, copy, prepare, write, complete, clean };
  using Act = std::function<void(SaveJob&)>;
  void begin_own(const Checkpoint& checkpoint);
  CheckpointFiles files_of(const Checkpoint& checkpoint) const;
  double of_host(const CheckpointFiles& files) const;
  SnapshotMemory::Place make_room(const CheckpointFiles& files);
  bool agree_on_memory(const CheckpointFiles& files);
  bool agree_on_copies(const nn::ParameterList& parameters) const;
  void name_files();
  void copy_beside(const Checkpoint& checkpoint);
  void fill(const FileCollection::Read& read, bool prepares);
  void stream();
  void done(std::map<std::string, std::string> hashes, std::exception_ptr failure);
  void start(Act act);
  void start_write();
  void start_complete(const std::vector<std::string>& lines);
  void start_clean();
  void fail_late(double limit);
  bool abandon() noexcept;

  const dist::Mesh& mesh_;
  const std::string run_;
  const SaveLimits limits_;
  const std::shared_ptr<SnapshotMemory> memory_;
  bool streams_ = false, said_streams_ = false;  // this rank; that some do
  std::future<void> room_;                       // what prepare() began

  Phase phase_ = Phase::idle;
  SavedCheckpoint saved_;
  std::string temporary_;  // where it is built
  std::vector<SnapshotFile> own_;
  std::optional<FileCollection> collection_;           // until it was run
  std::shared_ptr<GpuSnapshot> copies_;                // in Phase::copy, unless it failed at once
  std::map<std::string, std::string> texts_;           // on rank 0: name -> contents
  std::vector<std::pair<std::string, int>> expected_;  // on rank 0: files and their writers
  AroundComplete around_;
  std::shared_ptr<SaveJob> job_;  // of this phase; null: this rank has none
  std::thread thread_;
};

}  // namespace vfm::train
