// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/cpu/simd.h"
#include "ops/optim/block_codes_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// Calls act(at, count) for the elements of a block that the part has, some that follow each other
// at a time.
template <class Act>
void for_each_stretch(const PartOfWhole& part, std::int64_t block, Act act) {
  std::int64_t at = block * kCodeBlock - part.first;  // from where the part's runs count
  const std::int64_t end = at + kCodeBlock;
  at = std::max<std::int64_t>(at, 0);
  while (at < end) {
    const std::int64_t run = at / part.stride, inside = at % part.stride;
    if (inside >= part.length) {
      at = (run + 1) * part.stride;
      continue;
    }
    const std::int64_t stop = std::min(end, run * part.stride + part.length);
    const std::int64_t from = run * part.length + inside - part.begin, to = from + stop - at;
    const std::int64_t first = std::max<std::int64_t>(from, 0), last = std::min(to, part.count);
    if (first < last) act(first, last - first);
    at = stop;
  }
}

template <class Act>
void for_each_block(const BlocksOfPart& blocks, Act act) {
  const bool alone = blocks.part.count <= kAlone;
#pragma omp parallel for schedule(static) if (!alone)
  for (std::int64_t block = blocks.first; block < blocks.end; ++block)
    for_each_stretch(blocks.part, block,
                     [&](std::int64_t at, std::int64_t count) { act(block, at, count); });
}

VFM_INLINE int code_of(float x, const float* limits) {
  int code = 0;
  for (int step = 128; step > 0; step /= 2)
    code += limits[code + step - 1] < x ? step : 0;
  return code;
}

}  // namespace

void decode_blocks(const std::uint8_t* codes, const float* scales, const float* numbers_of,
                   const BlocksOfPart& blocks, float* numbers) {
  for_each_block(blocks, [&](std::int64_t block, std::int64_t at, std::int64_t count) {
    const float scale = scales[block];
    for (std::int64_t i = at; i < at + count; ++i)
      numbers[i] = numbers_of[codes[i]] * scale;
  });
}

void scales_of_blocks(const float* numbers, const BlocksOfPart& blocks, float* scales) {
  const bool alone = blocks.part.count <= kAlone;
#pragma omp parallel for schedule(static) if (!alone)
  for (std::int64_t block = blocks.first; block < blocks.end; ++block) {
    float most = 0;
    bool any = false;
    for_each_stretch(blocks.part, block, [&](std::int64_t at, std::int64_t count) {
      any = true;
      for (std::int64_t i = at; i < at + count; ++i)
        most = std::max(most, std::abs(numbers[i]));
    });
    if (any) scales[block] = most;
  }
}

void encode_blocks(const float* numbers, const float* scales, const float* limits,
                   const BlocksOfPart& blocks, std::uint8_t* codes) {
  for_each_block(blocks, [&](std::int64_t block, std::int64_t at, std::int64_t count) {
    const float scale = scales[block];
    for (std::int64_t i = at; i < at + count; ++i)
      codes[i] = static_cast<std::uint8_t>(code_of(scale > 0 ? numbers[i] / scale : 0, limits));
  });
}

void greater_in_place(float* target, const float* other, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    target[i] = std::max(target[i], other[i]);
}

}  // namespace vfm::ops::VFM_ISA
