// Offloads tensors to the host's memory, so that their memory on the GPU is free meanwhile.
//
// Copies are queued on a stream of their own, in parallel with kernels, and the host does not wait
// for them. The compute stream waits where it needs a copy. The host's memory is pinned, in blocks
// as large as the largest block needed so far. Blocks are kept for reuse: at most 5/4 of what was
// ever in use at once (tensor/caching_allocator.h). Copies cannot be recorded (tensor/gpu_graph.h).
// On the CPU a copy is made at once, in ordinary memory. On Device::meta copies are counted
// (tensor/meta.h).
// Thread-safety: only the thread that drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "tensor/tensor.h"

struct CUevent_st;  // cudaEvent_t

namespace vfm {

class Offload {
 public:
  /// Begins to copy `tensor` to the host, after what was queued before, and holds it until
  /// release(). Throws Error if there is not enough pinned memory, and NotRecordable during a
  /// recording.
  explicit Offload(Tensor tensor);
  /// If a copy is still under way, work that is queued afterwards waits for it.
  ~Offload();
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  /// Lets go of the tensor and returns it. Work that is queued from now on waits for the copy and
  /// may reuse the tensor's memory.
  Tensor release();
  /// Begins to copy the values back into new memory, after what was queued before. Does nothing
  /// before release(), or if the values are on their way.
  void fetch();
  /// Returns the tensor, or the copy that came back; begins to fetch it if fetch() was not called.
  /// Work that is queued from now on waits for the copy.
  Tensor get();

  /// The copy in the host's memory, of the tensor's shape and type. While it lives, its address is
  /// unique and serves as a name. The host must not read its values, as it does not know when they
  /// have come.
  const Tensor& place() const { return place_; }

 private:
  void begin(const Tensor& from, const Tensor& to);
  void await();

  Device device_;  // of the tensor
  Tensor place_, tensor_;
  bool under_way_ = false;
  std::shared_ptr<CUevent_st> done_;  // end of the GPU's copy
  std::size_t counted_ = 0;           // number of the copy on Device::meta
};

/// For offload.cc: allocates pinned memory; begins a copy from or to pinned memory after what is on
/// the compute stream now, and returns the event at the end of the copy; and has the compute stream
/// wait for that event.
std::shared_ptr<void> allocate_pinned(std::size_t bytes);
std::shared_ptr<CUevent_st> begin_offload_copy(void* to, const void* from, std::size_t bytes,
                                               bool to_host);
void await_offload_copy(CUevent_st* done);

}  // namespace vfm
