// Attention on bf16, for machines that multiply bf16. The walk through the blocks is that of
// attention_cpu.cc, with scores down the keys and across the queries; here every product takes
// bf16 operands in the layout of low_gemm.h, so keys and values are first copied, padded and
// transposed, once for all the queries of a work item.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include "ops/attention/attention_bias.h"
#include "ops/attention/attention_kernels.h"
#include "ops/attention/block_gemm.h"
#include "ops/attention/low_gemm.h"
#include "ops/cpu/elementary.h"
#include "ops/cpu/row_loops.h"

namespace vfm::ops::VFM_ISA {
namespace {

typedef bf16 LowLanes __attribute__((vector_size(32), aligned(2), may_alias));

constexpr std::int64_t kQ = kQueryBlock, kK = kKeyBlock;

VFM_INLINE std::int64_t up(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}
VFM_INLINE std::int64_t least(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// One sample and head; widths in elements.
struct Head {
  const bf16 *q, *k, *v;
  std::int64_t queries, keys, keys32;  // keys32: keys rounded up
  std::int64_t width, width32;
  std::int64_t q_at, kv_at, out_at, out_stride;
  float* log_sum_exp;
  const float* bias;
};

Head head_of(const AttentionArgs& a, std::int64_t sample, int head) {
  const std::int64_t q0 = a.query_starts[sample], k0 = a.key_starts[sample];
  Head h;
  h.queries = a.query_starts[sample + 1] - q0;
  h.keys = a.key_starts[sample + 1] - k0;
  h.keys32 = up(h.keys, 32);
  h.width = a.head_dim;
  h.width32 = up(a.head_dim, 32);
  h.q_at = q0 * a.q_stride + std::int64_t{head} * a.head_dim;
  h.kv_at = k0 * a.kv_stride + std::int64_t{head / (a.heads / a.key_heads)} * a.head_dim;
  h.out_stride = std::int64_t{a.heads} * a.head_dim;
  h.out_at = q0 * h.out_stride + std::int64_t{head} * a.head_dim;
  h.q = static_cast<const bf16*>(a.q) + h.q_at;
  h.k = static_cast<const bf16*>(a.k) + h.kv_at;
  h.v = static_cast<const bf16*>(a.v) + h.kv_at;
  h.log_sum_exp = a.log_sum_exp + head * a.query_starts[a.samples] + q0;
  h.bias = bias_of(a, head);
  return h;
}

// to [rows_to, width_to] = from [rows, width], zeros around.
void copy_padded(const bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t width,
                 std::int64_t rows_to, std::int64_t width_to, bf16* to) {
  for (std::int64_t i = 0; i < rows_to; ++i)
    for (std::int64_t j = 0; j < width_to; ++j)
      to[i * width_to + j] = i < rows && j < width ? from[i * stride + j] : bf16{0};
}

// Two rows of sixteen bf16 as sixteen words, the first row in the low halves.
VFM_INLINE void store_pair(bf16* to, LowLanes first, LowLanes second) {
  const NativeBits words = __builtin_convertvector(first, NativeBits) |
                           __builtin_convertvector(second, NativeBits) << 16;
  __builtin_memcpy(to, &words, sizeof words);
}
VFM_INLINE LowLanes round_lanes(Lanes v) {
  bf16 room[16];
  store(room, v);
  return *reinterpret_cast<const LowLanes*>(room);
}

// Pairs of rows: to[(i / 2 * columns + j) * 2 + i % 2] = from[i][j]; from is padded, rows even,
// columns multiples of 16.
void pair_rows(const bf16* from, std::int64_t rows, std::int64_t columns, bf16* to) {
  for (std::int64_t i = 0; i < rows; i += 2)
    for (std::int64_t j = 0; j < columns; j += 16)
      store_pair(to + i * columns + 2 * j,
                 *reinterpret_cast<const LowLanes*>(from + i * columns + j),
                 *reinterpret_cast<const LowLanes*>(from + (i + 1) * columns + j));
}

// Pairs of columns of `from` [rows, columns], which is padded: the transpose of 32-bit words. to[(j
// / 2 * rows + i) * 2 + j % 2] = from[i][j].
void pair_columns(const bf16* from, std::int64_t rows, std::int64_t columns, bf16* to) {
  const float* words = reinterpret_cast<const float*>(from);
  for (std::int64_t i = 0; i < rows; i += 16)
    for (std::int64_t j = 0; j < columns / 2; j += 16)
      transpose_block(words + i * (columns / 2) + j, columns / 2,
                      reinterpret_cast<float*>(to) + j * rows + i, rows);
}

// to [width, rows] = transpose of from [rows, width], both padded to 32.
void transpose_low(const bf16* from, std::int64_t rows, std::int64_t width, bf16* to) {
  for (std::int64_t i = 0; i < rows; i += 16)
    for (std::int64_t j = 0; j < width; j += 16) {
      alignas(64) float wide[256], turned[256];
      for (int r = 0; r < 16; ++r)
        store(wide + 16 * r, load_as<Lanes>(from + (i + r) * width + j));
      transpose_block(wide, 16, turned, 16);
      for (int r = 0; r < 16; ++r)
        store(to + (j + r) * rows + i, load_as<Lanes>(turned + 16 * r));
    }
}

// to [rows, width] (stride) = transpose of from [width, columns] times factor[row] * scale.
template <class T>
void store_transposed(const float* from, std::int64_t columns, std::int64_t rows,
                      std::int64_t width, const float* factor, float scale, T* to,
                      std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; i += 16)
    for (std::int64_t j = 0; j < width; j += 16) {
      alignas(64) float turned[256];
      transpose_block(from + j * columns + i, columns, turned, 16);
      for (std::int64_t r = 0; r < least(16, rows - i); ++r) {
        const float by = factor ? factor[i + r] * scale : scale;
        if (j + 16 <= width) {
          store(to + (i + r) * stride + j, load_as<Lanes>(turned + 16 * r) * by);
        } else {
          for (std::int64_t c = 0; c < width - j; ++c)
            store(to + (i + r) * stride + j + c, turned[16 * r + c] * by);
        }
      }
    }
}

VFM_INLINE void hide_future(float* scores, std::int64_t columns, std::int64_t first_key,
                            std::int64_t keys, std::int64_t first_query, std::int64_t shift) {
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t i = 0; i < columns; ++i)
      if (first_key + j > first_query + i + shift) scores[j * columns + i] = -1e30f;
}

// Hands out scratch, 64-byte aligned.
struct Room {
  float* at;
  float* floats(std::int64_t n) {
    float* result = at;
    at += up(n, 16);
    return result;
  }
  bf16* lows(std::int64_t n) { return reinterpret_cast<bf16*>(floats((n + 1) / 2)); }
};

struct ForwardRoom {
  bf16 *keys, *values, *rows, *queries, *weights;
  float *scores, *sums, *top, *total, *factor;
};

ForwardRoom forward_room(float* scratch, std::int64_t width32, std::int64_t keys32) {
  Room room{scratch};
  ForwardRoom r;
  r.keys = room.lows(keys32 * width32);    // [keys, width]
  r.values = room.lows(width32 * keys32);  // [width, keys]
  r.rows = room.lows(kQ * width32);        // [queries, width]
  r.queries = room.lows(width32 * kQ);     // [width, queries], paired
  r.weights = room.lows(kK * kQ);          // [keys, queries], paired
  r.scores = room.floats(kK * kQ);         // [keys, queries]
  r.sums = room.floats(width32 * kQ);      // [width, queries]
  r.top = room.floats(kQ);
  r.total = room.floats(kQ);
  r.factor = room.floats(kQ);
  return r;
}

// Online softmax of a block of scores: weights = exp(scores * scale - top), paired, and the factor
// that what was summed before must be multiplied with. Keys beyond `keys` weigh nothing.
void soften(const ForwardRoom& r, float scale, std::int64_t keys, std::int64_t columns) {
  const std::int64_t rows = up(keys, 32);
  for (std::int64_t i = 0; i < columns; i += 16) {
    Lanes top = load_as<Lanes>(r.top + i);
    const Lanes before = top;
    for (std::int64_t j = 0; j < keys; ++j) {
      const Lanes s = load_as<Lanes>(r.scores + j * columns + i) * scale;
      top = s > top ? s : top;
    }
    store(r.top + i, top);
    const Lanes factor = exp_of_negative(before - top);
    store(r.factor + i, factor);
    Lanes total = load_as<Lanes>(r.total + i) * factor;
    for (std::int64_t j = 0; j < rows; j += 2) {
      Lanes first{}, second{};
      if (j < keys)
        first = exp_of_negative(load_as<Lanes>(r.scores + j * columns + i) * scale - top);
      if (j + 1 < keys)
        second = exp_of_negative(load_as<Lanes>(r.scores + (j + 1) * columns + i) * scale - top);
      total += first + second;
      store_pair(r.weights + j * columns + 2 * i, round_lanes(first), round_lanes(second));
    }
    store(r.total + i, total);
  }
}

void forward_block(const AttentionArgs& a, const Head& h, std::int64_t first,
                   const ForwardRoom& r) {
  const std::int64_t count = least(kQ, h.queries - first), columns = up(count, 16);
  copy_padded(h.q + first * a.q_stride, a.q_stride, count, h.width, columns, h.width32, r.rows);
  pair_columns(r.rows, columns, h.width32, r.queries);
  for (std::int64_t i = 0; i < columns; ++i)
    r.top[i] = -1e30f, r.total[i] = 0;
  for (std::int64_t i = 0; i < h.width32 * columns; ++i)
    r.sums[i] = 0;
  const std::int64_t shift = h.keys - h.queries;
  const std::int64_t seen = a.causal ? least(h.keys, first + count + shift) : h.keys;
  for (std::int64_t key = 0; key < seen; key += kK) {
    const std::int64_t keys = least(kK, seen - key), rows = up(keys, 32);
    low_gemm(rows, columns, h.width32, r.keys + key * h.width32, h.width32, r.queries, columns,
             r.scores, columns, false);
    if (a.causal && key + keys - 1 > first + shift)
      hide_future(r.scores, columns, key, keys, first, shift);
    if (h.bias) add_bias(h.bias, r.scores, columns, key, keys, first, count);
    soften(r, a.scale, keys, columns);
    if (key > 0)
      for (std::int64_t d = 0; d < h.width32; ++d)
        for (std::int64_t i = 0; i < columns; ++i)
          r.sums[d * columns + i] *= r.factor[i];
    low_gemm(h.width32, columns, rows, r.values + key, h.keys32, r.weights, columns, r.sums,
             columns, true);
  }
  for (std::int64_t i = 0; i < columns; ++i) {
    if (i < count)
      h.log_sum_exp[first + i] = r.total[i] > 0 ? r.top[i] + __builtin_logf(r.total[i]) : 0.f;
    // NaN must come through as NaN, an empty sum as zero.
    r.total[i] = r.total[i] != 0 ? 1.f / r.total[i] : 0.f;
  }
  const std::int64_t at = h.out_at + first * h.out_stride;
  if (a.wide)
    store_transposed(r.sums, columns, count, h.width, r.total, 1.f, static_cast<float*>(a.out) + at,
                     h.out_stride);
  else
    store_transposed(r.sums, columns, count, h.width, r.total, 1.f, static_cast<bf16*>(a.out) + at,
                     h.out_stride);
}

struct BackwardRoom {
  bf16 *keys, *values, *keys_turned, *rows, *queries, *douts, *query_pairs, *dout_pairs;
  bf16 *weights, *dscores, *dscore_pairs;
  float *scores, *dweights, *dq, *delta, *dk, *dv;
};

BackwardRoom backward_room(float* scratch, std::int64_t width32, std::int64_t keys32) {
  Room room{scratch};
  BackwardRoom r;
  r.keys = room.lows(keys32 * width32);         // [keys, width]
  r.values = room.lows(keys32 * width32);       // [keys, width]
  r.keys_turned = room.lows(width32 * keys32);  // [width, keys]
  r.rows = room.lows(kQ * width32);             // [queries, width]
  r.queries = room.lows(width32 * kQ);          // [width, queries], paired
  r.douts = room.lows(width32 * kQ);            // the same of the output's gradient
  r.query_pairs = room.lows(kQ * width32);      // [queries, width], paired
  r.dout_pairs = room.lows(kQ * width32);       // the same of the output's gradient
  r.weights = room.lows(kK * kQ);               // [keys, queries]
  r.dscores = room.lows(kK * kQ);               // [keys, queries]
  r.dscore_pairs = room.lows(kK * kQ);          // [keys, queries], paired
  r.scores = room.floats(kK * kQ);              // [keys, queries]
  r.dweights = room.floats(kK * kQ);            // [keys, queries]
  r.dq = room.floats(width32 * kQ);             // [width, queries]
  r.delta = room.floats(2 * kQ);                // sum of out * dout; then log-sum-exp
  r.dk = room.floats(keys32 * width32);         // [keys, width]
  r.dv = room.floats(keys32 * width32);         // [keys, width]
  return r;
}

// weights = exp(scores * scale - lse) and dscores = weights (dweights - delta), in bf16; rows
// beyond `keys` are zero.
void soften_back(const BackwardRoom& r, float scale, std::int64_t keys, std::int64_t columns) {
  const std::int64_t rows = up(keys, 32);
  const float* lse = r.delta + kQ;
  for (std::int64_t j = 0; j < rows; j += 2)
    for (std::int64_t i = 0; i < columns; i += 16) {
      Lanes weight[2] = {}, dscore[2] = {};
      for (std::int64_t k = 0; k < 2 && j + k < keys; ++k) {
        const std::int64_t at = (j + k) * columns + i;
        weight[k] =
            exp_of_negative(load_as<Lanes>(r.scores + at) * scale - load_as<Lanes>(lse + i));
        dscore[k] = weight[k] * (load_as<Lanes>(r.dweights + at) - load_as<Lanes>(r.delta + i));
      }
      for (int k = 0; k < 2; ++k) {
        store(r.weights + (j + k) * columns + i, weight[k]);
        store(r.dscores + (j + k) * columns + i, dscore[k]);
      }
      store_pair(r.dscore_pairs + j * columns + 2 * i, round_lanes(dscore[0]),
                 round_lanes(dscore[1]));
    }
}

void backward_block(const AttentionArgs& a, const Head& h, std::int64_t first,
                    const BackwardRoom& r) {
  // Queries are a depth here as well, hence 32.
  const std::int64_t count = least(kQ, h.queries - first), columns = up(count, 32);
  const bf16* out = static_cast<const bf16*>(a.out) + h.out_at + first * h.out_stride;
  const bf16* dout = static_cast<const bf16*>(a.dout) + h.out_at + first * h.out_stride;
  copy_padded(h.q + first * a.q_stride, a.q_stride, count, h.width, columns, h.width32, r.rows);
  pair_columns(r.rows, columns, h.width32, r.queries);
  pair_rows(r.rows, columns, h.width32, r.query_pairs);
  copy_padded(dout, h.out_stride, count, h.width, columns, h.width32, r.rows);
  pair_columns(r.rows, columns, h.width32, r.douts);
  pair_rows(r.rows, columns, h.width32, r.dout_pairs);
  for (std::int64_t i = 0; i < columns; ++i) {
    r.delta[kQ + i] = i < count ? h.log_sum_exp[first + i] : 1e30f;  // padding weighs nothing
    r.delta[i] = i >= count ? 0 : sum_lanes(h.width, [&](auto v, std::int64_t d) {
      using V = decltype(v);
      v = load_as<V>(out + i * h.out_stride + d) * load_as<V>(dout + i * h.out_stride + d);
      return v;
    });
  }
  for (std::int64_t i = 0; i < h.width32 * columns; ++i)
    r.dq[i] = 0;
  const std::int64_t shift = h.keys - h.queries;
  const std::int64_t seen = a.causal ? least(h.keys, first + count + shift) : h.keys;
  for (std::int64_t key = 0; key < seen; key += kK) {
    const std::int64_t keys = least(kK, seen - key), rows = up(keys, 32);
    const std::int64_t at = key * h.width32;
    low_gemm(rows, columns, h.width32, r.keys + at, h.width32, r.queries, columns, r.scores,
             columns, false);
    low_gemm(rows, columns, h.width32, r.values + at, h.width32, r.douts, columns, r.dweights,
             columns, false);
    if (a.causal && key + keys - 1 > first + shift)
      hide_future(r.scores, columns, key, keys, first, shift);
    soften_back(r, a.scale, keys, columns);
    low_gemm(rows, h.width32, columns, r.weights, columns, r.dout_pairs, h.width32, r.dv + at,
             h.width32, true);
    low_gemm(rows, h.width32, columns, r.dscores, columns, r.query_pairs, h.width32, r.dk + at,
             h.width32, true);
    low_gemm(h.width32, columns, rows, r.keys_turned + key, h.keys32, r.dscore_pairs, columns, r.dq,
             columns, true);
  }
  store_transposed(r.dq, columns, count, h.width, nullptr, a.scale,
                   static_cast<bf16*>(a.dq) + h.q_at + first * a.q_stride, a.q_stride);
}

}  // namespace

void attention_low_forward(const AttentionArgs& a) {
#pragma omp parallel
  {
    Tiles::open();
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t item = 0; item < a.item_count; ++item) {
      const AttentionItem& work = a.items[item];
      const Head h = head_of(a, work.sample, work.head);
      const ForwardRoom r =
          forward_room(a.scratch + omp_get_thread_num() * a.scratch_stride, h.width32, h.keys32);
      // The values are only wanted turned: the room of the keys is theirs first.
      copy_padded(h.v, a.kv_stride, h.keys, h.width, h.keys32, h.width32, r.keys);
      transpose_low(r.keys, h.keys32, h.width32, r.values);
      copy_padded(h.k, a.kv_stride, h.keys, h.width, h.keys32, h.width32, r.keys);
      for (std::int64_t first = work.begin; first < work.end; first += kQ)
        forward_block(a, h, first, r);
    }
    Tiles::close();
  }
}

void attention_low_backward(const AttentionArgs& a) {
  const int group = a.heads / a.key_heads;
#pragma omp parallel
  {
    Tiles::open();
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t item = 0; item < a.samples * a.key_heads; ++item) {
      const std::int64_t sample = item / a.key_heads;
      const int key_head = static_cast<int>(item % a.key_heads);
      Head h = head_of(a, sample, key_head * group);
      const BackwardRoom r =
          backward_room(a.scratch + omp_get_thread_num() * a.scratch_stride, h.width32, h.keys32);
      copy_padded(h.k, a.kv_stride, h.keys, h.width, h.keys32, h.width32, r.keys);
      copy_padded(h.v, a.kv_stride, h.keys, h.width, h.keys32, h.width32, r.values);
      transpose_low(r.keys, h.keys32, h.width32, r.keys_turned);
      for (std::int64_t i = 0; i < h.keys32 * h.width32; ++i)
        r.dk[i] = 0, r.dv[i] = 0;
      for (int member = 0; member < group; ++member) {
        h = head_of(a, sample, key_head * group + member);
        for (std::int64_t first = 0; first < h.queries; first += kQ)
          backward_block(a, h, first, r);
      }
      bf16* dk = static_cast<bf16*>(a.dk) + h.kv_at;
      bf16* dv = static_cast<bf16*>(a.dv) + h.kv_at;
      for (std::int64_t j = 0; j < h.keys; ++j)
        for_lanes(h.width, [&](auto v, std::int64_t d) {
          using V = decltype(v);
          store(dk + j * a.kv_stride + d, load_as<V>(r.dk + j * h.width32 + d) * a.scale);
          store(dv + j * a.kv_stride + d, load_as<V>(r.dv + j * h.width32 + d));
        });
    }
    Tiles::close();
  }
}

}  // namespace vfm::ops::VFM_ISA
