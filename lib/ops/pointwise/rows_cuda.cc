// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows.h"
#include "ops/pointwise/rows_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::gather_rows(const Tensor& x, const Tensor& numbers, const Tensor& y) {
  const auto bytes = x.size(1) * static_cast<std::int64_t>(dtype_size(x.dtype()));
  check_gpu(kernels::gather_rows(x.raw(), numbers.data<std::int32_t>(), y.raw(), numbers.elements(),
                                 bytes, compute_stream()),
            "take rows");
}

void cuda::add_rows(const Tensor& x, const RowTakers& takers, const Tensor& to) {
  const Tensor rows = upload(takers.rows), begin = upload(takers.begin);
  const Tensor list = upload(takers.takers);
  kernels::RowSums call;
  call.rows = static_cast<std::int64_t>(takers.rows.size());
  call.width = x.size(1);
  call.row = rows.data<std::int32_t>();
  call.begin = begin.data<std::int32_t>();
  call.takers = list.data<std::int32_t>();
  call.x = x.data<float>();
  call.to = to.data<float>();
  check_gpu(kernels::add_rows(call, compute_stream()), "add rows");
}

}  // namespace vfm::ops
