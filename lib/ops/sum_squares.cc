// SPDX-License-Identifier: Apache-2.0
#include "ops/sum_squares.h"

#include <algorithm>
#include <vector>

#include "ops/elementwise_cpu.h"

namespace vfm::ops {

double sum_squares(std::span<const std::span<const float>> arrays) {
  constexpr std::size_t kChunk = 16384;
  std::vector<std::span<const float>> chunks;
  for (std::span<const float> array : arrays)
    for (std::size_t begin = 0; begin < array.size(); begin += kChunk)
      chunks.push_back(array.subspan(begin, std::min(kChunk, array.size() - begin)));
  std::vector<double> sums(chunks.size());
  const auto count = static_cast<std::int64_t>(chunks.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    sums[index] = VFM_CALL(sum_squares_chunk, chunks[index].data(),
                           static_cast<std::int64_t>(chunks[index].size()));
  }
  double total = 0;
  for (double sum : sums)
    total += sum;
  return total;
}

}  // namespace vfm::ops
