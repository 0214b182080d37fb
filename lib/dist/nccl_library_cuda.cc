// SPDX-License-Identifier: Apache-2.0
#include "dist/nccl_library_cuda.h"

#include "base/shared_library.h"

namespace vfm::dist::nccl {

Library::Library() {
  // The one beside the CUDA toolkit that vfm was built with, then the system's.
  SharedLibrary file{VFM_CUDA_LIBRARIES "/libnccl.so.2", "libnccl.so.2"};
#define VFM_NCCL(name) file.find("nccl" #name, name);
  VFM_EACH_NCCL(VFM_NCCL)
#undef VFM_NCCL
  missing = file.missing();
}

const Library& library() {
  static const Library* const instance = new Library;
  return *instance;
}

}  // namespace vfm::dist::nccl
