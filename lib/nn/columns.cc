// SPDX-License-Identifier: Apache-2.0
#include "nn/columns.h"

#include "ops/pointwise/join.h"

namespace vfm::nn {

Tensor take_columns(const Tensor& x, const Columns& columns) {
  const Tensor part({x.size(0), columns.count}, x.dtype(), x.device());
  ops::copy_columns(x, columns.first, part, 0, columns.count);
  return part;
}

Tensor place_columns(const Tensor& part, const Columns& columns) {
  const Tensor x = Tensor::zeros({part.size(0), columns.of}, part.dtype(), part.device());
  ops::copy_columns(part, 0, x, columns.first, columns.count);
  return x;
}

}  // namespace vfm::nn
