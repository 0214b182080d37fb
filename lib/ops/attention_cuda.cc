// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_cuda.h"

#include "base/error.h"
#include "kernels/attention.h"
#include "kernels/attention_fp8.h"
#include "ops/quantize_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {

struct AttentionDeviceWork {
  Tensor query_items, key_items;  // as bytes
  std::int64_t query_count = 0, key_count = 0;
};

namespace {

Tensor on_gpu(const std::vector<kernels::AttentionItem>& items) {
  const auto bytes = static_cast<std::int64_t>(items.size() * sizeof(kernels::AttentionItem));
  return Tensor::borrow(items.data(), {bytes}, DType::u8, nullptr).to(Device::cuda);
}

kernels::Attention describe(const AttentionArgs& args, const AttentionDeviceWork& work,
                            std::int64_t queries) {
  kernels::Attention call;
  call.type = args.low ? kernels::Type::bf16 : kernels::Type::f32;
  call.causal = args.causal;
  call.heads = args.heads;
  call.key_heads = args.key_heads;
  call.head_dim = args.head_dim;
  call.scale = args.scale;
  call.queries = queries;
  call.query_items = reinterpret_cast<const kernels::AttentionItem*>(work.query_items.raw());
  call.query_item_count = work.query_count;
  call.key_items = reinterpret_cast<const kernels::AttentionItem*>(work.key_items.raw());
  call.key_item_count = work.key_count;
  call.q = args.q;
  call.q_stride = args.q_stride;
  call.k = args.k;
  call.v = args.v;
  call.kv_stride = args.kv_stride;
  call.out = args.out;
  call.log_sum_exp = args.log_sum_exp;
  call.dout = args.dout;
  call.dq = args.dq;
  call.dk = args.dk;
  call.dv = args.dv;
  return call;
}

}  // namespace

std::shared_ptr<const AttentionDeviceWork> attention_work_cuda(const AttentionPack& pack) {
  const kernels::AttentionWork lists =
      kernels::attention_work(pack.query_lengths, pack.key_lengths, pack.causal);
  auto work = std::make_shared<AttentionDeviceWork>();
  work->query_items = on_gpu(lists.query_items);
  work->key_items = on_gpu(lists.key_items);
  work->query_count = static_cast<std::int64_t>(lists.query_items.size());
  work->key_count = static_cast<std::int64_t>(lists.key_items.size());
  return work;
}

void attention_forward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work,
                            std::int64_t queries) {
  check_gpu(kernels::attention_forward(describe(args, work, queries), compute_stream()),
            "run attention");
}

void attention_backward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work,
                             std::int64_t queries) {
  const Tensor sums({args.heads, queries, 2}, DType::f32, Device::cuda);
  kernels::Attention call = describe(args, work, queries);
  call.row_sums = sums.data<float>();
  check_gpu(kernels::attention_backward(call, compute_stream()), "run attention backward");
}

void attention_fp8_forward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work,
                                std::int64_t queries, std::int64_t keys) {
  kernels::AttentionFp8 call;
  call.call = describe(args, work, queries);
  call.keys = keys;
  call.samples = args.samples;
  const Tensor room({kernels::attention_fp8_room(call)}, DType::u8, Device::cuda);
  call.room = room.raw();
  check_fp8_gpu(kernels::attention_fp8_forward(call, compute_stream()), "run attention in FP8");
}

}  // namespace vfm::ops
