// SPDX-License-Identifier: Apache-2.0
#include "base/normals.h"

#include "base/cpu_level.h"

namespace vfm {

NormalBlocks* best_normal_blocks() noexcept {
  switch (cpu_level()) {
    case CpuLevel::avx512:
      return avx512::normal_blocks;
    case CpuLevel::avx2:
      return avx2::normal_blocks;
    case CpuLevel::base:
      break;
  }
  return base::normal_blocks;
}

}  // namespace vfm
