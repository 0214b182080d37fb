// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_rooms.h"
#include "ops/attention/partial_attention.h"
#include "ops/backward.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

// First rows of the samples, and the longest.
struct Starts {
  std::vector<std::int64_t> queries, keys;
  std::int64_t longest_keys = 0;
};

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> starts(lengths.size() + 1, 0);
  std::partial_sum(lengths.begin(), lengths.end(), starts.begin() + 1);
  return starts;
}

Starts check(const AttentionPack& pack, const Tensor& q, std::int64_t q_width, const Tensor& kv,
             std::int64_t kv_width) {
  if (pack.heads <= 0 || pack.key_heads <= 0 || pack.head_dim <= 0 || pack.heads % pack.key_heads)
    fail("attention: {} heads cannot share {} key heads", pack.heads, pack.key_heads);
  if (pack.query_lengths.size() != pack.key_lengths.size() ||
      std::ranges::any_of(pack.query_lengths, [](auto n) { return n < 0; }) ||
      std::ranges::any_of(pack.key_lengths, [](auto n) { return n < 0; }))
    fail("attention: {} query lengths, {} key lengths", pack.query_lengths.size(),
         pack.key_lengths.size());
  Starts starts{starts_of(pack.query_lengths), starts_of(pack.key_lengths), 0};
  for (std::int64_t n : pack.key_lengths)
    starts.longest_keys = std::max(starts.longest_keys, n);
  if (q.device() != kv.device())
    fail("attention: queries are on {}, keys on {}", device_name(q.device()),
         device_name(kv.device()));
  if (q.shape() != Shape{starts.queries.back(), q_width} ||
      kv.shape() != Shape{starts.keys.back(), kv_width} || q.dtype() != kv.dtype() ||
      (q.dtype() != DType::f32 && q.dtype() != DType::bf16))
    fail("attention: {} {} and {} {} do not fit a pack of {} queries and {} keys",
         dtype_name(q.dtype()), to_string(q.shape()), dtype_name(kv.dtype()), to_string(kv.shape()),
         starts.queries.back(), starts.keys.back());
  for (std::size_t i = 0; pack.causal && i < pack.key_lengths.size(); ++i)
    if (pack.key_lengths[i] < pack.query_lengths[i])
      fail("attention: {} causal queries over {} keys", pack.query_lengths[i], pack.key_lengths[i]);
  return starts;
}

const void* column(const Tensor& t, std::int64_t at) {
  return t.data<std::byte>() + static_cast<std::size_t>(at) * dtype_size(t.dtype());
}

/// `products` of queries' and keys' width: two forward, four back, where the scores are computed
/// again.
Touching work_of(const AttentionPack& pack, const AttentionArgs& args, const Touching& touching,
                 int products, bool back) {
  Touching all = touching.kind(WorkKind::attention, args.type);
  if (all.device == Device::meta) all.work.cudnn = count_attention_rooms(args, back);
  return all.products(attention_pairs(pack) * pack.heads, products, pack.head_dim).cpu_scratch([&] {
    return attention_scratch(pack, back);
  });
}

struct Call {
  AttentionPack pack;
  std::shared_ptr<const Starts> starts;
  Tensor q, kv;   // equal for self-attention
  Tensor values;  // if these do not lie in kv; their gradient goes to kv's all the same
  Tensor bias;    // relative attention only
  std::int64_t k_column = 0, v_column = 0;
  Tensor out, log_sum_exp;
  AttentionBody body = AttentionBody::own;  // that ran forward on a GPU, and ordered log_sum_exp
  bool part = false;                        // of the keys; log_sum_exp is [H, S] for any body
};

AttentionArgs arguments(const Call& c) {
  AttentionArgs args;
  args.type = c.q.dtype();
  args.causal = c.pack.causal;
  args.part = c.part;
  args.heads = c.pack.heads;
  args.key_heads = c.pack.key_heads;
  args.head_dim = c.pack.head_dim;
  args.scale = c.bias.defined() ? 1.f : 1.f / std::sqrt(static_cast<float>(c.pack.head_dim));
  args.samples = static_cast<std::int64_t>(c.pack.query_lengths.size());
  args.query_starts = c.starts->queries.data();
  args.key_starts = c.starts->keys.data();
  args.q = c.q.raw();
  args.k = column(c.kv, c.k_column);
  args.v = column(c.values.defined() ? c.values : c.kv, c.v_column);
  args.q_stride = c.q.size(1);
  args.kv_stride = c.kv.size(1);
  if (c.bias.defined()) {
    args.bias = c.bias.data<float>();
    args.bias_reach = (c.bias.size(1) + 1) / 2;
  }
  args.out = c.out.raw();
  args.wide = c.out.dtype() != c.q.dtype();
  args.log_sum_exp = c.log_sum_exp.data<float>();
  return args;
}

struct Gradients {
  Tensor dq, dkv;  // one and the same for self-attention
};

Gradients gradients_of(const Call& c, const Tensor& dout) {
  const bool self = c.q.id() == c.kv.id();
  const Device device = c.q.device();
  // What stands beside the queries is not read here.
  const bool wide = !self && c.q.size(1) > c.out.size(1);
  const Tensor dq = wide ? Tensor::zeros(c.q.shape(), c.q.dtype(), device)
                         : Tensor(c.q.shape(), c.q.dtype(), device);
  const Tensor dkv = self ? dq : Tensor(c.kv.shape(), c.kv.dtype(), device);
  AttentionArgs args = arguments(c);
  args.dout = dout.raw();
  args.dq = dq.raw();
  args.dk = const_cast<void*>(column(dkv, c.k_column));
  args.dv = const_cast<void*>(column(dkv, c.v_column));
  const Touching tensors(c.q, dout, c.out, dq, self ? Tensor() : c.kv, self ? Tensor() : dkv);
  VFM_RUN(work_of(c.pack, args, tensors, 4, true), attend_backward, args, c.pack, c.body);
  return {dq, dkv};
}

void backward(Tape& tape, const Call& c) {
  const Tensor dout = tape.take(c.out).to(c.q.dtype());
  Gradients made = gradients_of(c, dout);
  if (c.q.id() != c.kv.id()) tape.accumulate(c.kv, std::move(made.dkv));
  made.dkv = Tensor();
  tape.accumulate(c.q, std::move(made.dq));
}

/// Makes out and log_sum_exp.
void run_forward(Call& call) {
  const std::int64_t rows = call.q.size(0);
  const Device device = call.q.device();
  call.out = Tensor({rows, std::int64_t{call.pack.heads} * call.pack.head_dim},
                    call.part ? DType::f32 : call.q.dtype(), device);
  // cuDNN's backward pass may read on to the end of a tile.
  const std::int64_t read =
      layout_device(device) == Device::cpu || call.part ? rows : rows + kAttentionSpareRows;
  call.log_sum_exp = Tensor({call.pack.heads, read}, DType::f32, device);
  const bool self = call.q.id() == call.kv.id();
  const Touching tensors(call.q, self ? Tensor() : call.kv, self ? Tensor() : call.values,
                         call.out);
  call.body = VFM_ASK(AttentionBody::own, work_of(call.pack, arguments(call), tensors, 2, false),
                      attend, arguments(call), call.pack);
}

Tensor attend(Tape& tape, Call call) {
  if (!call.pack.work) prepare(call.pack, call.q.device());
  // Across texts it takes less time than its result takes memory.
  if (call.q.id() != call.kv.id()) {
    run_forward(call);
  } else {
    const Tape::Made made = tape.once([&] {
      run_forward(call);
      return Tape::Made{{call.out, call.log_sum_exp}, static_cast<int>(call.body)};
    });
    call.out = made.tensors[0], call.log_sum_exp = made.tensors[1];
    call.body = static_cast<AttentionBody>(made.how);
  }
  tape.record(call.out, {call.q, call.kv}, [call](Tape& t) { backward(t, call); });
  return call.out;
}

Call self_call(const Tensor& qkv, const AttentionPack& pack) {
  const std::int64_t heads = pack.heads, key_heads = pack.key_heads;
  const std::int64_t width = (heads + 2 * key_heads) * pack.head_dim;
  if (pack.query_lengths != pack.key_lengths)
    fail("self-attention: queries and keys have different lengths");
  Call call;
  call.pack = pack;
  call.starts = std::make_shared<const Starts>(check(pack, qkv, width, qkv, width));
  call.q = call.kv = qkv;
  call.k_column = heads * pack.head_dim;
  call.v_column = (heads + key_heads) * pack.head_dim;
  return call;
}

Call cross_call(const Tensor& q, std::int64_t q_width, const Tensor& kv,
                const AttentionPack& pack) {
  const std::int64_t key_width = std::int64_t{pack.key_heads} * pack.head_dim;
  Call call;
  call.pack = pack;
  call.starts = std::make_shared<const Starts>(check(pack, q, q_width, kv, 2 * key_width));
  call.q = q;
  call.kv = kv;
  call.v_column = key_width;
  return call;
}

Call part_call(const Tensor& q, const Tensor& kv, const AttentionPack& pack) {
  if (pack.causal) fail("attention in parts is not causal");
  Call call = cross_call(q, std::int64_t{pack.heads} * pack.head_dim, kv, pack);
  if (!call.pack.work) prepare(call.pack, q.device());
  call.part = true;
  return call;
}

}  // namespace

void prepare(AttentionPack& pack, Device device) {
  pack.work = VFM_ASK(std::shared_ptr<const AttentionDeviceWork>(), device, attention_work, pack);
}

double attention_pairs(const AttentionPack& pack) {
  double pairs = 0;
  for (std::size_t i = 0; i < pack.query_lengths.size(); ++i) {
    const auto queries = static_cast<double>(pack.query_lengths[i]);
    const auto keys = static_cast<double>(pack.key_lengths[i]);
    pairs += queries * (pack.causal ? keys - (queries - 1) / 2 : keys);
  }
  return pairs;
}

Tensor self_attention(Tape& tape, const Tensor& qkv, const AttentionPack& pack) {
  return attend(tape, self_call(qkv, pack));
}

Tensor normed_self_attention(Tape& tape, const Tensor& x, const QkNormRope& layout,
                             const AttentionPack& pack) {
  if (layout.query_heads != pack.heads || layout.key_heads != pack.key_heads ||
      layout.value_heads != pack.key_heads)
    fail("self-attention: a row of {}, {} and {} heads does not fit a pack of {} and {}",
         layout.query_heads, layout.key_heads, layout.value_heads, pack.heads, pack.key_heads);
  Call call = self_call(qk_norm_rope(tape, x, layout, false), pack);
  call.values = x;
  return attend(tape, std::move(call));
}

Tensor attention_over(Tape& tape, const Tensor& qkv, const Tensor& kv, const AttentionPack& pack) {
  const std::int64_t width = std::int64_t{pack.heads + 2 * pack.key_heads} * pack.head_dim;
  return attend(tape, cross_call(qkv, width, kv, pack));
}

Tensor cross_attention(Tape& tape, const Tensor& q, const Tensor& kv, const AttentionPack& pack) {
  return attend(tape, cross_call(q, std::int64_t{pack.heads} * pack.head_dim, kv, pack));
}

PartOfAttention attend_part(const Tensor& q, const Tensor& kv, const AttentionPack& pack) {
  Call call = part_call(q, kv, pack);
  run_forward(call);
  return {call.out, call.log_sum_exp};
}

PartGradients attend_part_backward(const Tensor& q, const Tensor& kv, const AttentionPack& pack,
                                   const Tensor& out, const Tensor& log_sum_exp,
                                   const Tensor& dout) {
  Call call = part_call(q, kv, pack);
  if (out.shape() != q.shape() || dout.shape() != q.shape() || out.dtype() != q.dtype() ||
      dout.dtype() != q.dtype() || log_sum_exp.shape() != Shape{pack.heads, q.size(0)})
    fail("attention in parts: {} {}, its gradient {} {} and a log-sum-exp {} do not fit queries {}",
         dtype_name(out.dtype()), to_string(out.shape()), dtype_name(dout.dtype()),
         to_string(dout.shape()), to_string(log_sum_exp.shape()), to_string(q.shape()));
  call.out = out;
  call.log_sum_exp = log_sum_exp;
  Gradients made = gradients_of(call, dout);
  return {std::move(made.dq), std::move(made.dkv)};
}

Tensor relative_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& bias, const AttentionPack& pack) {
  if (tape.recording())
    fail("relative attention has no gradient: it is for inference, without recording");
  if (pack.query_lengths != pack.key_lengths || pack.key_heads != pack.heads || pack.causal)
    fail("relative attention: every head has its keys, every query sees all of them");
  const std::int64_t width = std::int64_t{pack.heads} * pack.head_dim;
  Call call;
  call.pack = pack;
  check(pack, q, width, v, width);
  call.starts = std::make_shared<const Starts>(check(pack, q, width, k, width));
  if (bias.dtype() != DType::f32 || bias.device() != q.device() || bias.dims() != 2 ||
      bias.size(0) != pack.heads || bias.size(1) < 2 * call.starts->longest_keys - 1)
    fail("relative attention: a bias {} on {} does not fit {} heads and samples of {}",
         to_string(bias.shape()), device_name(bias.device()), pack.heads,
         call.starts->longest_keys);
  call.q = q;
  call.kv = k;
  call.values = v;
  call.bias = bias;
  return attend(tape, std::move(call));
}

}  // namespace vfm::ops
