// SPDX-License-Identifier: Apache-2.0
#include "nn/agreed_scale.h"

namespace vfm::nn {

ops::Quantized quantize_together(const Tensor& x, dist::Group* ranks) {
  if (ranks == nullptr || ranks->size() == 1) return ops::quantize(x);
  const Tensor all({ranks->size()}, DType::i32, x.device());
  ranks->all_gather(ops::largest_magnitude(x), all).wait();
  return ops::quantize_part(x, all);
}

}  // namespace vfm::nn
