// Attention on a GPU: our own kernels, or cuDNN's (attention_choice.h).
//
// With AttentionBody::automatic a shape's first call runs both, and cuDNN's stays only if the two
// differ by no more than rounding: |cudnn - own| <= 2 % of |own|, Euclidean norms, for the output
// and for each gradient. If they differ by more, or cuDNN cannot build the shape, a warning says so
// once and our own kernels run that shape from then on. Where the own result is not finite nothing
// can be compared: that call keeps it, and the next one tries again.
// Of a part of the keys the log-sum-exps are compared, too, as the sum of the parts depends on
// them. Thread-safety: one thread drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_cuda.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "kernels/attention_merge.h"
#include "kernels/elementwise.h"
#include "kernels/newest_query.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_rooms.h"
#include "ops/attention/attention_shape.h"
#include "ops/attention/newest_query.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/determinism.h"
#include "tensor/device.h"
#include "tensor/gpu_graph.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {

namespace {

std::int64_t queries_of(const AttentionArgs& args) {
  return args.query_starts[args.samples];
}

std::int64_t keys_of(const AttentionArgs& args) {
  return args.key_starts[args.samples];
}

void forward_own(const AttentionArgs& args, const AttentionDeviceWork& work) {
  check_gpu(kernels::attention_forward(describe_attention(args, work), compute_stream()),
            "run attention");
}

void backward_own(const AttentionArgs& args, const AttentionDeviceWork& work) {
  const OwnBackwardRoom room(args, Device::cuda);
  kernels::Attention call = describe_attention(args, work);
  call.row_sums = room.row_sums.data<float>();
  check_gpu(kernels::attention_backward(call, compute_stream()), "run attention backward");
}

// For a shape, and for packs of it with empty samples, and for parts of the keys, which may go
// wrong by themselves.
struct Trust : CudnnTrust {
  bool forward_checked = false, backward_checked = false;
};

// Of what cuDNN is asked.
AttentionShape shape_of(const AttentionArgs& args) {
  return attention_shape(args, cudnn_takes_empty_samples());
}

// Never destroyed, as it needs no destruction.
Trust& trust_in(const AttentionArgs& args) {
  static auto* const known = new std::map<std::tuple<AttentionShape, bool, bool>, Trust>;
  const AttentionShape shape = shape_of(args);
  return (*known)[{shape, has_empty_samples(args, shape), args.part}];
}

std::string name_of(const AttentionArgs& args) {
  return (args.part ? "a part of attention of " : "attention of ") + text_of(shape_of(args));
}

std::string why_not(const AttentionArgs& args) {
  if (std::string why = why_no_cudnn(); !why.empty()) return why;
  return why_not_cudnn(args);
}

// Whether cuDNN shall try; says once why it does not.
bool wants_cudnn(const AttentionArgs& args) {
  if (attention_body() == AttentionBody::own) return false;
  const std::string why = why_not(args);
  if (why.empty()) return true;
  if (attention_body() == AttentionBody::cudnn)
    fail("cuDNN cannot run this attention: {}; choose the body 'automatic' or 'own'", why);
  static auto* const said = new std::set<std::string>;
  if (said->insert(why).second) log_info("attention runs on our own kernels, not cuDNN's: {}", why);
  return false;
}

// Zeros the rows of samples that cuDNN is not given, as they have no queries or no keys.
void zero_others(const AttentionArgs& args, const std::int64_t* starts, void* rows,
                 std::int64_t row_bytes) {
  for (std::int64_t sample = 0; sample < args.samples; ++sample)
    if (const std::int64_t count = starts[sample + 1] - starts[sample];
        count > 0 && !attends(args, sample))
      zero_bytes(static_cast<std::byte*>(rows) + starts[sample] * row_bytes, Device::cuda,
                 static_cast<std::size_t>(count * row_bytes));
}

void turn(const float* from, float* to, std::int64_t rows, std::int64_t columns) {
  check_gpu(kernels::attention_turn(from, to, rows, columns, compute_stream()),
            "turn log-sum-exps of attention");
}

// cuDNN writes bf16, and log_sum_exp as [S, H].
void forward_cudnn(const AttentionArgs& args, const AttentionDeviceWork& work) {
  const std::int64_t queries = queries_of(args), width = std::int64_t{args.heads} * args.head_dim;
  std::optional<PartRoom> room;
  AttentionArgs call = args;
  if (args.part) {
    room.emplace(args, false, Device::cuda);
    call.out = room->out.raw(), call.log_sum_exp = room->statistics.data<float>();
  }
  attention_forward_cudnn(call, *work.cudnn);
  zero_others(call, call.query_starts, call.out, 2 * width);
  zero_others(call, call.query_starts, call.log_sum_exp, std::int64_t{sizeof(float)} * args.heads);
  if (!args.part) return;
  check_gpu(kernels::convert(kernel_type(args.type), call.out, kernels::Type::f32, args.out,
                             queries * width, compute_stream()),
            "convert a part of attention");
  turn(call.log_sum_exp, args.log_sum_exp, queries, args.heads);
}

void backward_cudnn(const AttentionArgs& args, const AttentionDeviceWork& work) {
  std::optional<PartRoom> room;
  AttentionArgs call = args;
  if (args.part) {
    room.emplace(args, true, Device::cuda);
    call.log_sum_exp = room->statistics.data<float>();
    turn(args.log_sum_exp, call.log_sum_exp, args.heads, queries_of(args));
  }
  attention_backward_cudnn(call, *work.cudnn);
  // Only queries and keys of their own matrices can be without the other. Beside queries that are
  // columns of a wider one it is zero from the start, and a row of keys has its values beside it.
  if (args.q_stride == std::int64_t{args.heads} * args.head_dim)
    zero_others(args, args.query_starts, args.dq, 2 * args.q_stride);
  zero_others(args, args.key_starts, args.dk, 2 * args.kv_stride);
}

// cuDNN's forward, compared with our own if that was not done. False if it is not to be used.
bool try_forward(Trust& trust, const AttentionArgs& args, const AttentionDeviceWork& work) {
  try {
    forward_cudnn(args, work);
  } catch (const Error& error) {
    if (GpuGraph::recording()) throw;  // plainly, it runs perhaps
    trust.refuse(name_of(args), error.what());
    return false;
  }
  if (trust.forward_checked) return true;
  const std::int64_t rows = queries_of(args), width = std::int64_t{args.heads} * args.head_dim;
  const ForwardRoom room(args, Device::cuda);
  AttentionArgs own = args;
  own.out = room.out.raw();
  own.log_sum_exp = room.log_sum_exp.data<float>();
  forward_own(own, work);
  const DType type = args.wide ? DType::f32 : args.type;
  std::vector<std::pair<ResultPart, ResultPart>> results = {
      {{"output", args.out, rows, width, width, type}, {"", own.out, rows, width, width, type}}};
  const auto sums = [&](const char* name, const float* at) {
    return ResultPart{name, at, args.heads, rows, rows, DType::f32, true};
  };
  if (args.part)
    results.emplace_back(sums("log-sum-exp", args.log_sum_exp), sums("", own.log_sum_exp));
  return trust.agree(trust.forward_checked, name_of(args), results);
}

// Backward by our own kernels after forward by cuDNN: repeat forward, for our order of log_sum_exp,
// which that of parts has.
void backward_own_again(AttentionArgs args, const AttentionDeviceWork& work) {
  if (args.part) return backward_own(args, work);
  const ForwardRoom room(args, Device::cuda);
  args.out = room.out.raw();
  args.log_sum_exp = room.log_sum_exp.data<float>();
  forward_own(args, work);
  backward_own(args, work);
}

bool try_backward(Trust& trust, const AttentionArgs& args, const AttentionDeviceWork& work) {
  if (trust.refused) return false;
  try {
    backward_cudnn(args, work);
  } catch (const Error& error) {
    if (GpuGraph::recording()) throw;  // plainly, it runs perhaps
    trust.refuse(name_of(args), error.what());
    return false;
  }
  if (trust.backward_checked) return true;
  const std::int64_t queries = queries_of(args), keys = keys_of(args);
  const std::int64_t q_width = std::int64_t{args.heads} * args.head_dim;
  const std::int64_t kv_width = std::int64_t{args.key_heads} * args.head_dim;
  const GradientRoom room(args, Device::cuda);
  AttentionArgs own = args;
  own.dq = room.dq.raw(), own.dk = room.dk.raw(), own.dv = room.dv.raw();
  backward_own_again(own, work);
  const auto query_part = [&](const char* name, const void* at) {
    return ResultPart{name, at, queries, q_width, args.q_stride};
  };
  const auto key_part = [&](const char* name, const void* at) {
    return ResultPart{name, at, keys, kv_width, args.kv_stride};
  };
  return trust.agree(trust.backward_checked, name_of(args),
                     {{query_part("dq", args.dq), query_part("", own.dq)},
                      {key_part("dk", args.dk), key_part("", own.dk)},
                      {key_part("dv", args.dv), key_part("", own.dv)}});
}

}  // namespace

kernels::Attention describe_attention(const AttentionArgs& args, const AttentionDeviceWork& work) {
  kernels::Attention call;
  call.type = kernel_type(args.type);
  call.causal = args.causal;
  call.heads = args.heads, call.key_heads = args.key_heads, call.head_dim = args.head_dim;
  call.scale = args.scale;
  call.bias = args.bias, call.bias_reach = args.bias_reach;
  call.queries = queries_of(args);
  call.query_items = reinterpret_cast<const kernels::AttentionItem*>(work.query_items.raw());
  call.query_item_count = work.query_count;
  call.key_items = reinterpret_cast<const kernels::AttentionItem*>(work.key_items.raw());
  call.key_item_count = work.key_count;
  call.q = args.q, call.k = args.k, call.v = args.v;
  call.q_stride = args.q_stride, call.kv_stride = args.kv_stride;
  call.out = args.out, call.log_sum_exp = args.log_sum_exp;
  call.wide = args.wide;
  call.dout = args.dout;
  call.dq = args.dq, call.dk = args.dk, call.dv = args.dv;
  return call;
}

std::shared_ptr<const AttentionDeviceWork> cuda::attention_work(const AttentionPack& pack) {
  const kernels::AttentionWork lists =
      kernels::attention_work(pack.query_lengths, pack.key_lengths, pack.causal);
  auto work = std::make_shared<AttentionDeviceWork>();
  work->query_items = upload(lists.query_items);
  work->key_items = upload(lists.key_items);
  work->query_count = static_cast<std::int64_t>(lists.query_items.size());
  work->key_count = static_cast<std::int64_t>(lists.key_items.size());
  return work;
}

AttentionBody cuda::attend(const AttentionArgs& args, const AttentionPack& pack) {
  const AttentionDeviceWork& work = *pack.work;
  if (!args.bias && wants_cudnn(args)) {
    if (attention_body() == AttentionBody::cudnn) {
      forward_cudnn(args, work);
      return AttentionBody::cudnn;
    }
    Trust& trust = trust_in(args);
    if (!trust.refused && try_forward(trust, args, work)) return AttentionBody::cudnn;
  }
  forward_own(args, work);
  return AttentionBody::own;
}

void cuda::attend_backward(const AttentionArgs& args, const AttentionPack& pack,
                           AttentionBody forward) {
  const AttentionDeviceWork& work = *pack.work;
  if (args.part ? !wants_cudnn(args) : forward == AttentionBody::own)
    return backward_own(args, work);
  if (attention_body() == AttentionBody::cudnn) return backward_cudnn(args, work);
  if (!try_backward(trust_in(args), args, work)) backward_own_again(args, work);
}

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

void cuda::merge_attention(const MergeAttentionArgs& a) {
  kernels::AttentionMerge call;
  call.heads = a.heads, call.head_dim = a.head_dim;
  call.queries = a.queries;
  call.first = a.first, call.end = a.end;
  call.begins = a.begins;
  call.out = a.out, call.log_sum_exp = a.log_sum_exp;
  call.out_sum = a.out_sum, call.log_sum_exp_sum = a.log_sum_exp_sum;
  check_gpu(kernels::attention_merge(call, compute_stream()), "merge parts of attention");
}

}  // namespace vfm::ops
