// SPDX-License-Identifier: Apache-2.0
#include "kernels/haar.h"
#include "ops/conv/haar_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

// The level whose fine side has patches of `size` pixels: the first (last) where that is p.
kernels::HaarLevel level_of(const Tensor& bands, int patch, int size, bool start, float scale,
                            bool last_only) {
  const std::int64_t p = patch;
  kernels::HaarLevel level;
  level.frames = bands.size(0) * size;
  level.height = bands.size(1) * size, level.width = bands.size(2) * size;
  const std::int64_t times = p / size;
  level.channels = bands.size(3) / (p * p * p) * times * times * times;
  level.scale = scale;
  if (size != patch || !start) return level;
  level.repeated = p;
  level.last_only = last_only;
  return level;
}

// Where a level writes that is not the last.
Tensor room_like(const Tensor& bands) {
  return Tensor(bands.shape(), DType::f32, Device::cuda);
}

}  // namespace

void cuda::haar_split(const Tensor& pixels, const Tensor& bands, int patch, bool start, float scale,
                      bool last_only) {
  Tensor from = pixels;
  for (int size = patch; size > 1; size /= 2) {
    const Tensor to = size == 2 ? bands : room_like(bands);
    check_gpu(kernels::haar_split(level_of(bands, patch, size, start, scale, last_only),
                                  from.data<float>(), to.data<float>(), compute_stream()),
              "run a wavelet");
    from = to;
  }
}

void cuda::haar_merge(const Tensor& bands, const Tensor& pixels, int patch, bool start, float scale,
                      bool last_only) {
  Tensor from = bands;
  for (int size = 2; size <= patch; size *= 2) {
    const Tensor to = size == patch ? pixels : room_like(bands);
    check_gpu(kernels::haar_merge(level_of(bands, patch, size, start, scale, last_only),
                                  from.data<float>(), to.data<float>(), compute_stream()),
              "run a wavelet back");
    from = to;
  }
}

}  // namespace vfm::ops
