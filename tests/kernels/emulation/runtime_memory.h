// CUDA's runtime header for the emulation: memory, and copies of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#include "memory.h"
#include "runtime_types.h"
#include "streams.h"

inline cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = nullptr;
  if (const int status = vfm::emulation::unsafe_call()) return status;
  *pointer = vfm::emulation::allocate(bytes);
  return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* pointer) {
  return vfm::emulation::free(pointer);
}
inline cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaMalloc(pointer, bytes);
}
inline cudaError_t cudaFreeHost(void* pointer) {
  return cudaFree(pointer);
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30;
  return cudaSuccess;
}

inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return vfm::emulation::do_now([=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
}
inline cudaError_t cudaMemset(void* at, int byte, std::size_t bytes) {
  return vfm::emulation::do_now([=] { std::memset(at, byte, bytes); });
}
inline cudaError_t cudaMemsetAsync(void* at, int byte, std::size_t bytes, cudaStream_t stream) {
  return vfm::emulation::submit(stream, [=] { std::memset(at, byte, bytes); });
}
// From and to pinned memory, which is read and written when the copy's turn comes.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) {
  return vfm::emulation::submit(stream, [=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_stride, const void* from,
                                     std::size_t from_stride, std::size_t bytes, std::size_t rows,
                                     cudaMemcpyKind, cudaStream_t stream) {
  return vfm::emulation::submit(stream, [=] {
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(static_cast<char*>(to) + i * to_stride,
                  static_cast<const char*>(from) + i * from_stride, bytes);
  });
}
