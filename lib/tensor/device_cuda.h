// What the CUDA side of this layer shares. Thread-safety: as device.h, but where it is said.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tensor/arena.h"
#include "tensor/caching_allocator.h"
#include "tensor/tensor.h"

struct CUstream_st;  // cudaStream_t

namespace vfm {

/// Memory whose blocks are reused in the order of the compute stream, recording or not.
CachingAllocator& gpu_allocator();
/// That of uploads. When one of the two has no more, the other gives back what it keeps.
/// Thread-safety: any thread.
CachingAllocator& upload_allocator();
/// Pinned memory of the host, for offload.h alone: reused in the order of its stream.
CachingAllocator& pinned_allocator();
/// That of recordings.
Arena& gpu_arena();
/// Before the size of the arena changes: what was in use until now counts for cuda_memory().peak.
void remember_cuda_peak();
/// Held while something is recorded: other threads give nothing back to the driver meanwhile.
std::mutex& recording_mutex();

/// The stream of upload.h.
CUstream_st* copy_stream();
/// Makes the GPU of this process that of the calling thread. Any thread.
void use_this_gpu();

/// What the compute stream records just now.
struct GpuRecording {
  Arena& memory;                  ///< of its tensors
  std::vector<Tensor> constants;  ///< what the host gave: the same at each repetition
};
/// Of the calling thread; null: what is queued is done.
GpuRecording*& gpu_recording();
/// Throws NotRecordable{what} while something is being recorded.
void refuse_recording(const char* what);

}  // namespace vfm
