// Work of the compute stream that is recorded once and then repeated with one call: a CUDA graph.
//
// What is repeated is the work on the GPU, with the same addresses, and nothing that the host did
// between. While recording, tensors lie in memory of the recordings (tensor/arena.h); a tensor that
// the host gives is copied at once and is a constant of the recording; what would have to wait for
// the GPU throws NotRecordable.
// Thread-safety: the thread that drives the GPU; others may upload (tensor/upload.h) meanwhile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace vfm {

/// Not an Error: code that handles an Error by another way must let this pass.
class NotRecordable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class GpuGraph {
 public:
  /// Calls `work` with the compute stream recording what is queued; nothing of it is done. Tensors
  /// that outlive `work` are given their values by each replay. Throws what `work` throws, and
  /// NotRecordable if the driver does not take it.
  explicit GpuGraph(const std::function<void()>& work);
  ~GpuGraph();
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  /// Queues the work.
  void replay() const;

  /// Whether the calling thread is recording.
  static bool recording();
  /// Frees memory of recordings that no graph needs: all when there is no graph, else what was
  /// taken since the last was made. Returns the number of bytes.
  static std::size_t release_memory() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm
