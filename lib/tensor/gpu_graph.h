// A CUDA graph: work of the compute stream that is recorded once and repeated with one call.
//
// A replay repeats the work on the GPU with the same addresses, but not what the host did in
// between. While recording, tensors lie in memory of the recordings (tensor/arena.h). A tensor that
// the host gives is copied at once and is a constant of the recording. An operation that would have
// to wait for the GPU throws NotRecordable.
// Thread-safety: only the thread that drives the GPU; other threads may upload (tensor/upload.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace vfm {

/// Not an Error, so that code which handles an Error in another way lets it pass.
class NotRecordable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class GpuGraph {
 public:
  /// Calls `work` and records on the compute stream what it queues, without running it. Tensors
  /// that outlive `work` get their values at each replay. Throws what `work` throws, and
  /// NotRecordable if the driver refuses the recording.
  explicit GpuGraph(const std::function<void()>& work);
  ~GpuGraph();
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  /// Queues the recorded work.
  void replay() const;

  /// Whether the calling thread is recording.
  static bool recording();
  /// Frees memory of recordings that no graph needs: all of it if no graph exists, else what was
  /// taken since the last graph was made. Returns the number of bytes freed.
  static std::size_t release_memory() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm
