// NCCL's library, for nccl_cuda.cc: opened when it is first needed, so that programs start without.
// Thread-safety: any thread, as far as NCCL's functions are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <string>

namespace vfm::dist::nccl {

/// The functions that we call, found when the library is opened.
struct Library {
#define VFM_EACH_NCCL(x)                                                                        \
  x(GetVersion) x(GetUniqueId) x(CommInitRank) x(CommDestroy) x(CommAbort) x(CommGetAsyncError) \
      x(GetErrorString) x(GetLastError) x(GroupStart) x(GroupEnd) x(Send) x(Recv) x(Broadcast)  \
          x(AllGather) x(AllReduce) x(Reduce) x(ReduceScatter)
#define VFM_NCCL(name) decltype(&nccl##name) name = nullptr;
  VFM_EACH_NCCL(VFM_NCCL)
#undef VFM_NCCL
  std::string missing;  ///< why it cannot be used, or empty

  Library();
};

/// Never closed.
const Library& library();

}  // namespace vfm::dist::nccl
