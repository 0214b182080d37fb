// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/linear_fp8.h"

#include "base/error.h"
#include "base/format.h"
#include "ops/matmul/gemm.h"
#include "tensor/device.h"

namespace vfm::ops {

std::string why_no_fp8_product(const Shape& weight) {
  for (const std::int64_t size : weight)
    if (size % kFp8Multiple != 0)
      return vfm::format("a product in FP8 needs sizes that are multiples of {}, not {}",
                         kFp8Multiple, to_string(weight));
  return "";
}

namespace {

void check(const Tape& tape, const Tensor& x, const Quantized& w) {
  if (tape.recording()) fail("linear_fp8 has no gradient: it is for inference, without recording");
  if (x.dims() != 2 || w.values.dims() != 2 || x.size(1) != w.values.size(1))
    fail("linear_fp8: x {} does not fit w {}", to_string(x.shape()), to_string(w.values.shape()));
  if (x.device() != w.values.device())
    fail("linear_fp8: x is on {}, w on {}", device_name(x.device()),
         device_name(w.values.device()));
  if (const std::string why = why_no_fp8_product(w.values.shape()); !why.empty()) fail("{}", why);
}

}  // namespace

Tensor linear_fp8(const Tape& tape, const Quantized& x, const Quantized& w, DType out) {
  check(tape, x.values, w);
  const std::int64_t n = x.values.size(0), in = x.values.size(1), wide = w.values.size(0);
  const Tensor y({n, wide}, out, x.values.device());
  gemm(y.device(), n, wide, in, {x.values.raw(), DType::f8e4m3, in, false, x.scale.data<float>()},
       {w.values.raw(), DType::f8e4m3, in, true, w.scale.data<float>()}, y.raw(), out, wide, false);
  return y;
}

Tensor linear_fp8(const Tape& tape, const Tensor& x, const Quantized& w) {
  check(tape, x, w);
  return linear_fp8(tape, quantize(x), w, x.dtype());
}

}  // namespace vfm::ops
