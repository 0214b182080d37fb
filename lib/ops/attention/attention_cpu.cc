// Scores are kept transposed, keys down and queries across: the softmax then works on sixteen
// queries at a time with no sum across a register, and keys and values are read where they lie.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include "ops/attention/attention_bias.h"
#include "ops/attention/attention_kernels.h"
#include "ops/attention/block_gemm.h"
#include "ops/cpu/elementary.h"
#include "ops/cpu/row_loops.h"

namespace vfm::ops::VFM_ISA {
namespace {

constexpr int kQ = kQueryBlock, kK = kKeyBlock;

VFM_INLINE std::int64_t round_up(std::int64_t n) {
  return (n + 15) / 16 * 16;
}
VFM_INLINE std::int64_t least(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// Rows as f32 with a length that is a multiple of 16: in place where they lie already so, else, or
// if `copy` asks for it, a copy padded with zeros. Rows that are read many times are better copied:
// heads lie side by side in memory, so that the rows of one would compete for few places in the
// cache.
struct Rows {
  const float* data;
  std::int64_t stride;
};

template <class T>
VFM_INLINE Rows rows_of(const T* from, std::int64_t stride, std::int64_t rows, int width, bool copy,
                        float* room) {
  if constexpr (sizeof(T) == sizeof(float))
    if (width % 16 == 0 && !copy) return {from, stride};
  const std::int64_t padded = round_up(width);
  for (std::int64_t i = 0; i < rows; ++i) {
#pragma omp simd
    for (int j = 0; j < width; ++j)
      room[i * padded + j] = load(from + i * stride + j);
    for (std::int64_t j = width; j < padded; ++j)
      room[i * padded + j] = 0;
  }
  return {room, padded};
}

// to [width, columns] = transpose of from [rows, width]; columns beyond `rows` are
// zero.
template <class T>
VFM_INLINE void transpose(const T* from, std::int64_t stride, std::int64_t rows,
                          std::int64_t columns, int width, float* to) {
  for (std::int64_t i = 0; i < columns; i += 16)
    for (int d = 0; d < width; d += 16) {
      const T* block = from + i * stride + d;
      if (sizeof(T) == sizeof(float) && i + 16 <= rows && d + 16 <= width) {
        transpose_block(reinterpret_cast<const float*>(block), stride, to + d * columns + i,
                        columns);
        continue;
      }
      const std::int64_t down = least(16, rows - i), across = least(16, width - d);
      alignas(64) float full[16 * 16] = {};
      for (std::int64_t r = 0; r < down; ++r)
#pragma omp simd
        for (std::int64_t c = 0; c < across; ++c)
          full[r * 16 + c] = load(block + r * stride + c);
      alignas(64) float turned[16 * 16];
      transpose_block(full, 16, turned, 16);
      for (std::int64_t c = 0; c < across; ++c)
#pragma omp simd
        for (int r = 0; r < 16; ++r)
          to[(d + c) * columns + i + r] = turned[c * 16 + r];
    }
}

// One sample and head.
template <class T>
struct Problem {
  const T* q;
  Rows k, v;
  std::int64_t queries, keys;
  std::int64_t q_at, kv_at;  // element offsets into q-like and k-like arrays
  std::int64_t out_at;
  std::int64_t out_stride;
  float* log_sum_exp;
  const float* bias;
};

// `room` takes the keys and values if they must be copied: 2 * padded * keys floats.
template <class T>
VFM_INLINE Problem<T> problem(const AttentionArgs& a, std::int64_t sample, int head, bool copy,
                              float* room) {
  const std::int64_t q0 = a.query_starts[sample], k0 = a.key_starts[sample];
  const std::int64_t total = a.query_starts[a.samples];
  Problem<T> p;
  p.queries = a.query_starts[sample + 1] - q0;
  p.keys = a.key_starts[sample + 1] - k0;
  p.q_at = q0 * a.q_stride + std::int64_t{head} * a.head_dim;
  p.kv_at = k0 * a.kv_stride + std::int64_t{head / (a.heads / a.key_heads)} * a.head_dim;
  p.out_stride = std::int64_t{a.heads} * a.head_dim;
  p.out_at = q0 * p.out_stride + std::int64_t{head} * a.head_dim;
  p.q = static_cast<const T*>(a.q) + p.q_at;
  p.k = rows_of(static_cast<const T*>(a.k) + p.kv_at, a.kv_stride, p.keys, a.head_dim, copy, room);
  p.v = rows_of(static_cast<const T*>(a.v) + p.kv_at, a.kv_stride, p.keys, a.head_dim, copy,
                room + p.keys * round_up(a.head_dim));
  p.log_sum_exp = a.log_sum_exp + head * total + q0;
  p.bias = bias_of(a, head);
  return p;
}

// Keys that a causal mask hides from query `q` of the block get a score that exp turns into zero.
VFM_INLINE void mask(float* scores, std::int64_t columns, std::int64_t first_key, std::int64_t keys,
                     std::int64_t first_query, std::int64_t shift) {
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t i = 0; i < columns; ++i)
      if (first_key + j > first_query + i + shift) scores[j * columns + i] = -1e30f;
}

// Online softmax of a block of scores: they become exp(score * scale - top), and factor what was
// summed before must be multiplied with. top: the maximum so far; sum: of the exponentials.
void soften(float* scores, float scale, std::int64_t keys, std::int64_t columns, float* top,
            float* sum, float* factor) {
  for (std::int64_t i = 0; i < columns; i += kWidth) {
    const Native before = load_as<Native>(top + i);
    Native highest = before;
    for (std::int64_t j = 0; j < keys; ++j) {
      const Native s = load_as<Native>(scores + j * columns + i) * scale;
      highest = s > highest ? s : highest;
    }
    const Native by = exp_of_negative(before - highest);
    Native total = load_as<Native>(sum + i) * by;
    for (std::int64_t j = 0; j < keys; ++j) {
      float* at = scores + j * columns + i;
      const Native e = exp_of_negative(load_as<Native>(at) * scale - highest);
      store(at, e);
      total += e;
    }
    store(top + i, highest);
    store(sum + i, total);
    store(factor + i, by);
  }
}

// A block of queries against all its keys. Forward state a query: the maximum so far, the sum of
// exp(score - maximum), and the weighted values.
template <class T>
void forward_block(const AttentionArgs& a, const Problem<T>& p, std::int64_t first,
                   float* scratch) {
  const int width = a.head_dim;
  const std::int64_t padded = round_up(width);
  const std::int64_t count = least(kQ, p.queries - first), columns = round_up(count);
  float* queries = scratch;               // [K, columns]
  float* scores = queries + padded * kQ;  // [keys, columns]
  float* values = scores + kK * kQ;       // [columns, padded]: the result
  float* top = values + kQ * padded;      // [columns]
  float* sum = top + kQ;                  // [columns]
  float* factor = sum + kQ;               // [columns]
  transpose(p.q + first * a.q_stride, a.q_stride, count, columns, width, queries);
  for (std::int64_t i = 0; i < columns; ++i)
    top[i] = -1e30f, sum[i] = 0;
  for (std::int64_t i = 0; i < columns * padded; ++i)
    values[i] = 0;
  const std::int64_t shift = p.keys - p.queries;
  const std::int64_t seen = a.causal ? least(p.keys, first + count + shift) : p.keys;
  for (std::int64_t key = 0; key < seen; key += kK) {
    const std::int64_t keys = least(kK, seen - key);
    block_gemm(keys, columns, width, p.k.data + key * p.k.stride, p.k.stride, 1, queries, columns,
               scores, columns, false);
    if (a.causal && key + keys - 1 > first + shift) mask(scores, columns, key, keys, first, shift);
    if (p.bias) add_bias(p.bias, scores, columns, key, keys, first, count);
    soften(scores, a.scale, keys, columns, top, sum, factor);
    if (key > 0)
      for (std::int64_t i = 0; i < count; ++i)
#pragma omp simd
        for (std::int64_t d = 0; d < padded; ++d)
          values[i * padded + d] *= factor[i];
    block_gemm(count, padded, keys, scores, 1, columns, p.v.data + key * p.v.stride, p.v.stride,
               values, padded, true);
  }
  const auto write = [&](auto* all) {
    auto* const out = all + p.out_at + first * p.out_stride;
    for (std::int64_t i = 0; i < count; ++i) {
      const float inverse = sum[i] != 0 ? 1.f / sum[i] : 0.f;  // a NaN must come through
#pragma omp simd
      for (int d = 0; d < width; ++d)
        store(out + i * p.out_stride + d, values[i * padded + d] * inverse);
      p.log_sum_exp[first + i] = sum[i] > 0 ? top[i] + __builtin_logf(sum[i]) : 0.f;
    }
  };
  if (a.wide)
    write(static_cast<float*>(a.out));
  else
    write(static_cast<T*>(a.out));
}

template <class T>
void attended(const AttentionArgs& a) {
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t item = 0; item < a.item_count; ++item) {
    const AttentionItem& work = a.items[item];
    const std::int64_t keys = a.key_starts[work.sample + 1] - a.key_starts[work.sample];
    float* room = a.scratch + omp_get_thread_num() * a.scratch_stride;
    float* scratch = room + 2 * keys * round_up(a.head_dim);
    const Problem<T> p = problem<T>(a, work.sample, work.head, work.end - work.begin > kQ, room);
    for (std::int64_t first = work.begin; first < work.end; first += kQ)
      forward_block(a, p, first, scratch);
  }
}

// Where a thread keeps the blocks of one (sample, key head) in backward.
struct BackwardScratch {
  float *queries, *douts;         // [K, columns]: transposed
  float *scores, *dscores;        // [keys, columns]
  float *query_rows, *dout_rows;  // [columns, padded]
  float* room;                    // [2, all keys, padded]: keys and values
  float* dq;                      // [columns, padded]
  float* delta;                   // [columns]: sum of out * dout
  float *dk, *dv;                 // [all keys, padded]
};

VFM_INLINE BackwardScratch divide(float* at, std::int64_t padded, std::int64_t keys) {
  BackwardScratch s;
  s.queries = at, at += padded * kQ;
  s.douts = at, at += padded * kQ;
  s.scores = at, at += kK * kQ;
  s.dscores = at, at += kK * kQ;
  s.query_rows = at, at += padded * kQ;
  s.dout_rows = at, at += padded * kQ;
  s.dq = at, at += padded * kQ;
  s.delta = at, at += kQ;
  s.dk = at, at += padded * keys;
  s.dv = at, at += padded * keys;
  s.room = at;
  return s;
}

// probabilities = exp(scores * scale - lse); dscores = probabilities * (dscores - delta).
void soften_back(float* scores, float* dscores, float scale, std::int64_t keys,
                 std::int64_t columns, const float* log_sum_exp, const float* delta) {
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t i = 0; i < columns; i += kWidth) {
      float* score = scores + j * columns + i;
      float* dscore = dscores + j * columns + i;
      const Native probability =
          exp_of_negative(load_as<Native>(score) * scale - load_as<Native>(log_sum_exp + i));
      store(score, probability);
      store(dscore, probability * (load_as<Native>(dscore) - load_as<Native>(delta + i)));
    }
}

template <class T>
void backward_block(const AttentionArgs& a, const Problem<T>& p, std::int64_t first,
                    const BackwardScratch& s) {
  const int width = a.head_dim;
  const std::int64_t padded = round_up(width);
  const std::int64_t count = least(kQ, p.queries - first), columns = round_up(count);
  const T* q = p.q + first * a.q_stride;
  const T* out = static_cast<const T*>(a.out) + p.out_at + first * p.out_stride;
  const T* dout = static_cast<const T*>(a.dout) + p.out_at + first * p.out_stride;
  transpose(q, a.q_stride, count, columns, width, s.queries);
  transpose(dout, p.out_stride, count, columns, width, s.douts);
  const bool copy = p.keys > kK;
  const Rows query_rows = rows_of(q, a.q_stride, count, width, copy, s.query_rows);
  const Rows dout_rows = rows_of(dout, p.out_stride, count, width, copy, s.dout_rows);
  float lse[kQ];
  for (std::int64_t i = 0; i < columns; ++i) {
    lse[i] = i < count ? p.log_sum_exp[first + i] : 1e30f;  // padding: probability zero
    s.delta[i] = i >= count ? 0 : sum_lanes(width, [&](auto v, std::int64_t d) {
      using V = decltype(v);
      v = load_as<V>(out + i * p.out_stride + d) * load_as<V>(dout + i * p.out_stride + d);
      return v;
    });
  }
  for (std::int64_t i = 0; i < columns * padded; ++i)
    s.dq[i] = 0;
  const std::int64_t shift = p.keys - p.queries;
  const std::int64_t seen = a.causal ? least(p.keys, first + count + shift) : p.keys;
  for (std::int64_t key = 0; key < seen; key += kK) {
    const std::int64_t keys = least(kK, seen - key);
    const float* k = p.k.data + key * p.k.stride;
    block_gemm(keys, columns, width, k, p.k.stride, 1, s.queries, columns, s.scores, columns,
               false);
    block_gemm(keys, columns, width, p.v.data + key * p.v.stride, p.v.stride, 1, s.douts, columns,
               s.dscores, columns, false);
    if (a.causal && key + keys - 1 > first + shift)
      mask(s.scores, columns, key, keys, first, shift);
    soften_back(s.scores, s.dscores, a.scale, keys, columns, lse, s.delta);
    block_gemm(keys, padded, count, s.scores, columns, 1, dout_rows.data, dout_rows.stride,
               s.dv + key * padded, padded, true);
    block_gemm(keys, padded, count, s.dscores, columns, 1, query_rows.data, query_rows.stride,
               s.dk + key * padded, padded, true);
    block_gemm(count, padded, keys, s.dscores, 1, columns, k, p.k.stride, s.dq, padded, true);
  }
  T* dq = static_cast<T*>(a.dq) + p.q_at + first * a.q_stride;
  for (std::int64_t i = 0; i < count; ++i)
#pragma omp simd
    for (int d = 0; d < width; ++d)
      store(dq + i * a.q_stride + d, s.dq[i * padded + d] * a.scale);
}

// A thread does a whole (sample, key head), so the sums over queries have one owner and one order.
template <class T>
void attended_back(const AttentionArgs& a) {
  const std::int64_t padded = round_up(a.head_dim);
  const int group = a.heads / a.key_heads;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t item = 0; item < a.samples * a.key_heads; ++item) {
    const std::int64_t sample = item / a.key_heads;
    const int key_head = static_cast<int>(item % a.key_heads);
    const std::int64_t keys = a.key_starts[sample + 1] - a.key_starts[sample];
    const BackwardScratch s =
        divide(a.scratch + omp_get_thread_num() * a.scratch_stride, padded, keys);
    for (std::int64_t i = 0; i < keys * padded; ++i)
      s.dk[i] = 0, s.dv[i] = 0;
    Problem<T> p{};
    p.queries = a.query_starts[sample + 1] - a.query_starts[sample];
    for (int member = 0; member < group; ++member) {
      p = problem<T>(a, sample, key_head * group + member, p.queries > kQ, s.room);
      for (std::int64_t first = 0; first < p.queries; first += kQ)
        backward_block(a, p, first, s);
    }
    T* dk = static_cast<T*>(a.dk) + p.kv_at;
    T* dv = static_cast<T*>(a.dv) + p.kv_at;
    for (std::int64_t j = 0; j < keys; ++j)
#pragma omp simd
      for (int d = 0; d < a.head_dim; ++d) {
        store(dk + j * a.kv_stride + d, s.dk[j * padded + d] * a.scale);
        store(dv + j * a.kv_stride + d, s.dv[j * padded + d]);
      }
  }
}

}  // namespace

void attention_forward(const AttentionArgs& args) {
  by_type(args.type, [&](auto type) { attended<decltype(type)>(args); });
}

void attention_backward(const AttentionArgs& args) {
  by_type(args.type, [&](auto type) { attended_back<decltype(type)>(args); });
}

}  // namespace vfm::ops::VFM_ISA
