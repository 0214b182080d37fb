// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/float8.h"
#include "ops/attention/attention_fp8_kernels.h"
#include "ops/matmul/fp8_scale.h"

namespace vfm::ops {
namespace {

/// head(sample, head, first, rows): for each head of each sample the place of its first element,
/// and how many rows it has, `stride` elements apart.
template <class Head>
void for_each_head(const HeadLayout& layout, std::int64_t heads, const Head& head) {
  const auto samples = static_cast<std::int64_t>(layout.lengths.size());
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t rows : layout.lengths)
    starts.push_back(starts.back() + rows);
#pragma omp parallel for schedule(static)
  for (std::int64_t item = 0; item < samples * heads; ++item) {
    const auto sample = static_cast<std::size_t>(item / heads);
    head(static_cast<std::int64_t>(sample), item % heads,
         (starts[sample] * heads + item % heads) * layout.head_dim, layout.lengths[sample]);
  }
}

/// act(place, scale) of every element, in the scale of its head and sample.
template <class Act>
void for_each_element(const HeadLayout& layout, const Tensor& largest, const Act& act) {
  const std::int64_t heads = largest.size(1), stride = heads * layout.head_dim;
  const auto* bits = largest.data<std::uint32_t>();
  for_each_head(layout, heads,
                [&](std::int64_t sample, std::int64_t head, std::int64_t first, std::int64_t rows) {
                  const Fp8Scale scale = fp8_scale(bits[sample * heads + head]);
                  for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t d = 0; d < layout.head_dim; ++d)
                      act(first + i * stride + d, scale);
                });
}

}  // namespace

void cpu::largest_of_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest) {
  const std::int64_t heads = largest.size(1), stride = x.size(1);
  for_each_head(layout, heads,
                [&](std::int64_t sample, std::int64_t head, std::int64_t first, std::int64_t rows) {
                  std::uint32_t most = 0;
                  for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t d = 0; d < layout.head_dim; ++d)
                      most = std::max(
                          most,
                          magnitude_bits(widened(x.data<std::uint16_t>()[first + i * stride + d])));
                  largest.data<std::uint32_t>()[sample * heads + head] = most;
                });
}

void cpu::largest_of_parts(const Tensor& largest, const Tensor& all) {
  const auto* from = largest.data<std::uint32_t>();
  auto* to = all.data<std::uint32_t>();
  for (std::int64_t i = 0; i < all.elements(); ++i) {
    to[i] = 0;
    for (std::int64_t at = i; at < largest.elements(); at += all.elements())
      to[i] = std::max(to[i], from[at]);
  }
}

void cpu::quantize_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest,
                         const Tensor& codes) {
  const auto* from = x.data<std::uint16_t>();
  auto* to = codes.data<std::uint8_t>();
  for_each_element(layout, largest, [=](std::int64_t at, const Fp8Scale& by) {
    to[at] = float_to_f8e4m3(widened(from[at]) * by.inverse);
  });
}

void cpu::restore_heads(const Tensor& codes, const HeadLayout& layout, const Tensor& largest,
                        const Tensor& x) {
  const auto* from = codes.data<std::uint8_t>();
  auto* to = x.data<std::uint16_t>();
  for_each_element(layout, largest, [=](std::int64_t at, const Fp8Scale& by) {
    to[at] = float_to_bfloat16(by.scale * f8e4m3_to_float(from[at]));
  });
}

}  // namespace vfm::ops
