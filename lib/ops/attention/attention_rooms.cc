// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_rooms.h"

#include <optional>

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

/// The kernels between cuDNN's type and order and ours.
void note_changes(const PartRoom& room) {
  if (room.out.defined()) note_work("convert", {0, 3. * static_cast<double>(room.out.bytes())});
  note_work("attention_turn", {0, 2. * static_cast<double>(room.statistics.bytes())});
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

PartRoom::PartRoom(const AttentionArgs& args, bool backward, Device device)
    : statistics({queries_of(args) + kAttentionSpareRows, args.heads}, DType::f32, device) {
  if (!backward)
    out = Tensor({queries_of(args), std::int64_t{args.heads} * args.head_dim}, args.type, device);
}

ForwardRoom::ForwardRoom(const AttentionArgs& args, Device device)
    : out({queries_of(args), std::int64_t{args.heads} * args.head_dim},
          args.wide ? DType::f32 : args.type, device),
      log_sum_exp({args.heads, queries_of(args)}, DType::f32, device) {}

GradientRoom::GradientRoom(const AttentionArgs& args, Device device)
    : dq({queries_of(args), args.q_stride}, args.type, device),
      dk({keys_of(args), args.kv_stride}, args.type, device),
      dv({keys_of(args), args.kv_stride}, args.type, device) {}

bool count_attention_rooms(const AttentionArgs& args, bool backward) {
  constexpr Device kMeta = Device::meta;
  if (layout_device(kMeta) != Device::cuda) return false;
  const bool cudnn = attention_body() != AttentionBody::own && args.bias == nullptr &&
                     counts_as_cudnn() && why_not_cudnn(args).empty();
  if (!cudnn) {
    if (backward) OwnBackwardRoom(args, kMeta);
    return false;
  }
  {
    std::optional<PartRoom> part;
    if (args.part) note_changes(part.emplace(args, backward, kMeta));
    if (backward) CudnnBackwardRoom(args, kMeta);
  }
  if (attention_body() == AttentionBody::cudnn ||
      !first_on_meta((backward ? "attention backward of " : "attention of ") +
                     text_of(attention_shape(args, false)) + (args.part ? ", a part" : "")))
    return true;
  if (backward) {
    const GradientRoom gradients(args, kMeta);
    std::optional<ForwardRoom> again;
    if (!args.part) again.emplace(args, kMeta);
    OwnBackwardRoom(args, kMeta);
  } else {
    ForwardRoom(args, kMeta);
  }
  return true;
}

}  // namespace vfm::ops
