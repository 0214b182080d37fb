// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <utility>

namespace {

constexpr int kSuccess = 0, kNoDevice = 100, kNotSupported = 801;

std::vector<std::string>& names() {
  static std::vector<std::string> all;
  return all;
}

}  // namespace

std::vector<std::string> vfm::test::loaded_kernels() {
  return std::exchange(names(), {});
}

// The driver's C interface, as far as it is used; the types do not matter to the linker.
extern "C" {

int cuInit(unsigned) {
  return kNoDevice;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
// Without one, cuDNN would not load what it has made.
int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "an error of the emulated driver";
  return kSuccess;
}
int cuLibraryLoadData(void** library, const void*) {
  static char loaded;
  *library = &loaded;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  names().emplace_back(name);
  *kernel = library;
  return kSuccess;
}
int cuLibraryUnload(void*) {
  return kSuccess;
}

// Looked up, not called.
#define VFM_UNUSED(name)  \
  int name() {            \
    return kNotSupported; \
  }
VFM_UNUSED(cuCtxGetCurrent)
VFM_UNUSED(cuCtxGetLimit)
VFM_UNUSED(cuCtxPopCurrent)
VFM_UNUSED(cuCtxPushCurrent)
VFM_UNUSED(cuDeviceGet)
VFM_UNUSED(cuGetErrorName)
VFM_UNUSED(cuKernelGetAttribute)
VFM_UNUSED(cuKernelSetAttribute)
VFM_UNUSED(cuLaunchCooperativeKernel)
VFM_UNUSED(cuLaunchKernel)
VFM_UNUSED(cuLaunchKernelEx)
VFM_UNUSED(cuLibraryLoadFromFile)
VFM_UNUSED(cuLinkAddData)
VFM_UNUSED(cuLinkComplete)
VFM_UNUSED(cuLinkCreate)
VFM_UNUSED(cuLinkDestroy)
VFM_UNUSED(cuOccupancyMaxPotentialClusterSize)
VFM_UNUSED(cuStreamGetCtx)
}
