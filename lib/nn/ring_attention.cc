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

/// The gradient of qkv, of that of its columns in f32.
Tensor side_by_side(const Tensor& qkv, const Round& round, const Tensor& dq, const Tensor& dkv) {
  const Tensor dqkv(qkv.shape(), qkv.dtype(), qkv.device());
  ops::copy_columns(dq.to(qkv.dtype()), 0, dqkv, round.queries().first, round.queries().count);
  ops::copy_columns(dkv.to(qkv.dtype()), 0, dqkv, round.keys().first, round.keys().count);
  return dqkv;
}

// Gradients of keys and values follow these a step behind: a rank adds its share to what the one
// before it sent, and sends it on. Its own share of its own ones waits for the last to come round.
Tensor backward(const Tensor& qkv, const Ring& ring, const Tensor& out, const Tensor& log_sum_exp,
                const Tensor& dout) {
  const Round round(ring);
  const Tensor q = take_columns(qkv, round.queries());
  Tensor kv = take_columns(qkv, round.keys());
  Tensor dq, dkv, arriving;
  dist::Transfer gradients;
  for (int step = 0; step < round.steps(); ++step) {
    Tensor next;
    dist::Transfer on_the_way;
    if (step + 1 < round.steps()) on_the_way = round.pass_on(step, kv, next);
    const ops::PartGradients part =
        ops::attend_part_backward(q, kv, round.pack(step), out, log_sum_exp, dout);
    if (step == 0) {
      dq = part.dq.to(DType::f32);
      dkv = part.dkv.to(DType::f32);
    } else {
      ops::add_in_place(dq, part.dq);
      const Tensor share = part.dkv.to(DType::f32);
      gradients.wait();
      if (arriving.defined()) ops::add_in_place(share, arriving);
      gradients = round.pass_on(step, share, arriving);
    }
    on_the_way.wait();
    kv = std::move(next);
  }
  gradients.wait();
  if (arriving.defined()) ops::add_in_place(dkv, arriving);
  return side_by_side(qkv, round, dq, dkv);
}

/// The same of one half of the heads over the rank's own keys, which are in qkv.
ops::PartGradients half_backward(const Round& round, std::int64_t half, const Tensor& qkv,
                                 const Tensor& out, const Tensor& log_sum_exp, const Tensor& dout) {
  ops::AttentionPack pack = round.pack(0);
  pack.heads /= 2;
  pack.key_heads /= 2;
  const std::int64_t width = std::int64_t{pack.heads} * pack.head_dim,
                     keys = std::int64_t{pack.key_heads} * pack.head_dim;
  const Tensor kv({qkv.size(0), 2 * keys}, qkv.dtype(), qkv.device());
  for (const std::int64_t of_values : {0, 1})
    ops::copy_columns(qkv, 2 * width + (2 * of_values + half) * keys, kv, of_values * keys, keys);
  const Columns own = {half * width, width, 2 * width};
  return ops::attend_part_backward(
      take_columns(qkv, {own.first, own.count, qkv.size(1)}), kv, pack, take_columns(out, own),
      log_sum_exp.rows(half * pack.heads, (half + 1) * pack.heads), take_columns(dout, own));
}

// Of two ranks: half of the heads' own keys hide the way of the other's, and the rest that of the
// gradients back. Sums of two have the same bits in either order.
Tensor backward_of_two(const Tensor& qkv, const Ring& ring, const Tensor& out,
                       const Tensor& log_sum_exp, const Tensor& dout) {
  const Round round(ring);
  Tensor other, arriving;
  dist::Transfer on_the_way = round.pass_on(0, take_columns(qkv, round.keys()), other);
  ops::PartGradients halves[2];
  halves[0] = half_backward(round, 0, qkv, out, log_sum_exp, dout);
  on_the_way.wait();
  const ops::PartGradients part = ops::attend_part_backward(
      take_columns(qkv, round.queries()), other, round.pack(1), out, log_sum_exp, dout);
  other = Tensor();
  dist::Transfer gradients = round.pass_on(1, part.dkv.to(DType::f32), arriving);
  halves[1] = half_backward(round, 1, qkv, out, log_sum_exp, dout);
  const Tensor dq(part.dq.shape(), DType::f32, qkv.device()),
      dkv({qkv.size(0), round.keys().count}, DType::f32, qkv.device());
  const std::int64_t width = round.queries().count / 2, keys = round.keys().count / 4;
  for (const std::int64_t half : {0, 1}) {
    ops::copy_columns(halves[half].dq.to(DType::f32), 0, dq, half * width, width);
    const Tensor of_half = halves[half].dkv.to(DType::f32);
    for (const std::int64_t of_values : {0, 1})
      ops::copy_columns(of_half, of_values * keys, dkv, (2 * of_values + half) * keys, keys);
  }
  ops::add_in_place(dq, part.dq);
  gradients.wait();
  ops::add_in_place(dkv, arriving);
  return side_by_side(qkv, round, dq, dkv);
}

void check_ranks(const Ring& ring) {
  if (ring.packs.size() != static_cast<std::size_t>(ring.group->size()))
    fail("ring attention: {} ranks, keys of {}", ring.group->size(), ring.packs.size());
}

bool even_heads(const Ring& ring) {
  const ops::AttentionPack& pack = ring.packs.front();
  return pack.heads % 2 == 0 && pack.key_heads % 2 == 0;
}

}  // namespace

Tensor ring_attention(ops::Tape& tape, const Tensor& qkv, const Ring& ring) {
  check_ranks(ring);
  const ops::Tape::Made made = tape.once([&] { return forward(qkv, ring); });
  const Tensor out = made.tensors[0], log_sum_exp = made.tensors[1];
  tape.record(out, {qkv}, [qkv, ring, out, log_sum_exp](ops::Tape& t) {
    const Tensor dout = t.take(out).to(qkv.dtype());
    const bool two = ring.group->size() == 2 && even_heads(ring);
    t.accumulate(qkv, (two ? backward_of_two : backward)(qkv, ring, out, log_sum_exp, dout));
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
