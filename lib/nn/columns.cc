// SPDX-License-Identifier: Apache-2.0
#include "nn/columns.h"

#include "tensor/device.h"

namespace vfm::nn {

void copy_columns(const Tensor& x, std::int64_t at, const Tensor& y, std::int64_t to,
                  std::int64_t count) {
  if (x.size(0) == 0) return;
  const auto bytes = [&](std::int64_t n) {
    return static_cast<std::size_t>(n) * dtype_size(x.dtype());
  };
  copy_rows(y.data<std::byte>() + bytes(to), bytes(y.size(1)), x.data<std::byte>() + bytes(at),
            bytes(x.size(1)), bytes(count), x.size(0), x.device());
}

Tensor take_columns(const Tensor& x, const Columns& columns) {
  const Tensor part({x.size(0), columns.count}, x.dtype(), x.device());
  copy_columns(x, columns.first, part, 0, columns.count);
  return part;
}

Tensor place_columns(const Tensor& part, const Columns& columns) {
  const Tensor x = Tensor::zeros({part.size(0), columns.of}, part.dtype(), part.device());
  copy_columns(part, 0, x, columns.first, columns.count);
  return x;
}

}  // namespace vfm::nn
