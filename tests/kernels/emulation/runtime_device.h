// CUDA's runtime header for the emulation: the devices, and the driver.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime_types.h"
#include "streams.h"

struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[32];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem;
  int major, minor;
};
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  *properties = {"emulation", {{'e', 'm', static_cast<char>(index)}}, std::size_t{1} << 30, 0, 0};
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* index) {
  *index = vfm::emulation::device();
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int index) {
  vfm::emulation::device() = index;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  return vfm::emulation::finish_all();
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}
