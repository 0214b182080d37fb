// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/quantize_rows.h"

#include "base/error.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check_matrix(const Tensor& x) {
  if (x.dims() != 2 || (x.dtype() != DType::f32 && x.dtype() != DType::bf16))
    fail("quantize_rows: {} {} is not a matrix of f32 or bf16", dtype_name(x.dtype()),
         to_string(x.shape()));
}

}  // namespace

std::string_view row_format_name(RowFormat format) {
  return format == RowFormat::int8 ? "int8" : "e4m3";
}

RowFormat parse_row_format(std::string_view name) {
  if (name == "int8") return RowFormat::int8;
  if (name == "e4m3") return RowFormat::e4m3;
  fail_usage("unknown format of weights '{}': there are int8 and e4m3", name);
}

Tensor largest_of_rows(const Tensor& x) {
  check_matrix(x);
  const Tensor largest({x.size(0)}, DType::i32, x.device());
  VFM_RUN(Touching(x, largest), largest_of_rows, x, largest);
  return largest;
}

QuantizedRows quantize_rows(const Tensor& x, const Tensor& largest, RowFormat format) {
  check_matrix(x);
  if (largest.dtype() != DType::i32 || largest.elements() == 0 || largest.size(-1) != x.size(0) ||
      largest.device() != x.device())
    fail("quantize_rows: the largest magnitudes of {} are {} {}", to_string(x.shape()),
         dtype_name(largest.dtype()), to_string(largest.shape()));
  const DType code = format == RowFormat::int8 ? DType::u8 : DType::f8e4m3;
  const QuantizedRows rows{Tensor(x.shape(), code, x.device()),
                           Tensor({x.size(0)}, DType::f32, x.device())};
  VFM_RUN(Touching(x, largest, rows.values, rows.scales), quantize_rows, x, largest, rows);
  return rows;
}

Tensor dequantize_rows(const QuantizedRows& rows, DType dtype) {
  const Tensor &values = rows.values, &scales = rows.scales;
  const bool codes = values.dtype() == DType::u8 || values.dtype() == DType::f8e4m3;
  if (!codes || values.dims() != 2 || scales.dtype() != DType::f32 ||
      scales.shape() != Shape{values.size(0)} || scales.device() != values.device())
    fail("dequantize_rows: {} {} with scales {} {}", dtype_name(values.dtype()),
         to_string(values.shape()), dtype_name(scales.dtype()), to_string(scales.shape()));
  const Tensor x(values.shape(), dtype, values.device());
  check_matrix(x);
  const RowCodes from{values.data<std::uint8_t>(), scales.data<float>(),
                      values.dtype() == DType::f8e4m3, x.size(0), x.size(1)};
  VFM_RUN(Touching(values, scales, x), dequantize_rows, from, dtype, x.raw());
  return x;
}

}  // namespace vfm::ops
