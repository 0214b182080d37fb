// Tensors whose values wait in the host's memory, so that the GPU's is free for others meanwhile.
//
// Copies are queued on a stream of their own, beside what is computed, and the host waits for none;
// what is computed waits where it has to. The host's memory is pinned, in blocks as large as the
// largest that was needed so far, and kept for the next time: at most 5/4 of what was ever in use
// at once (tensor/caching_allocator.h). Nothing of this can be recorded (tensor/gpu_graph.h).
// On the CPU a copy is made at once, in memory like any other. On Device::meta copies are counted
// (tensor/meta.h). Thread-safety: the thread that drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "tensor/tensor.h"

struct CUevent_st;  // cudaEvent_t

namespace vfm {

class Offload {
 public:
  /// Begins to copy `tensor` to the host, after what was queued before, and keeps it until
  /// release(). Throws Error if there is not so much pinned memory, and NotRecordable.
  explicit Offload(Tensor tensor);
  /// What is queued from then on waits for a copy that is still under way.
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  /// Lets go of the tensor, which it gives: what is queued from now on waits for the copy, and may
  /// take its place.
  Tensor release();
  /// Begins to copy the values back, after what was queued before, into memory of their own. Does
  /// nothing before release(), nor if they are on their way.
  void fetch();
  /// The tensor, or what came back, which is fetched now unless it was before. What is queued from
  /// now on waits for it.
  Tensor get();

  /// As the tensor was, in the host's memory: its address is a name that nothing else has while it
  /// lives. Its values are not for the host, which does not know when they have come.
  const Tensor& place() const { return place_; }

 private:
  void begin(const Tensor& from, const Tensor& to);
  void await();

  Device device_;  // the tensor's
  Tensor place_, tensor_;
  bool under_way_ = false;
  std::shared_ptr<CUevent_st> done_;  // of the GPU's copy
  std::size_t counted_ = 0;           // the copy's number on Device::meta
};

/// For offload.cc: pinned memory; a copy from or to it, after what is on the compute stream now,
/// and the event at its end; and the compute stream's wait for that.
std::shared_ptr<void> allocate_pinned(std::size_t bytes);
std::shared_ptr<CUevent_st> begin_offload_copy(void* to, const void* from, std::size_t bytes,
                                               bool to_host);
void await_offload_copy(CUevent_st* done);

}  // namespace vfm
