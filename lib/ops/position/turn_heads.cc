// SPDX-License-Identifier: Apache-2.0
#include "ops/position/turn_heads.h"

#include "base/error.h"
#include "ops/position/position_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

namespace {

/// `each`: how many elements share an angle.
TurnHeadsArgs checked_turn(const Tensor& x, int heads, const Tensor& cosines, const Tensor& sines,
                           std::int64_t each) {
  const auto rows_of_f32 = [&](const Tensor& t) {
    return t.dims() == 2 && t.dtype() == DType::f32 && t.size(0) == x.size(0) &&
           t.device() == x.device();
  };
  if (!rows_of_f32(x) || !rows_of_f32(cosines) || !rows_of_f32(sines) ||
      sines.size(1) != cosines.size(1) || heads < 0 || each * cosines.size(1) % 2 != 0 ||
      heads * each * cosines.size(1) > x.size(1))
    fail("{} heads of {} do not fit rows {} {}", heads, each * cosines.size(-1),
         dtype_name(x.dtype()), to_string(x.shape()));
  return {x.data<float>(),
          cosines.data<float>(),
          sines.data<float>(),
          x.size(0),
          x.size(1),
          heads,
          static_cast<int>(each * cosines.size(1) / 2)};
}

}  // namespace

void turn_heads(const Tensor& x, int heads, const Tensor& cosines, const Tensor& sines) {
  const TurnHeadsArgs args = checked_turn(x, heads, cosines, sines, 2);
  VFM_RUN(Touching(x, x, cosines, sines), turn_heads, args);
}

void turn_neighbours(const Tensor& x, int heads, const Tensor& cosines, const Tensor& sines) {
  const TurnHeadsArgs args = checked_turn(x, heads, cosines, sines, 1);
  if (args.width % 2 != 0) fail("rows {} have no pairs", to_string(x.shape()));
  VFM_RUN(Touching(x, x, cosines, sines), turn_neighbours, args);
}

namespace {

// Below so many pairs one thread goes through them sooner than several are woken.
constexpr std::int64_t kTurnAlone = 16384;

}  // namespace

// Not compiled for each instruction set: with fused multiply-add the bits would be others.
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

void cpu::turn_neighbours(const TurnHeadsArgs& args) {
  const std::int64_t dim = 2 * std::int64_t{args.half};
#pragma omp parallel for schedule(static) if (args.rows * args.heads * args.half > kTurnAlone)
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const float* c = args.cosines + row * dim;
    const float* s = args.sines + row * dim;
    float* head = args.x + row * args.width;
    for (int h = 0; h < args.heads; ++h, head += dim)
#pragma omp simd
      for (std::int64_t i = 0; i < dim; i += 2) {
        const float a = head[i], b = head[i + 1];
        head[i] = a * c[i] - b * s[i];
        head[i + 1] = b * c[i + 1] + a * s[i + 1];
      }
  }
}

}  // namespace vfm::ops
