// SPDX-License-Identifier: Apache-2.0
#include "kernels/newest_query.h"
#include "ops/attention/newest_query.h"
#include "ops/attention/newest_query_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {

static_assert(kNewestTexts == kernels::kNewestTexts);

void cuda::newest_query(const NewestQueryArgs& args) {
  kernels::NewestQuery call;
  call.type = kernel_type(args.type);
  call.texts = static_cast<int>(args.texts);
  call.heads = args.heads, call.key_heads = args.key_heads, call.head_dim = args.head_dim;
  call.scale = args.scale;
  call.q = args.q;
  call.out = args.out;
  for (int i = 0; i < call.texts; ++i)
    call.of[i] = {args.of[i].kv, args.of[i].seen};
  check_gpu(kernels::newest_query(call, compute_stream()), "attend the newest tokens");
}

}  // namespace vfm::ops
