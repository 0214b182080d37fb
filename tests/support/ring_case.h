// Cases of a ring of ranks for tests of nn/ring_attention.h: who has which tokens, and what one
// rank that has all of them computes on the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "dist/world.h"
#include "nn/ring_attention.h"
#include "support/noise.h"

namespace vfm::test {

using Lengths = std::vector<std::int64_t>;

/// Who has how many tokens of each sample, in order: rows[rank][sample].
struct RingCase {
  std::vector<Lengths> rows;
  int heads = 2, key_heads = 2, head_dim = 16;
  DType dtype = DType::f32;

  int ranks() const { return static_cast<int>(rows.size()); }
  std::int64_t width() const { return std::int64_t{heads} * head_dim; }
  std::int64_t all_width() const { return width() + 2 * std::int64_t{key_heads} * head_dim; }
  Lengths lengths() const {
    Lengths sum(rows.front().size(), 0);
    for (const Lengths& part : rows)
      for (std::size_t s = 0; s < part.size(); ++s)
        sum[s] += part[s];
    return sum;
  }
  std::int64_t tokens(std::size_t rank) const {
    std::int64_t sum = 0;
    for (const std::int64_t n : rows[rank])
      sum += n;
    return sum;
  }
  /// Where the rows of a rank lie among all.
  Lengths places(std::size_t rank) const {
    Lengths result;
    std::int64_t begin = 0;
    for (std::size_t s = 0; s < rows[rank].size(); ++s) {
      std::int64_t at = begin;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::int64_t i = 0; r == rank && i < rows[r][s]; ++i)
          result.push_back(at + i);
        at += rows[r][s];
      }
      begin = at;
    }
    return result;
  }
  /// Of all tokens.
  Tensor queries_keys_values() const {
    std::int64_t all = 0;
    for (const std::int64_t n : lengths())
      all += n;
    return noise_tensor({all, all_width()}, 1, dtype);
  }
  Tensor cotangent() const {
    std::int64_t all = 0;
    for (const std::int64_t n : lengths())
      all += n;
    return noise_tensor({all, width()}, 2, dtype);
  }
};

inline Tensor part_of(const Tensor& all, const Lengths& places) {
  const Tensor part({static_cast<std::int64_t>(places.size()), all.size(1)}, all.dtype());
  std::int64_t to = 0;
  for (const std::int64_t row : places)
    copy(all.rows(row, row + 1), part.rows(to, to + 1)), ++to;
  return part;
}

/// `part` may be on a GPU.
inline void put(const Tensor& part, const Lengths& places, const Tensor& all) {
  const Tensor plain = part.to(Device::cpu).to(DType::f32);
  std::int64_t from = 0;
  for (const std::int64_t row : places)
    copy(plain.rows(from, from + 1), all.rows(row, row + 1)), ++from;
}

/// Results of all tokens, f32.
struct RingOutcome {
  Tensor out, gradient;
};

/// By one rank, on the CPU.
inline RingOutcome together(const RingCase& c) {
  RingOutcome outcome;
  const Tensor qkv = c.queries_keys_values();
  outcome.gradient = Tensor::zeros(qkv.shape());
  ops::Tape tape;
  tape.watch(qkv, outcome.gradient);
  const Tensor out = ops::self_attention(
      tape, qkv, {c.lengths(), c.lengths(), c.heads, c.key_heads, c.head_dim, false});
  outcome.out = out.to(DType::f32).clone();
  tape.backward(out, c.cotangent());
  return outcome;
}

/// A group of all ranks of the world, and the ring of a case in it.
struct RingOfAll {
  std::unique_ptr<dist::Group> group;
  nn::Ring ring;

  RingOfAll(dist::World& world, const RingCase& c) {
    std::vector<int> ranks;
    for (int r = 0; r < c.ranks(); ++r)
      ranks.push_back(r);
    group = world.group("cp", ranks);
    ring.group = group.get();
    const Lengths& own = c.rows[static_cast<std::size_t>(world.rank())];
    for (const Lengths& keys : c.rows)
      ring.packs.push_back({own, keys, c.heads, c.key_heads, c.head_dim, false});
  }
};

}  // namespace vfm::test
