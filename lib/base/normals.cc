// SPDX-License-Identifier: Apache-2.0
#include "base/normals.h"

#include "base/cpu_level.h"

namespace vfm {

NormalBlocks* best_normal_blocks() noexcept {
  return best_of(base::normal_blocks, avx2::normal_blocks, avx512::normal_blocks);
}

}  // namespace vfm
