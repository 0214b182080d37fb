// SPDX-License-Identifier: Apache-2.0
#include "base/normals.h"

namespace vfm {
namespace {

NormalBlocks* choose() noexcept {
#if defined(VFM_HAVE_X86_LEVELS)
  __builtin_cpu_init();
  // What x86-64-v4 and v3 add, as far as loops of floats and integers may use it.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd"))
    return avx512::normal_blocks;
  if (v3) return avx2::normal_blocks;
#endif
  return base::normal_blocks;
}

}  // namespace

NormalBlocks* best_normal_blocks() noexcept {
  static NormalBlocks* const best = choose();
  return best;
}

}  // namespace vfm
