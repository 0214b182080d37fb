// Allocators, streams and the recording that the CUDA files of this folder share. Thread-safety: as
// device.h, unless stated otherwise.
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

/// Memory of tensors. Blocks are reused in the order of the compute stream.
CachingAllocator& gpu_allocator();
/// Memory of uploads. When this allocator or gpu_allocator() has no more memory, the other gives
/// back the blocks it keeps. Thread-safety: any thread.
CachingAllocator& upload_allocator();
/// Pinned memory of the host, for offload.h alone. Blocks are reused in the order of its stream.
CachingAllocator& pinned_allocator();
/// Memory of recordings.
Arena& gpu_arena();
/// Call before the size of the arena changes: saves the peak so far for cuda_memory().peak.
void remember_cuda_peak();
/// Held during a recording, so that other threads give nothing back to the driver.
std::mutex& recording_mutex();

/// The stream of upload.h.
CUstream_st* copy_stream();
/// Makes this process's GPU the current GPU of the calling thread. Thread-safety: any thread.
void use_this_gpu();

/// The recording that is under way on the compute stream.
struct GpuRecording {
  Arena& memory;                  ///< memory of its tensors
  std::vector<Tensor> constants;  ///< copies of what the host gave: the same at each replay
};
/// The recording of the calling thread. Null if it records nothing, so that queued work runs.
GpuRecording*& gpu_recording();
/// Throws NotRecordable{what} while something is being recorded.
void refuse_recording(const char* what);

}  // namespace vfm
