// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_rooms.h"

#include "ops/attention/attention_shape.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "tensor/device.h"
#include "tensor/meta.h"

namespace vfm::ops {
namespace {

std::int64_t queries_of(const AttentionArgs& args) {
  return args.query_starts[args.samples];
}
std::int64_t keys_of(const AttentionArgs& args) {
  return args.key_starts[args.samples];
}

}  // namespace

OwnBackwardRoom::OwnBackwardRoom(const AttentionArgs& args, Device device)
    : row_sums({args.heads, queries_of(args), 2}, DType::f32, device) {}

CudnnBackwardRoom::CudnnBackwardRoom(const AttentionArgs& args, Device device)
    : row_sums({queries_of(args) + kAttentionSpareRows, args.heads}, DType::f32, device),
      dq_sum({queries_of(args) + kAttentionSpareRows, std::int64_t{args.heads} * args.head_dim},
             DType::f32, device) {
  if (args.heads == args.key_heads) return;
  const Shape shape{keys_of(args) + kAttentionSpareRows,
                    args.kv_stride * (args.heads / args.key_heads)};
  dk_heads = Tensor(shape, DType::bf16, device);
  dv_heads = Tensor(shape, DType::bf16, device);
}

ForwardRoom::ForwardRoom(const AttentionArgs& args, Device device)
    : out({queries_of(args), std::int64_t{args.heads} * args.head_dim}, args.type, device),
      log_sum_exp({args.heads, queries_of(args)}, DType::f32, device) {}

GradientRoom::GradientRoom(const AttentionArgs& args, Device device)
    : dq({queries_of(args), args.q_stride}, args.type, device),
      dk({keys_of(args), args.kv_stride}, args.type, device),
      dv({keys_of(args), args.kv_stride}, args.type, device) {}

bool count_attention_rooms(const AttentionArgs& args, bool backward) {
  constexpr Device kMeta = Device::meta;
  if (layout_device(kMeta) != Device::cuda) return false;
  const bool cudnn = attention_body() != AttentionBody::own && args.bias == nullptr && !args.own &&
                     counts_as_cudnn() && why_not_cudnn(args, false).empty();
  if (!cudnn) {
    if (backward) OwnBackwardRoom(args, kMeta);
    return false;
  }
  if (backward) CudnnBackwardRoom(args, kMeta);
  if (attention_body() == AttentionBody::cudnn ||
      !first_on_meta((backward ? "attention backward of " : "attention of ") +
                     text_of(attention_shape(args, false))))
    return true;
  if (backward) {
    const GradientRoom gradients(args, kMeta);
    const ForwardRoom again(args, kMeta);
    OwnBackwardRoom(args, kMeta);
  } else {
    ForwardRoom(args, kMeta);
  }
  return true;
}

}  // namespace vfm::ops
