// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/sums.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "ops/optim/optim_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

bool is_summed(DType type) {
  return type == DType::f32 || type == DType::bf16;
}

}  // namespace

void scaled_sum(const Tensor& out, float a, const Tensor& x, float b, const Tensor& y) {
  const bool fits = is_summed(out.dtype()) && is_summed(x.dtype()) && is_summed(y.dtype()) &&
                    (x.dtype() == DType::f32 || y.dtype() == DType::f32) &&
                    out.elements() == x.elements() && out.elements() == y.elements() &&
                    out.device() == x.device() && out.device() == y.device();
  if (!fits)
    fail("a sum of {} {} and {} {} into {} {}", dtype_name(x.dtype()), to_string(x.shape()),
         dtype_name(y.dtype()), to_string(y.shape()), dtype_name(out.dtype()),
         to_string(out.shape()));
  const auto array = [](const Tensor& tensor) { return TypedArray{tensor.dtype(), tensor.raw()}; };
  VFM_RUN(Touching(out, x, y), scaled_sum, array(out), a, array(x), b, array(y), out.elements());
}

double sum_squares(Device device, std::span<const Extent> arrays) {
  Work work;
  for (const Extent& array : arrays)
    work.bytes += static_cast<double>(array.count) * sizeof(float);
  return VFM_ASK(0.0, Touching(device, work), sum_squares, arrays);
}

double cpu::sum_squares(std::span<const Extent> arrays) {
  constexpr std::int64_t kChunk = 16384;
  std::vector<Extent> chunks;
  for (const Extent& array : arrays)
    for (std::int64_t begin = 0; begin < array.count; begin += kChunk)
      chunks.push_back({array.data + begin, std::min(kChunk, array.count - begin)});
  std::vector<double> sums(chunks.size());
  const auto count = static_cast<std::int64_t>(chunks.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    sums[index] = sum_squares_chunk(chunks[index].data, chunks[index].count);
  }
  double total = 0;
  for (double sum : sums)
    total += sum;
  return total;
}

void moving_average(const Tensor& average, const Tensor& values, float decay) {
  const std::span<float> into = average.floats();
  const std::span<const float> from = values.floats();
  if (into.size() != from.size()) fail("an average of {} values over {}", into.size(), from.size());
  const auto count = static_cast<std::int64_t>(into.size());
  float* const a = into.data();
  const float* const v = from.data();
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < count; ++i)
    a[i] = decay * a[i] + (1.f - decay) * v[i];
}

}  // namespace vfm::ops
