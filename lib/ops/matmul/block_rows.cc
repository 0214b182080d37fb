// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/block_rows.h"

#include "base/error.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check_blocks(const BlockRows& rows) {
  const BlockLayout layout = block_layout(rows.format);
  if (!rows.bytes.defined() || rows.bytes.dims() != 2 || rows.bytes.dtype() != DType::u8 ||
      rows.bytes.device() == Device::cuda || rows.bytes.size(1) % layout.bytes != 0)
    fail("blocks of {} are not whole in rows {}", layout.name,
         rows.bytes.defined() ? to_string(rows.bytes.shape()) : "that are not there");
}

}  // namespace

Tensor dequantize_blocks(const BlockRows& rows, DType dtype) {
  check_blocks(rows);
  if (dtype != DType::f32 && dtype != DType::bf16)
    fail("blocks are made numbers of f32 and bf16, not {}", dtype_name(dtype));
  const Tensor y({rows.bytes.size(0), rows.columns()}, dtype, rows.bytes.device());
  if (y.device() == Device::meta) {
    note_work("dequantize_blocks", Touching(rows.bytes, y).work);
    return y;
  }
  const KernelTimer timer("dequantize_blocks");
  cpu::dequantize_blocks(BlockRowsArgs{.format = rows.format,
                                       .w = rows.bytes.data<std::uint8_t>(),
                                       .outputs = y.size(0),
                                       .columns = y.size(1),
                                       .y = y.raw()},
                         dtype);
  return y;
}

Tensor few_rows_of_blocks(const Tensor& x, const BlockRows& w, const Tensor& bias) {
  check_blocks(w);
  const std::int64_t outputs = w.bytes.size(0);
  if (x.dims() != 2 || x.size(1) != w.columns() || x.dtype() != DType::f32 ||
      x.device() != w.bytes.device() ||
      (bias.defined() && (bias.dtype() != DType::f32 || bias.shape() != Shape{outputs})))
    fail("few_rows_of_blocks: no product of {} {} and {} rows of {} {}", dtype_name(x.dtype()),
         to_string(x.shape()), outputs, w.columns(), block_layout(w.format).name);
  const Tensor y({x.size(0), outputs}, DType::f32, x.device());
  if (x.device() == Device::meta) {
    note_work("few_rows",
              Touching(x, w.bytes, y)
                  .kind(WorkKind::products, DType::f32)
                  .products(static_cast<double>(x.size(0)), static_cast<double>(outputs),
                            static_cast<double>(w.columns()))
                  .work);
    return y;
  }
  const KernelTimer timer("few_rows");
  cpu::few_rows_of_blocks(BlockRowsArgs{.format = w.format,
                                        .w = w.bytes.data<std::uint8_t>(),
                                        .outputs = outputs,
                                        .columns = w.columns(),
                                        .x = x.data<float>(),
                                        .bias = bias.defined() ? bias.data<float>() : nullptr,
                                        .y = y.raw(),
                                        .rows = x.size(0)});
  return y;
}

}  // namespace vfm::ops
