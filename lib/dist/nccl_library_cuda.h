// NCCL's library, for nccl_cuda.cc. It is opened when first needed, so programs start without it.
// Thread-safety: any thread, as far as NCCL's functions allow.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <string>

namespace vfm::dist::nccl {

/// The NCCL functions that are used, looked up when the library is opened.
struct Library {
#define VFM_EACH_NCCL(x)                                                                        \
  x(GetVersion) x(GetUniqueId) x(CommInitRank) x(CommDestroy) x(CommAbort) x(CommGetAsyncError) \
      x(GetErrorString) x(GetLastError) x(GroupStart) x(GroupEnd) x(Send) x(Recv) x(Broadcast)  \
          x(AllGather) x(AllReduce) x(Reduce) x(ReduceScatter)
#define VFM_NCCL(name) decltype(&nccl##name) name = nullptr;
  VFM_EACH_NCCL(VFM_NCCL)
#undef VFM_NCCL
  std::string missing;  ///< why the library cannot be used; empty: it can

  Library();
};

/// The library stays open until the process ends.
const Library& library();

}  // namespace vfm::dist::nccl
