// cuDNN's library and its "backend descriptors", for files that build and run graphs.
// Errors have cuDNN's message and the step that failed. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>

#include "ops/cudnn/cudnn_plan_cuda.h"

namespace vfm::ops::cudnn {

using Descriptor = CudnnDescriptor;

/// The functions of cuDNN that we call, found when the library is opened.
struct Library {
#define VFM_EACH_CUDNN(x)                                                                \
  x(BackendCreateDescriptor) x(BackendDestroyDescriptor) x(BackendSetAttribute)          \
      x(BackendGetAttribute) x(BackendFinalize) x(BackendExecute) x(Create) x(SetStream) \
          x(GetVersion) x(GetErrorString) x(GetLastErrorString)
#define VFM_CUDNN(name) decltype(&cudnn##name) name = nullptr;
  VFM_EACH_CUDNN(VFM_CUDNN)
#undef VFM_CUDNN
  std::string missing;  ///< why the library cannot be used; empty if it can

  Library();
};

/// Throws Error if the library cannot be used.
const Library& library();

std::string last_error(cudnnStatus_t status);
/// Throws Error: "cuDNN cannot <what>: ...".
void check(cudnnStatus_t status, const char* what);

Descriptor create(cudnnBackendDescriptorType_t type);
void set(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         std::int64_t count, const void* values);
void set(const Descriptor& d, cudnnBackendAttributeName_t name, const Descriptor& value);
void set(const Descriptor& d, cudnnBackendAttributeName_t name, std::int64_t value);
void set(const Descriptor& d, cudnnBackendAttributeName_t name, bool value);
void set(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnDataType_t value);
void finish(const Descriptor& d, const char* what);

}  // namespace vfm::ops::cudnn
