// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "base/error.h"
#include "kernels/quantize.h"
#include "ops/matmul/check_fp8_cuda.h"
#include "ops/matmul/quantize_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {

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

}  // namespace vfm::ops
