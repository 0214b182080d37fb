// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize_rows.h"
#include "ops/matmul/quantize_rows_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {
namespace {

kernels::QuantizeRows row_call_of(const Tensor& x) {
  kernels::QuantizeRows call;
  call.type = kernel_type(x.dtype());
  call.x = x.raw();
  call.rows = x.size(0);
  call.columns = x.size(1);
  return call;
}

}  // namespace

void cuda::largest_of_rows(const Tensor& x, const Tensor& largest) {
  kernels::QuantizeRows call = row_call_of(x);
  call.largest = largest.data<std::uint32_t>();
  check_gpu(kernels::largest_of_rows(call, compute_stream()),
            "find the largest of a matrix's rows");
}

void cuda::quantize_rows(const Tensor& x, const Tensor& largest, const QuantizedRows& rows) {
  kernels::QuantizeRows call = row_call_of(x);
  call.e4m3 = rows.values.dtype() == DType::f8e4m3;
  call.values = rows.values.data<std::uint8_t>();
  call.scales = rows.scales.data<float>();
  call.largest = largest.data<std::uint32_t>();
  call.parts = largest.elements() / x.size(0);
  check_gpu(kernels::quantize_rows(call, compute_stream()), "round a matrix to 8 bits");
}

void cuda::dequantize_rows(const RowCodes& codes, DType type, void* x) {
  kernels::QuantizeRows call;
  call.type = kernel_type(type);
  call.e4m3 = codes.e4m3;
  call.x = x;
  call.rows = codes.rows;
  call.columns = codes.columns;
  call.values = const_cast<std::uint8_t*>(codes.codes);  // which it only reads
  call.scales = const_cast<float*>(codes.scales);
  check_gpu(kernels::dequantize_rows(call, compute_stream()), "make a matrix of its 8-bit form");
}

}  // namespace vfm::ops
