// Memory of the GPU: where it comes from, and who keeps how much of it.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>

#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/gpu_graph.h"
#include "tensor/graph_cache.h"

namespace vfm {
namespace {

constexpr std::size_t kSmallest = 512;

void* get(std::size_t size) noexcept {
  void* block = nullptr;
  if (cudaMalloc(&block, size) == cudaSuccess) return block;
  cudaGetLastError();  // the allocator says it better
  return nullptr;
}

void put(void* block, std::size_t /*bytes*/) noexcept {
  cudaFree(block);
}

// Few classes: a batch is small beside activations, and its size changes from step to step.
std::size_t upload_block_size(std::size_t bytes) noexcept {
  return std::bit_ceil(std::max(bytes, kSmallest));
}

MemorySource source() {
  return {get, put, gpu_block_size, " on the GPU", nullptr, nullptr, gpu_memory_limit};
}

// For tensors, in the thread that drives the GPU.
bool make_room() noexcept {
  if (GpuGraph::recording()) return false;
  const bool kept = upload_allocator().stats().cached > 0;
  upload_allocator().release();
  return GraphCache::give_up_all() || kept;
}

// For uploads, in any thread.
bool make_room_for_uploads() noexcept {
  if (GpuGraph::recording()) return false;
  std::lock_guard lock(recording_mutex());
  gpu_allocator().release();
  return true;
}

std::size_t past_peak = 0;  // before the size of the recordings' memory last changed

}  // namespace

// None of these is ever destroyed: tensors in static objects may outlive any order of destruction,
// and the driver takes everything back at the end of the process.
CachingAllocator& gpu_allocator() {
  static CachingAllocator* const instance = [] {
    MemorySource tensors = source();
    tensors.make_room = make_room;
    return new CachingAllocator(tensors);
  }();
  return *instance;
}

CachingAllocator& upload_allocator() {
  static CachingAllocator* const instance = [] {
    MemorySource uploads = source();
    uploads.block_size = upload_block_size;
    uploads.make_room = make_room_for_uploads;
    uploads.limit = nullptr;  // cudaFree would stop the GPU between two batches
    return new CachingAllocator(uploads);
  }();
  return *instance;
}

Arena& gpu_arena() {
  static Arena* const instance = new Arena(source());
  return *instance;
}

std::mutex& recording_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::shared_ptr<void> allocate_gpu(std::size_t bytes) {
  compute_stream();  // says what is missing, if anything is
  if (GpuRecording* const recording = gpu_recording()) {
    std::shared_ptr<void> block = recording->memory.allocate(bytes);
    if (block == nullptr) throw NotRecordable("there is no memory for it to keep");
    return block;
  }
  return gpu_allocator().allocate(bytes);
}

GpuMemory gpu_memory() {
  GpuMemory memory;
  check_gpu(cudaMemGetInfo(&memory.free, &memory.total), "ask for the GPU's memory");
  return memory;
}

MemoryStats cuda_memory() {
  const MemoryStats tensors = gpu_allocator().stats(), uploads = upload_allocator().stats();
  const std::size_t recordings = gpu_arena().size();
  return {tensors.current + recordings + uploads.current,
          std::max(past_peak, tensors.peak + recordings) + uploads.peak,
          tensors.cached + uploads.cached};
}

void remember_cuda_peak() {
  past_peak = std::max(past_peak, gpu_allocator().stats().peak + gpu_arena().size());
  gpu_allocator().reset_peak();
}

void reset_cuda_peak() {
  past_peak = 0;
  gpu_allocator().reset_peak();
  upload_allocator().reset_peak();
}

}  // namespace vfm
