// The file of share/gpu_board.h in memory.
//
// Only share/gpu_board.cc and share/gpu_states.cc use this header. Callers hold the file's lock
// (Locked), except for join() and leave(), which lock the file themselves. GpuWatch
// (share/gpu_states.h) reads without join(). Thread-safety: as SharedFile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "share/gpu_board.h"
#include "share/gpu_record.h"
#include "share/shared_file.h"

namespace vfm::share {

/// Returns pipe_clock() in seconds.
double gpu_clock();

class GpuMap {
 public:
  /// Opens the file for `share`, the value of VFM_SHARE. If `share` is empty, uses memory of this
  /// program instead of a file.
  explicit GpuMap(const std::string& share);
  static std::string file_of(const std::string& share);

  /// Takes a free record, and finds or adds an entry for each of `gpus`. Throws Error{usage}.
  void join(std::span<const SharedGpu> gpus, const GpuNeed& need);
  void leave();
  int life() const { return shared_.life(); }

  class Locked : public SharedFile::Locked {
   public:
    explicit Locked(GpuMap& map) : SharedFile::Locked(map.shared_) {}
  };

  GpuFile& file() const { return *static_cast<GpuFile*>(shared_.memory()); }
  GpuRecord& own() const { return file().records[own_index_]; }
  std::size_t own_index() const { return own_index_; }
  std::size_t gpus() const;
  /// Returns, for each GPU of this program, its index in the file.
  const std::vector<int>& places() const { return places_; }

  /// Marks the records of ended programs.
  void end_dead();
  /// Returns whether the record's program has joined, has not ended, and has updated its record
  /// within the last second. A running program updates its record every 50 ms.
  bool answers(const GpuRecord& record) const;

  /// Returns the GPUs on which no model computes an item.
  GpuSet free() const;
  /// model_memory() returns the bytes of a GPU that models may use, and loaded_memory() the bytes
  /// that loaded models use.
  std::int64_t model_memory(int gpu) const;
  std::int64_t loaded_memory(int gpu) const;
  /// Returns the bytes of all sessions in use, plus the bytes of the CUDA contexts of programs that
  /// have sessions.
  std::int64_t session_memory(int gpu) const;
  /// Returns the number of free sessions of a kind on a GPU. Memory that models use reduces this
  /// number.
  int free_sessions(int gpu, GpuKind kind) const;
  /// Returns the largest number of sessions that can be free while the loaded models stay loaded.
  /// Each loaded model whose GpuNeed::beside includes `kind` keeps one session.
  int most_sessions(int gpu, GpuKind kind) const;
  /// Returns the names of programs with a model on the GPU: "vfm-embed (process 4711)".
  std::vector<std::string> names_on(int gpu) const;
  /// Returns the record's counters at the time `now`. Seconds include the items under way.
  GpuCounts counts_now(const GpuRecord& record, double now) const;
  /// Returns the input of gpu_for_item() (share/gpu_rule.h), with one claim for each record. A
  /// record that is not of this kind has an empty claim.
  std::vector<GpuClaim> claims(GpuKind kind) const;
  std::vector<GpuPlace> gpu_places() const;

  /// Updates the averages, and plans which models each GPU loads. Does nothing in the 250 ms after
  /// the latest plan (50 ms if a stage has no GPU for its items).
  void plan();
  /// Wakes a waiting thread of the stage that gpu_for_item() chooses for this GPU.
  void call_for(int gpu);

 private:
  void add_gpu(const SharedGpu& gpu, GpuKind kind);
  std::int64_t program_memory(int gpu) const;
  int sessions_used(int gpu, GpuKind kind) const;
  int beside_models(int gpu, GpuKind kind, bool at_work) const;
  GpuStage stage_of(const GpuRecord& record, double now) const;

  SharedFile shared_;
  std::size_t own_index_ = kGpuRecords;  // no record
  std::vector<int> places_;
};

}  // namespace vfm::share
