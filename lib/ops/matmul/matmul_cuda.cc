// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include "base/error.h"
#include "kernels/conv.h"
#include "kernels/elementwise.h"
#include "kernels/few_rows.h"
#include "kernels/quantize.h"
#include "kernels/quantize_rows.h"
#include "kernels/text_rows.h"
#include "ops/matmul/check_fp8_cuda.h"
#include "ops/matmul/matmul_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"
#include "tensor/tensor.h"

namespace vfm::ops {

static_assert(kBiasParts == kernels::kConvBiasParts);

void cuda::add_bias(DType type, void* y, std::int64_t rows, std::int64_t stride, const float* bias,
                    std::int64_t width) {
  check_gpu(kernels::add_bias(kernel_type(type), y, rows, stride, bias, width, compute_stream()),
            "add a bias");
}

// As for convolutions, whose result has a pixel for each row.
void cuda::bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t width,
                         float* sum) {
  const Tensor partial({kBiasParts, width}, DType::f32, Device::cuda);
  check_gpu(kernels::conv_bias(kernel_type(type), dy, rows, static_cast<int>(width),
                               partial.data<float>(), sum, compute_stream()),
            "sum the gradient of a bias");
}

namespace {

kernels::FewRowsType few_rows_type(DType type) {
  if (type == DType::bf16) return kernels::FewRowsType::bf16;
  return type == DType::u8 ? kernels::FewRowsType::int8 : kernels::FewRowsType::f32;
}

}  // namespace

void cuda::few_rows(const FewRowsArgs& args) {
  kernels::FewRows call;
  call.x = args.x;
  call.w = args.w;
  call.type = few_rows_type(args.type);
  call.scales = args.scales;
  call.bias = args.bias;
  call.y = args.y;
  call.rows = args.rows, call.columns = args.columns, call.outputs = args.outputs;
  check_gpu(kernels::few_rows(call, compute_stream()), "multiply few rows");
}

void check_fp8_gpu(int status, const char* what) {
  if (status == cudaErrorNotSupported)
    fail(
        "cannot {}: FP8 needs a GPU of compute capability 9.0 or later, and this one is {}; "
        "compute "
        "in bf16 instead",
        what, describe_gpu());
  check_gpu(status, what);
}

namespace {

void quantize_or_gelu(const Tensor& x, bool gelu, const Quantized& result) {
  const Tensor largest({kernels::kQuantizeParts}, DType::i32, Device::cuda);
  kernels::Quantize call;
  call.type = kernel_type(x.dtype());
  call.gelu = gelu;
  call.x = x.raw();
  call.count = x.elements();
  call.values = result.values.data<std::uint8_t>();
  call.scale = result.scale.data<float>();
  call.largest = largest.data<std::uint32_t>();
  check_fp8_gpu(kernels::quantize(call, compute_stream()), "round a tensor to FP8");
}

}  // namespace

void cuda::quantize(const Tensor& x, const Quantized& result) {
  quantize_or_gelu(x, false, result);
}

void cuda::largest_magnitude(const Tensor& x, const Tensor& largest) {
  const auto find = [](kernels::Type type, const Tensor& of, std::int64_t count, const Tensor& to) {
    check_fp8_gpu(kernels::largest_magnitudes(type, of.raw(), count, to.data<std::uint32_t>(),
                                              compute_stream()),
                  "find the largest magnitude of a tensor");
  };
  const Tensor parts({kernels::kQuantizeParts}, DType::i32, Device::cuda);
  find(kernel_type(x.dtype()), x, x.elements(), parts);
  // Magnitudes' bits are floats, and so few that one part has them.
  find(kernels::Type::f32, parts, kernels::quantize_parts(x.elements()), largest);
}

void cuda::quantize_part(const Tensor& x, const Tensor& largest, const Quantized& result) {
  kernels::Quantize call;
  call.type = kernel_type(x.dtype());
  call.x = x.raw();
  call.count = x.elements();
  call.values = result.values.data<std::uint8_t>();
  call.scale = result.scale.data<float>();
  call.largest = largest.data<std::uint32_t>();
  call.given = static_cast<int>(largest.elements());
  check_fp8_gpu(kernels::quantize(call, compute_stream()), "round a tensor to FP8");
}

void cuda::quantize_gelu(const Tensor& x, const Quantized& result) {
  quantize_or_gelu(x, true, result);
}

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

namespace vfm::ops::cuda {

void add_scaled_columns(DType type, void* y, std::int64_t wide, const void* x, std::int64_t narrow,
                        std::int64_t rows, float scale) {
  check_gpu(kernels::add_scaled_columns(kernel_type(type), y, wide, x, narrow, rows, scale,
                                        compute_stream()),
            "run add of columns");
}

}  // namespace vfm::ops::cuda
