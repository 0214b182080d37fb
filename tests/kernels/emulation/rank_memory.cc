// In place of lib/tensor/memory_cuda.cc, where threads stand for ranks: each has memory of its own,
// as blocks are reused in the order of its own compute stream.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"

namespace vfm {
namespace {

void* get(std::size_t size) noexcept {
  void* block = nullptr;
  return cudaMalloc(&block, size) == cudaSuccess ? block : nullptr;
}
void put(void* block, std::size_t /*bytes*/) noexcept {
  cudaFree(block);
}
MemorySource source() {
  return {get, put, gpu_block_size, " on the GPU", nullptr, nullptr, gpu_memory_limit};
}

}  // namespace

// None of these is ever destroyed: tensors may outlive their thread.
CachingAllocator& gpu_allocator() {
  thread_local auto* const instance = new CachingAllocator(source());
  return *instance;
}
CachingAllocator& upload_allocator() {
  thread_local auto* const instance = new CachingAllocator(source());
  return *instance;
}
Arena& gpu_arena() {
  thread_local auto* const instance = new Arena(source());
  return *instance;
}
std::mutex& recording_mutex() {
  thread_local auto* const instance = new std::mutex;
  return *instance;
}

std::shared_ptr<void> allocate_gpu(std::size_t bytes) {
  return gpu_allocator().allocate(bytes);
}

GpuMemory gpu_memory() {
  GpuMemory memory;
  check_gpu(cudaMemGetInfo(&memory.free, &memory.total), "ask for the GPU's memory");
  return memory;
}
MemoryStats cuda_memory() {
  return gpu_allocator().stats();
}
void remember_cuda_peak() {}
void reset_cuda_peak() {
  gpu_allocator().reset_peak();
}

}  // namespace vfm
