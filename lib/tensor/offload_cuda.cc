// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>

#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/offload.h"

namespace vfm {
namespace {

// Not that of uploads, which would stand behind copies that wait for a whole step.
cudaStream_t offload_stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    check_gpu(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "make a stream");
    return made;
  }();
  return stream;
}

void* get_pinned(std::size_t size) noexcept {
  void* block = nullptr;
  if (cudaMallocHost(&block, size) == cudaSuccess) return block;
  cudaGetLastError();  // the allocator says it better
  return nullptr;
}

// The host is ahead of the copies that were queued from and to it.
void put_pinned(void* block, std::size_t /*bytes*/) noexcept {
  cudaStreamSynchronize(offload_stream());
  cudaFreeHost(block);
}

// All as large as the largest so far: what one pack leaves serves the next, which has other sizes,
// and to pin memory anew would take the host seconds.
std::size_t pinned_block_size(std::size_t bytes) noexcept {
  static std::size_t largest = 0;  // of the one thread that drives the GPU
  return largest = std::max(largest, block_size(bytes));
}

std::shared_ptr<CUevent_st> event_on(cudaStream_t stream) {
  cudaEvent_t made = nullptr;
  check_gpu(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "make an event");
  const std::shared_ptr<CUevent_st> event(made, [](cudaEvent_t e) { cudaEventDestroy(e); });
  check_gpu(cudaEventRecord(made, stream), "record an event");
  return event;
}

}  // namespace

// Never destroyed, like the others.
CachingAllocator& pinned_allocator() {
  static CachingAllocator* const instance =
      new CachingAllocator({get_pinned, put_pinned, pinned_block_size,
                            " in pinned memory of the host, where 'model.offload' puts it", nullptr,
                            nullptr, gpu_memory_limit});
  return *instance;
}

std::shared_ptr<void> allocate_pinned(std::size_t bytes) {
  compute_stream();  // says what is missing, if anything is
  refuse_recording("move tensors to the host");
  return pinned_allocator().allocate(bytes);
}

std::shared_ptr<CUevent_st> begin_offload_copy(void* to, const void* from, std::size_t bytes,
                                               bool to_host) {
  refuse_recording("move tensors between the host and the GPU");
  const std::shared_ptr<CUevent_st> begin = event_on(compute_stream());
  check_gpu(cudaStreamWaitEvent(offload_stream(), begin.get(), 0), "wait for what is computed");
  check_gpu(
      cudaMemcpyAsync(to, from, bytes, to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                      offload_stream()),
      to_host ? "copy from the GPU" : "copy to the GPU");
  return event_on(offload_stream());
}

void await_offload_copy(CUevent_st* done) {
  check_gpu(cudaStreamWaitEvent(compute_stream(), done, 0), "wait for copies");
}

}  // namespace vfm
