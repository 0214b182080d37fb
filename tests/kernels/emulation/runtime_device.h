// CUDA's runtime header for the emulation: the device, of which there is one, and the driver.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime_types.h"
#include "streams.h"

struct cudaDeviceProp {
  char name[32];
  std::size_t totalGlobalMem;
  int major, minor;
};
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulation", std::size_t{1} << 30, 0, 0};
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* index) {
  *index = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) {
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
