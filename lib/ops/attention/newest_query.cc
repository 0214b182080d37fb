// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/newest_query.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "ops/attention/attention_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor newest_query(const Tensor& q, std::span<const SeenKeys> texts, int heads, int key_heads) {
  const bool rows = q.dims() == 2 && q.dtype() == DType::f32 && heads > 0 && key_heads > 0 &&
                    heads % key_heads == 0 && q.size(1) % heads == 0 &&
                    q.size(0) == static_cast<std::int64_t>(texts.size());
  if (!rows || texts.empty() || (q.device() == Device::cuda && texts.size() > kNewestTexts))
    fail("newest_query: {} {} of {} texts with {} and {} heads", dtype_name(q.dtype()),
         to_string(q.shape()), texts.size(), heads, key_heads);
  const std::int64_t head_dim = q.size(1) / heads;
  const DType type = texts.front().kv.dtype();
  std::vector<NewestText> of;
  std::int64_t most = 0;
  for (const SeenKeys& text : texts) {
    const Tensor& kv = text.kv;
    if (kv.dims() != 2 || kv.size(1) != 2 * key_heads * head_dim || kv.dtype() != type ||
        (type != DType::f32 && type != DType::bf16) || kv.device() != q.device() || text.seen < 1 ||
        text.seen > kv.size(0))
      fail("newest_query: {} keys of {} {} for heads of {}", text.seen, dtype_name(kv.dtype()),
           to_string(kv.shape()), head_dim);
    of.push_back({kv.raw(), text.seen});
    most = std::max(most, text.seen);
  }
  const Tensor out(q.shape(), DType::f32, q.device());
  // A GPU has a running maximum and sum instead.
  const bool scored = layout_device(q.device()) == Device::cpu;
  const Tensor scores =
      scored ? Tensor({q.size(0), heads, most}, DType::f32, q.device()) : Tensor();
  Touching work =
      (scored ? Touching(q, out, scores) : Touching(q, out)).kind(WorkKind::attention, type);
  if (q.device() == Device::meta)
    for (const SeenKeys& text : texts)  // scores, and what they weigh
      work =
          work.columns(text.kv.rows(0, text.seen), text.kv.size(1))
              .products(2 * heads, static_cast<double>(text.seen), static_cast<double>(head_dim));
  NewestQueryArgs args;
  args.q = q.data<float>();
  args.of = of.data();
  args.type = type;
  args.texts = q.size(0);
  args.heads = heads;
  args.key_heads = key_heads;
  args.head_dim = static_cast<int>(head_dim);
  args.scale = 1 / std::sqrt(static_cast<float>(head_dim));
  args.scores = scored ? scores.data<float>() : nullptr;
  args.most = most;
  args.out = out.data<float>();
  VFM_RUN(work, newest_query, args);
  return out;
}

}  // namespace vfm::ops
