// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/head_codes.h"

#include <numeric>

#include "base/error.h"
#include "ops/attention/attention_fp8_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

/// Of a matrix of heads; how many there are.
std::int64_t heads_of(const Tensor& x, DType dtype, const HeadLayout& layout) {
  const std::int64_t rows =
      std::accumulate(layout.lengths.begin(), layout.lengths.end(), std::int64_t{0});
  if (x.dtype() != dtype || x.dims() != 2 || x.size(0) != rows || layout.head_dim <= 0 ||
      layout.head_dim % 16 != 0 || x.size(1) % layout.head_dim != 0)
    fail("heads in FP8: {} {} does not fit {} rows of heads of {}", dtype_name(x.dtype()),
         to_string(x.shape()), rows, layout.head_dim);
  return x.size(1) / layout.head_dim;
}

void check_largest(const Tensor& largest, std::int64_t heads, const HeadLayout& layout) {
  const auto samples = static_cast<std::int64_t>(layout.lengths.size());
  if (largest.dtype() != DType::i32 || largest.shape() != Shape{samples, heads})
    fail("heads in FP8: the largest magnitudes of {} heads in {} samples are {} {}", heads, samples,
         dtype_name(largest.dtype()), to_string(largest.shape()));
}

}  // namespace

Tensor largest_of_heads(const Tensor& x, const HeadLayout& layout) {
  const std::int64_t heads = heads_of(x, DType::bf16, layout);
  const Tensor largest({static_cast<std::int64_t>(layout.lengths.size()), heads}, DType::i32,
                       x.device());
  VFM_RUN(Touching(x), largest_of_heads, x, layout, largest);
  return largest;
}

Tensor largest_of_parts(const Tensor& largest, std::int64_t samples) {
  if (largest.dtype() != DType::i32 || largest.dims() != 2 || samples <= 0 ||
      largest.size(0) == 0 || largest.size(0) % samples != 0)
    fail("heads in FP8: {} {} are not the largest magnitudes of parts of {} samples",
         dtype_name(largest.dtype()), to_string(largest.shape()), samples);
  const Tensor all({samples, largest.size(1)}, DType::i32, largest.device());
  VFM_RUN(Touching(largest, all), largest_of_parts, largest, all);
  return all;
}

Tensor quantize_heads(const Tensor& x, const HeadLayout& layout, const Tensor& largest) {
  check_largest(largest, heads_of(x, DType::bf16, layout), layout);
  const Tensor codes(x.shape(), DType::f8e4m3, x.device());
  VFM_RUN(Touching(x, codes), quantize_heads, x, layout, largest, codes);
  return codes;
}

Tensor restore_heads(const Tensor& codes, const HeadLayout& layout, const Tensor& largest) {
  check_largest(largest, heads_of(codes, DType::f8e4m3, layout), layout);
  const Tensor x(codes.shape(), DType::bf16, codes.device());
  VFM_RUN(Touching(codes, x), restore_heads, codes, layout, largest, x);
  return x;
}

}  // namespace vfm::ops
