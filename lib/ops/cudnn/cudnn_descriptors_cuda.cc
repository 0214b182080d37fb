// SPDX-License-Identifier: Apache-2.0
#include "ops/cudnn/cudnn_descriptors_cuda.h"

#include <array>

#include "base/error.h"
#include "base/shared_library.h"

namespace vfm::ops {

namespace cudnn {

Library::Library() {
  // The one beside the CUDA toolkit that vfm was built with, then the system's. It opens its
  // parts (libcudnn_graph and others) from its own folder.
  SharedLibrary file{VFM_CUDA_LIBRARIES "/libcudnn.so.9", "libcudnn.so.9"};
#define VFM_CUDNN(name) file.find("cudnn" #name, name);
  VFM_EACH_CUDNN(VFM_CUDNN)
#undef VFM_CUDNN
  missing = file.missing();
  // Before 9.6 we would have to clear dq's sums, 9.10.0 and 9.10.1 are known to be wrong.
  if (missing.empty() && GetVersion() < 91002)
    missing = vfm::format("libcudnn is of version {}; 91002 (9.10.2) is needed", GetVersion());
}

namespace {

// Never closed: the driver may be gone before static objects are.
const Library& opened() {
  static const Library* const instance = new Library;
  return *instance;
}

}  // namespace

const Library& library() {
  if (!opened().missing.empty()) fail("{}", opened().missing);
  return opened();
}

std::string last_error(cudnnStatus_t status) {
  std::array<char, 512> text{};
  library().GetLastErrorString(text.data(), text.size());
  std::string reason = library().GetErrorString(status);
  if (text[0] != 0) reason += std::string(": ") + text.data();
  while (!reason.empty() && (reason.back() == '\n' || reason.back() == ' '))
    reason.pop_back();
  return reason;
}

void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) fail("cuDNN cannot {}: {}", what, last_error(status));
}

Descriptor create(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(library().BackendCreateDescriptor(type, &made), "make a descriptor");
  return {made, [](void* p) { library().BackendDestroyDescriptor(p); }};
}

void set(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
         std::int64_t count, const void* values) {
  const cudnnStatus_t status = library().BackendSetAttribute(d.get(), name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS)
    fail("cuDNN cannot set attribute {}: {}", static_cast<int>(name), last_error(status));
}

void set(const Descriptor& d, cudnnBackendAttributeName_t name, const Descriptor& value) {
  void* const pointer = value.get();
  set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointer);
}

void set(const Descriptor& d, cudnnBackendAttributeName_t name, std::int64_t value) {
  set(d, name, CUDNN_TYPE_INT64, 1, &value);
}

void set(const Descriptor& d, cudnnBackendAttributeName_t name, bool value) {
  set(d, name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

void set(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(d, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

void finish(const Descriptor& d, const char* what) {
  check(library().BackendFinalize(d.get()), what);
}

}  // namespace cudnn

std::string why_no_cudnn_library() {
  return cudnn::opened().missing;
}

std::size_t cudnn_version_number() {
  return cudnn::library().GetVersion();
}

std::string cudnn_version() {
  const std::size_t version = cudnn_version_number();
  return vfm::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace vfm::ops
