// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/sum_squares.h"

#include <algorithm>
#include <vector>

#include "ops/optim/optim_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

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

}  // namespace vfm::ops
