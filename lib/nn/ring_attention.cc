// SPDX-License-Identifier: Apache-2.0
#include "nn/ring_attention.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "nn/columns.h"
#include "ops/attention/partial_attention.h"
#include "ops/pointwise/add.h"
#include "ops/pointwise/join.h"

namespace vfm::nn {
namespace {

// Who has what: at step s a rank attends over the keys of the one s places before it.
class Round {
 public:
  explicit Round(const Ring& ring)
      : ring_(ring), ranks_(ring.group->size()), rank_(ring.group->rank()) {
    const ops::AttentionPack& pack = ring.packs[static_cast<std::size_t>(rank_)];
    queries_ = std::int64_t{pack.heads} * pack.head_dim;
    keys_ = 2 * std::int64_t{pack.key_heads} * pack.head_dim;
  }

  int steps() const { return ranks_; }
  const ops::AttentionPack& pack(int step) const {
    return ring_.packs[static_cast<std::size_t>((rank_ - step % ranks_ + ranks_) % ranks_)];
  }
  /// Columns of queries, and of keys and values.
  Columns queries() const { return {0, queries_, queries_ + keys_}; }
  Columns keys() const { return {queries_, keys_, queries_ + keys_}; }

  /// Sends what belongs to the keys of a step to the next rank; `received` will be what belongs to
  /// those of the step after.
  dist::Transfer pass_on(int step, const Tensor& sent, Tensor& received) const {
    const std::vector<std::int64_t>& lengths = pack(step + 1).key_lengths;
    const std::int64_t rows = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    received = Tensor({rows, sent.size(1)}, sent.dtype(), sent.device());
    return ring_.group->exchange((rank_ + 1) % ranks_, sent, (rank_ - 1 + ranks_) % ranks_,
                                 received);
  }

 private:
  const Ring& ring_;
  int ranks_ = 0, rank_ = 0;
  std::int64_t queries_ = 0, keys_ = 0;
};

/// `attend(kv, pack)` of each part while it goes on to the next rank, added up.
template <class Attend>
ops::AttentionSum go_round(const Round& round, Tensor kv, const Attend& attend) {
  ops::AttentionSum sum;
  for (int step = 0; step < round.steps(); ++step) {
    Tensor next;
    dist::Transfer on_the_way;
    if (step + 1 < round.steps()) on_the_way = round.pass_on(step, kv, next);
    sum.add(attend(kv, round.pack(step)), round.pack(step));
    on_the_way.wait();
    kv = std::move(next);
  }
  return sum;
}

ops::Tape::Made forward(const Tensor& qkv, const Ring& ring) {
  const Round round(ring);
  const Tensor q = take_columns(qkv, round.queries());
  const ops::AttentionSum sum = go_round(round, take_columns(qkv, round.keys()),
                                         [&q](const Tensor& kv, const ops::AttentionPack& pack) {
                                           return ops::attend_part(q, kv, pack);
                                         });
  return {{sum.out().to(qkv.dtype()), sum.log_sum_exp()}, 0};
}

// The gradients of a rank's queries, and of its own keys and values, over its own keys: of some
// heads at a time.
class OwnGradients {
 public:
  OwnGradients(const Round& round, const Tensor& qkv, const Tensor& out, const Tensor& log_sum_exp,
               const Tensor& dout)
      : round_(round), qkv_(qkv), out_(out), log_sum_exp_(log_sum_exp), dout_(dout) {
    dq = Tensor({qkv.size(0), round.queries().count}, DType::f32, qkv.device());
    dkv = Tensor({qkv.size(0), round.keys().count}, DType::f32, qkv.device());
  }

  /// Of `count` key heads from `first` on, and of the queries that they serve.
  void make(int first, int count) const {
    const ops::AttentionPack& all = round_.pack(0);
    const std::int64_t K = all.head_dim, shared = all.heads / all.key_heads, keys = count * K,
                       keys_at = first * K, values_at = (all.key_heads + first) * K;
    const Columns own = {shared * keys_at, shared * keys, all.heads * K};
    ops::AttentionPack pack = all;
    pack.heads = static_cast<int>(shared) * count, pack.key_heads = count;
    const Tensor kv({qkv_.size(0), 2 * keys}, qkv_.dtype(), qkv_.device());
    ops::copy_columns(qkv_, own.of + keys_at, kv, 0, keys);
    ops::copy_columns(qkv_, own.of + values_at, kv, keys, keys);
    const ops::PartGradients made = ops::attend_part_backward(
        take_columns(qkv_, {own.first, own.count, qkv_.size(1)}), kv, pack, take_columns(out_, own),
        log_sum_exp_.rows(shared * first, shared * (first + count)), take_columns(dout_, own));
    ops::copy_columns(made.dq.to(DType::f32), 0, dq, own.first, own.count);
    const Tensor plain = made.dkv.to(DType::f32);
    ops::copy_columns(plain, 0, dkv, keys_at, keys);
    ops::copy_columns(plain, keys, dkv, values_at, keys);
  }

  Tensor dq, dkv;

 private:
  const Round& round_;
  const Tensor &qkv_, &out_, &log_sum_exp_, &dout_;
};

// Gradients of keys and values follow these a step behind: a rank adds its share to what the one
// before it sent, and sends it on. Half of the heads' own keys hide the way of the first keys that
// come, and the other half that of the last gradients back.
Tensor backward(const Tensor& qkv, const Ring& ring, const Tensor& out, const Tensor& log_sum_exp,
                const Tensor& dout) {
  const Round round(ring);
  const int heads = round.pack(0).key_heads;
  const int early = round.steps() > 1 && heads > 1 ? heads / 2 : heads;
  const OwnGradients own(round, qkv, out, log_sum_exp, dout);
  const Tensor q = take_columns(qkv, round.queries());
  Tensor kv = take_columns(qkv, round.keys());
  Tensor dq, arriving;
  dist::Transfer gradients;
  for (int step = 0; step < round.steps(); ++step) {
    Tensor next;
    dist::Transfer on_the_way;
    if (step + 1 < round.steps()) on_the_way = round.pass_on(step, kv, next);
    if (step == 0) {
      own.make(0, early);
    } else {
      const ops::PartGradients part =
          ops::attend_part_backward(q, kv, round.pack(step), out, log_sum_exp, dout);
      const Tensor share = part.dkv.to(DType::f32);
      gradients.wait();
      if (arriving.defined()) ops::add_in_place(share, arriving);
      gradients = round.pass_on(step, share, arriving);
      if (step == 1)
        dq = part.dq.to(DType::f32);
      else
        ops::add_in_place(dq, part.dq);
    }
    on_the_way.wait();
    kv = std::move(next);
  }
  if (early < heads) own.make(early, heads - early);
  gradients.wait();
  if (arriving.defined()) ops::add_in_place(own.dkv, arriving);
  if (dq.defined()) ops::add_in_place(own.dq, dq);
  const Tensor dqkv(qkv.shape(), qkv.dtype(), qkv.device());
  ops::copy_columns(own.dq.to(qkv.dtype()), 0, dqkv, round.queries().first, round.queries().count);
  ops::copy_columns(own.dkv.to(qkv.dtype()), 0, dqkv, round.keys().first, round.keys().count);
  return dqkv;
}

void check_ranks(const Ring& ring) {
  if (ring.packs.size() != static_cast<std::size_t>(ring.group->size()))
    fail("ring attention: {} ranks, keys of {}", ring.group->size(), ring.packs.size());
}

}  // namespace

Tensor ring_attention(ops::Tape& tape, const Tensor& qkv, const Ring& ring) {
  check_ranks(ring);
  const ops::Tape::Made made = tape.once([&] { return forward(qkv, ring); });
  const Tensor out = made.tensors[0], log_sum_exp = made.tensors[1];
  tape.record(out, {qkv}, [qkv, ring, out, log_sum_exp](ops::Tape& t) {
    const Tensor dout = t.take(out).to(qkv.dtype());
    t.accumulate(qkv, backward(qkv, ring, out, log_sum_exp, dout));
  });
  return out;
}

Tensor ring_attention_fp8(const LowHeads& qkv, const Ring& ring) {
  check_ranks(ring);
  const Round round(ring);
  const ops::AttentionPack& own = round.pack(0);
  const ops::HeadKinds queries{.queries = own.heads, .head_dim = own.head_dim},
      keys{.keys = own.key_heads, .values = own.key_heads, .head_dim = own.head_dim};
  const Tensor q =
      ops::restore_heads(take_columns(qkv.codes, round.queries()), queries, qkv.largest);
  const ops::AttentionSum sum =
      go_round(round, take_columns(qkv.codes, round.keys()),
               [&](const Tensor& codes, const ops::AttentionPack& pack) {
                 return ops::attend_part(q, ops::restore_heads(codes, keys, qkv.largest), pack);
               });
  return sum.out().to(DType::bf16);
}

}  // namespace vfm::nn
