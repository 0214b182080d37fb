// SPDX-License-Identifier: Apache-2.0
#include "tensor/staging_cuda.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "tensor/device.h"

namespace vfm {
namespace {
constexpr std::size_t kRoom = std::size_t{8} << 20;
}

void Staging::copy_in(void* to, const void* from, std::size_t bytes, CUstream_st* stream) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, kRoom);
    Half& half = halves_[next_];
    next_ = 1 - next_;
    open(half);
    check_gpu(cudaEventSynchronize(half.done), "wait for a copy");
    std::memcpy(half.room, static_cast<const std::byte*>(from) + done, part);
    check_gpu(cudaMemcpyAsync(static_cast<std::byte*>(to) + done, half.room, part,
                              cudaMemcpyHostToDevice, stream),
              "copy to the GPU");
    check_gpu(cudaEventRecord(half.done, stream), "record an event");
    done += part;
  }
}

void Staging::open(Half& half) {
  if (half.room != nullptr) return;
  check_gpu(cudaMallocHost(&half.room, kRoom), "get pinned memory");
  check_gpu(cudaEventCreateWithFlags(&half.done, cudaEventDisableTiming), "make an event");
}

}  // namespace vfm
