// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/haar.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "ops/conv/conv_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check(const char* name, const Tensor& x, int patch) {
  if (x.dims() != 4 || x.elements() == 0) fail("{} of {}", name, to_string(x.shape()));
  if (patch < 2 || patch > 16 || !std::has_single_bit(static_cast<unsigned>(patch)))
    fail("{} in patches of {}", name, patch);
}

// A GPU's version writes each level but the last beside, and reads that one for the next.
Touching work_of(const Tensor& from, const Tensor& to, int patch) {
  return Touching(from, to).gpu_scratch([&] {
    return std::size_t(patch > 4 ? 2 : patch > 2 ? 1 : 0) * std::max(from.bytes(), to.bytes());
  });
}

}  // namespace

Tensor haar_analysis(Tape& tape, const Tensor& pixels, int patch, bool start, DType out) {
  check("haar_analysis", pixels, patch);
  const std::int64_t frames = pixels.size(0) + (start ? patch - 1 : 0);
  if (pixels.dtype() != DType::f32 || frames % patch || pixels.size(1) % patch ||
      pixels.size(2) % patch)
    fail("haar_analysis: {} {} is not made of patches of {}", dtype_name(pixels.dtype()),
         to_string(pixels.shape()), patch);
  const std::int64_t cube = std::int64_t{patch} * patch * patch;
  const Tensor bands(
      {frames / patch, pixels.size(1) / patch, pixels.size(2) / patch, pixels.size(3) * cube},
      DType::f32, pixels.device());
  VFM_RUN(work_of(pixels, bands, patch), haar_split, pixels, bands, patch, start, 0.125f, false);
  const Tensor result = bands.to(out);
  tape.record(result, {pixels}, [=](Tape& t) {
    const Tensor dy = t.take(result).to(DType::f32);
    const Tensor dx(pixels.shape(), DType::f32, pixels.device());
    VFM_RUN(work_of(dy, dx, patch), haar_merge, dy, dx, patch, start, 0.125f, false);
    t.accumulate(pixels, dx);
  });
  return result;
}

Tensor haar_synthesis(Tape& tape, const Tensor& bands, int patch, bool start) {
  check("haar_synthesis", bands, patch);
  const std::int64_t cube = std::int64_t{patch} * patch * patch;
  if (bands.size(3) % cube)
    fail("haar_synthesis: {} channels in patches of {}", bands.size(3), patch);
  const std::int64_t frames = bands.size(0) * patch - (start ? patch - 1 : 0);
  const Tensor wide = bands.to(DType::f32);
  const Tensor pixels({frames, bands.size(1) * patch, bands.size(2) * patch, bands.size(3) / cube},
                      DType::f32, bands.device());
  VFM_RUN(work_of(wide, pixels, patch), haar_merge, wide, pixels, patch, start, 1.f, true);
  tape.record(pixels, {bands}, [=](Tape& t) {
    const Tensor dy = t.take(pixels), dx(bands.shape(), DType::f32, bands.device());
    VFM_RUN(work_of(dy, dx, patch), haar_split, dy, dx, patch, start, 1.f, true);
    t.accumulate(bands, dx.to(bands.dtype()));
  });
  return pixels;
}

}  // namespace vfm::ops
