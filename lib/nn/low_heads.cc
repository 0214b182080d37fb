// SPDX-License-Identifier: Apache-2.0
#include "nn/low_heads.h"

namespace vfm::nn {

LowHeads round_heads(const Tensor& qkv, const ops::AttentionPack& pack, dist::Group* ranks) {
  const auto times = static_cast<int>(qkv.size(1) / pack.head_dim /
                                      (pack.heads + 2 * std::int64_t{pack.key_heads}));
  const ops::HeadKinds kinds{pack.heads * times, pack.key_heads * times, pack.key_heads * times,
                             pack.head_dim};
  LowHeads low;
  low.largest = ops::largest_of_kinds(qkv, kinds);
  if (ranks != nullptr && ranks->size() > 1) {
    const Tensor all({ranks->size(), 3}, DType::i32, qkv.device());
    ranks->all_gather(low.largest, all).wait();
    low.largest = ops::largest_of_parts(all);
  }
  low.codes = ops::quantize_heads(qkv, kinds, low.largest);
  return low;
}

}  // namespace vfm::nn
