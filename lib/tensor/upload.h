// Copies to the GPU beside what it computes: a stream of their own, for the data of the next step.
//
// The memory is apart from that of other tensors, since two streams use it: the copy stream writes
// it, the compute stream reads it. Memory that was freed is written again only when the compute
// stream is past all that was queued before it was freed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tensor/tensor.h"

struct CUevent_st;  // cudaEvent_t

namespace vfm {

/// Some copies that are wanted at the same time. Its copies hold the same.
class Upload {
 public:
  Upload();
  /// Queues a copy of a tensor of the CPU on the copy stream; the source may be changed at return.
  /// Thread-safety: any thread.
  Tensor copy(const Tensor& host);
  /// What is queued on the compute stream from now on waits for the copies, and may read them. The
  /// host does not wait. For the thread that drives the GPU.
  void await() const;

 private:
  std::shared_ptr<CUevent_st> done_;
};

/// Memory of the same kind for what others queue on the copy stream: not initialised.
/// Thread-safety: any thread, here and below.
Tensor upload_room(const Shape& shape, DType dtype);
/// Queues a copy of `host` into such memory; the source may be changed at return.
void upload_into(const Tensor& room, const Tensor& host);
/// Waits until all that is queued on the copy stream is done.
void finish_uploads();
/// Waits for the stream that CUDA takes where none is named: there libraries leave what they do.
void await_unnamed_stream();

}  // namespace vfm
