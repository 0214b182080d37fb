// The memory of this host, as far as this process may use it. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::train {

struct HostMemory {
  double all = 0;   ///< bytes of the host, or of this process's control group if that may use less
  double free = 0;  ///< bytes of it that can be taken without swapping; what caches files is free
};
HostMemory host_memory();

}  // namespace vfm::train
