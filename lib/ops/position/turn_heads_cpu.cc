// Not compiled for each instruction set: with fused multiply-add the bits would be others.
// SPDX-License-Identifier: Apache-2.0
#include "ops/position/position_kernels.h"

namespace vfm::ops {
namespace {

// Below so many pairs one thread goes through them sooner than several are woken.
constexpr std::int64_t kTurnAlone = 16384;

}  // namespace

void cpu::turn_heads(const TurnHeadsArgs& args) {
  const std::int64_t half = args.half;
#pragma omp parallel for schedule(static) if (args.rows * args.heads * half > kTurnAlone)
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const float* c = args.cosines + row * half;
    const float* s = args.sines + row * half;
    float* head = args.x + row * args.width;
    for (int h = 0; h < args.heads; ++h, head += 2 * half)
#pragma omp simd
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = head[i], b = head[half + i];
        head[i] = a * c[i] - b * s[i];
        head[half + i] = b * c[i] + a * s[i];
      }
  }
}

}  // namespace vfm::ops
