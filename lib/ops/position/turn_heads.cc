// SPDX-License-Identifier: Apache-2.0
#include "ops/position/turn_heads.h"

#include "base/error.h"
#include "ops/position/position_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

void turn_heads(const Tensor& x, int heads, const Tensor& cosines, const Tensor& sines) {
  const auto rows_of_f32 = [&](const Tensor& t) {
    return t.dims() == 2 && t.dtype() == DType::f32 && t.size(0) == x.size(0) &&
           t.device() == x.device();
  };
  if (!rows_of_f32(x) || !rows_of_f32(cosines) || !rows_of_f32(sines) ||
      sines.size(1) != cosines.size(1) || heads < 0 || heads * 2 * cosines.size(1) > x.size(1))
    fail("{} heads of {} do not fit rows {} {}", heads, 2 * cosines.size(-1), dtype_name(x.dtype()),
         to_string(x.shape()));
  VFM_RUN(Touching(x, x, cosines, sines), turn_heads,
          TurnHeadsArgs{x.data<float>(), cosines.data<float>(), sines.data<float>(), x.size(0),
                        x.size(1), heads, static_cast<int>(cosines.size(1))});
}

}  // namespace vfm::ops
