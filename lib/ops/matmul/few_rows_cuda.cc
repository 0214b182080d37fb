// SPDX-License-Identifier: Apache-2.0
#include "kernels/few_rows.h"
#include "ops/matmul/few_rows_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {
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

}  // namespace vfm::ops
