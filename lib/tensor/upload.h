// Copies to the GPU on a stream of their own, in parallel with kernels, for the data of the next
// step.
//
// Uploads have memory apart from other tensors, since two streams use it: the copy stream writes
// it, the compute stream reads it. Freed memory is written again only after the compute stream has
// passed all that was queued before the memory was freed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tensor/tensor.h"

struct CUevent_st;  // cudaEvent_t

namespace vfm {

/// Some copies that are wanted at the same time. A copied Upload stands for the same copies.
class Upload {
 public:
  Upload();
  /// Queues a copy of a tensor on the CPU on the copy stream. The source may be changed once the
  /// call returns. Thread-safety: any thread.
  Tensor copy(const Tensor& host);
  /// Makes work that is queued on the compute stream from now on wait for the copies, so that it
  /// may read them. The host does not wait. Thread-safety: only the thread that drives the GPU.
  void await() const;

 private:
  std::shared_ptr<CUevent_st> done_;
};

/// Returns uninitialised upload memory, for copies that others queue on the copy stream.
/// Thread-safety: any thread, here and below.
Tensor upload_room(const Shape& shape, DType dtype);
/// Queues a copy of `host` into memory from upload_room(). The source may be changed once the call
/// returns.
void upload_into(const Tensor& room, const Tensor& host);
/// Waits until all that is queued on the copy stream is done.
void finish_uploads();
/// Waits for CUDA's default stream, on which libraries leave work.
void await_unnamed_stream();

}  // namespace vfm
