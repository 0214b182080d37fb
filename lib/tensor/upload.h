// Copies to the GPU beside what it computes: a stream of their own, for the data of the next step.
//
// The memory is apart from that of other tensors, since two streams use it: the copy stream writes
// it, the compute stream reads it. Memory that was freed is written again only when the compute
// stream is past all that was queued before it was freed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm {

/// Queues a copy of a tensor of the CPU on the copy stream; the source may be changed at return.
/// What is computed may read the result after await_uploads(). Thread-safety: any thread.
Tensor upload_beside(const Tensor& host);

/// What is queued on the compute stream from now on waits for the copies that were queued before.
/// For the thread that drives the GPU; the host does not wait.
void await_uploads();

}  // namespace vfm
