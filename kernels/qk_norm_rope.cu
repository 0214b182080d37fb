// How the work is shared: the two halves of a head are `group` = 1, 2, 4, ... 32 threads wide, each
// of which has 16 bytes of either half, so that an element and the one it is rotated with are in
// one thread. A group takes a unit, several heads of one kind of a token, whose loads are all
// started before the first is used; a block has units of one kind only, whose weight stays in
// registers.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>

#include "common/launch.cuh"
#include "common/pack.cuh"
#include "qk_norm_rope.h"

namespace vfm::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kMostDim = 256;
constexpr int kForwardHeads = 4, kBackwardHeads = 2;  // of a unit
constexpr int kBackwardUnits = 4;                     // of a group, whose sums are kept together
constexpr int kReduceRows = 32;

enum Kind { kQuery, kKey, kValue };

// What a kernel does with angles: nothing, or it turns an element of the low half of a head with
// one of the high half, or neighbours with each other.
constexpr int kStay = 0, kHalves = 1, kPairs = 2;

// What a thread does in its block.
struct Share {
  int half, log_group;
  int pair, count;        // its part of a half: the first element and how many
  int first_head, heads;  // of the block's kind
  unsigned slices, units;
  float inverse_dim, epsilon;
  const float* weight;
};

constexpr unsigned slices_of(int heads, int unit_heads) {
  return static_cast<unsigned>((heads + unit_heads - 1) / unit_heads);
}

template <class T>
__device__ __forceinline__ Share share_of(const QkNormRope& c, int log_group, int unit_heads) {
  const int kind = static_cast<int>(blockIdx.y);
  Share s;
  s.half = c.head_dim / 2;
  s.log_group = log_group;
  s.pair = static_cast<int>(threadIdx.x & ((1u << log_group) - 1)) * kPack<T>;
  s.count = min(max(s.half - s.pair, 0), kPack<T>);
  s.heads = kind == kQuery ? c.query_heads : kind == kKey ? c.key_heads : c.value_heads;
  s.first_head = kind == kQuery ? 0 : kind == kKey ? c.query_heads : c.query_heads + c.key_heads;
  s.weight = kind == kQuery ? c.query_weight : c.key_weight;
  s.slices = slices_of(s.heads, unit_heads);
  s.units = s.slices * static_cast<unsigned>(c.tokens);
  s.epsilon = c.epsilon;
  s.inverse_dim = 1.f / static_cast<float>(c.head_dim);
  return s;
}

// A unit's heads are `slices` apart, so that groups side by side read heads side by side.
struct Unit {
  std::int64_t token, at;  // at: the thread's first element in the first head
  int step;                // elements from one head to the next
  int heads;
};

__device__ __forceinline__ Unit unit_of(const QkNormRope& c, const Share& s, unsigned turn) {
  const unsigned index = (turn << (8 - s.log_group)) + (threadIdx.x >> s.log_group);
  static_assert(kThreads == 1 << 8);
  if (index >= s.units) return {0, 0, 0, 0};
  const unsigned token = index / s.slices, slice = index % s.slices;
  const std::int64_t row = std::int64_t{token} * (c.query_heads + c.key_heads + c.value_heads);
  return {token, (row + s.first_head + slice) * c.head_dim + s.pair,
          static_cast<int>(s.slices) * c.head_dim,
          static_cast<int>((static_cast<unsigned>(s.heads) - slice + s.slices - 1) / s.slices)};
}

// Whether the whole block has nothing to do, because there are more heads of another kind.
__device__ __forceinline__ bool beyond(const Share& s, unsigned turns) {
  return (blockIdx.x * turns << (8 - s.log_group)) >= s.units;
}

// The heads of a unit as they are in memory.
template <class T, bool kVector, int kHeads>
struct Heads {
  uint4 low[kHeads], high[kHeads];

  __device__ __forceinline__ void load(const void* x, const Share& s, const Unit& unit) {
#pragma unroll
    for (int j = 0; j < kHeads; ++j) {
      const T* p = static_cast<const T*>(x) + unit.at + j * unit.step;
      const int count = j < unit.heads ? s.count : 0;
      low[j] = load_pack<T, kVector>(p, count);
      high[j] = load_pack<T, kVector>(p + s.half, count);
    }
  }
  __device__ __forceinline__ void store(void* y, const Share& s, const Unit& unit) const {
#pragma unroll
    for (int j = 0; j < kHeads; ++j) {
      T* p = static_cast<T*>(y) + unit.at + j * unit.step;
      const int count = j < unit.heads ? s.count : 0;
      store_pack<T, kVector>(p, low[j], count);
      store_pack<T, kVector>(p + s.half, high[j], count);
    }
  }
};

// The sum over the threads of a group.
__device__ __forceinline__ float group_sum(float v, int log_group) {
  for (int step = 1 << log_group >> 1; step > 0; step >>= 1)
    v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}

// The first `count` of kCount angles, followed by zeros.
template <bool kVector, int kCount>
__device__ __forceinline__ void load_few(const float* p, int count, float (&v)[kCount]) {
  if constexpr (kCount % 4 == 0) {
    load_floats<kVector>(p, count, v);
  } else {
    static_assert(kCount == 2);
    float2 two = {0, 0};
    if constexpr (kVector) {
      if (count > 0) two = *reinterpret_cast<const float2*>(p);
    } else {
      if (count > 0) two.x = p[0];
      if (count > 1) two.y = p[1];
    }
    v[0] = two.x, v[1] = two.y;
  }
}

// The thread's part of a table of a token's angles. Of pairs, first those of its low elements, then
// those of its high ones.
template <bool kVector, int kTurn, int P>
__device__ __forceinline__ void load_angles(const float* table, const Share& s, std::int64_t token,
                                            float (&v)[P]) {
  if constexpr (kTurn == kHalves) {
    load_floats<kVector>(table + token * s.half + s.pair, s.count, v);
  } else if constexpr (kTurn == kPairs) {
    float low[P / 2], high[P / 2];
    const float* p = table + token * s.half + s.pair / 2;
    load_few<kVector>(p, s.count / 2, low);
    load_few<kVector>(p + s.half / 2, s.count / 2, high);
#pragma unroll
    for (int i = 0; i < P / 2; ++i)
      v[i] = low[i], v[P / 2 + i] = high[i];
  }
}

// Turns the neighbours in half a thread's elements by the angles from `first` on.
template <int P>
__device__ __forceinline__ void turn_pairs(float (&v)[P], const float (&cosines)[P],
                                           const float (&sines)[P], int first) {
#pragma unroll
  for (int i = 0; i < P; i += 2) {
    const float a = v[i], b = v[i + 1], c = cosines[first + i / 2], s = sines[first + i / 2];
    v[i] = a * c - b * s;
    v[i + 1] = b * c + a * s;
  }
}

template <int P>
__device__ __forceinline__ void negate(float (&v)[P]) {
#pragma unroll
  for (int i = 0; i < P; ++i)
    v[i] = -v[i];
}

template <int kCount>
__device__ __forceinline__ float inverse_rms(const float (&low)[kCount],
                                             const float (&high)[kCount], const Share& s) {
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    squares += low[i] * low[i] + high[i] * high[i];
  squares = group_sum(squares, s.log_group);
  return rsqrtf(squares * s.inverse_dim + s.epsilon);
}

template <class T, bool kVector, int kTurn, bool kNorm>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(const QkNormRopeForward c, int log_group) {
  constexpr int P = kPack<T>;
  const Share share = share_of<T>(c, log_group, kForwardHeads);
  if (beyond(share, 1)) return;
  const Unit unit = unit_of(c, share, blockIdx.x);
  Heads<T, kVector, kForwardHeads> heads;
  heads.load(c.x, share, unit);
  if (blockIdx.y == kValue) {
    heads.store(c.y, share, unit);
    return;
  }
  float w1[P], w2[P], cosines[P], sines[P];
  if constexpr (kNorm) {
    load_floats<kVector>(share.weight + share.pair, share.count, w1);
    load_floats<kVector>(share.weight + share.half + share.pair, share.count, w2);
  }
  load_angles<kVector, kTurn>(c.cosines, share, unit.token, cosines);
  load_angles<kVector, kTurn>(c.sines, share, unit.token, sines);
  if constexpr (!kNorm) {
    if (c.back) negate(sines);
  }
#pragma unroll
  for (int j = 0; j < kForwardHeads; ++j) {
    float low[P], high[P];
    unpack(heads.low[j], low);
    unpack(heads.high[j], high);
    float r = 1;
    if constexpr (kNorm) r = inverse_rms(low, high, share);
#pragma unroll
    for (int i = 0; i < P; ++i) {
      if constexpr (kNorm) low[i] = low[i] * r * w1[i], high[i] = high[i] * r * w2[i];
      if constexpr (kTurn == kHalves) {
        const float first = low[i], second = high[i];
        low[i] = first * cosines[i] - second * sines[i];
        high[i] = second * cosines[i] + first * sines[i];
      }
    }
    if constexpr (kTurn == kPairs) {
      turn_pairs(low, cosines, sines, 0);
      turn_pairs(high, cosines, sines, P / 2);
    }
    heads.low[j] = pack(low);
    heads.high[j] = pack(high);
  }
  heads.store(c.y, share, unit);
}

// dx of one head in place of dy (low and high), and its part of the weight's sums. Where a head is
// missing (not live) there are zeros, whose products are not zero if epsilon is 0.
template <int P>
__device__ __forceinline__ void head_backward(float (&low)[P], float (&high)[P], float (&x1)[P],
                                              float (&x2)[P], const float (&w1)[P],
                                              const float (&w2)[P], float (&sum1)[P],
                                              float (&sum2)[P], const Share& s, bool live) {
  const float r = inverse_rms(x1, x2, s);
  float product = 0;
#pragma unroll
  for (int i = 0; i < P; ++i) {
    x1[i] *= r, x2[i] *= r;
    if (live) sum1[i] += low[i] * x1[i], sum2[i] += high[i] * x2[i];
    low[i] *= w1[i], high[i] *= w2[i];
    product += low[i] * x1[i] + high[i] * x2[i];
  }
  product = group_sum(product, s.log_group) * s.inverse_dim;
#pragma unroll
  for (int i = 0; i < P; ++i) {
    low[i] = r * (low[i] - x1[i] * product);
    high[i] = r * (high[i] - x2[i] * product);
  }
}

// The sums of all groups of the block, to its row of partial.
template <int P>
__device__ __forceinline__ void store_sums(float (&sum1)[P], float (&sum2)[P], const Share& s,
                                           float* partial, int dim) {
  __shared__ float shared[kWarps][kMostDim];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < P; ++i)
    for (int step = 1 << s.log_group; step < 32; step *= 2) {
      sum1[i] += __shfl_xor_sync(0xffffffffu, sum1[i], step);
      sum2[i] += __shfl_xor_sync(0xffffffffu, sum2[i], step);
    }
  if (lane >> s.log_group == 0) {
#pragma unroll
    for (int i = 0; i < P; ++i)
      if (i < s.count) {
        shared[warp][s.pair + i] = sum1[i];
        shared[warp][s.half + s.pair + i] = sum2[i];
      }
  }
  __syncthreads();
  const int at = static_cast<int>(threadIdx.x);
  if (at >= dim) return;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i)
    total += shared[i][at];
  partial[at] = total;
}

template <class T, bool kVector, int kTurn>
__global__ void __launch_bounds__(kThreads, kVector ? 2 : 1)
    backward_kernel(const QkNormRopeBackward c, int log_group, int key_row) {
  constexpr int P = kPack<T>;
  const Share share = share_of<T>(c, log_group, kBackwardHeads);
  if (beyond(share, kBackwardUnits)) return;
  const unsigned first_turn = blockIdx.x * kBackwardUnits;
  const bool value = blockIdx.y == kValue;
  float w1[P] = {}, w2[P] = {}, sum1[P] = {}, sum2[P] = {};
  if (!value) {
    load_floats<kVector>(share.weight + share.pair, share.count, w1);
    load_floats<kVector>(share.weight + share.half + share.pair, share.count, w2);
  }
#pragma unroll 1
  for (unsigned turn = first_turn; turn < first_turn + kBackwardUnits; ++turn) {
    const Unit unit = unit_of(c, share, turn);
    Heads<T, kVector, kBackwardHeads> dy, x;
    dy.load(c.dy, share, unit);
    if (value) {
      dy.store(c.dx, share, unit);
      continue;
    }
    x.load(c.x, share, unit);
    float cosines[P], sines[P];
    load_angles<kVector, kTurn>(c.cosines, share, unit.token, cosines);
    load_angles<kVector, kTurn>(c.sines, share, unit.token, sines);
    if constexpr (kTurn == kPairs) negate(sines);
#pragma unroll
    for (int j = 0; j < kBackwardHeads; ++j) {
      float low[P], high[P], x1[P], x2[P];
      unpack(dy.low[j], low);
      unpack(dy.high[j], high);
      unpack(x.low[j], x1);
      unpack(x.high[j], x2);
      if constexpr (kTurn == kHalves) {
#pragma unroll
        for (int i = 0; i < P; ++i) {
          const float first = low[i], second = high[i];
          low[i] = first * cosines[i] + second * sines[i];
          high[i] = second * cosines[i] - first * sines[i];
        }
      }
      if constexpr (kTurn == kPairs) {
        turn_pairs(low, cosines, sines, 0);
        turn_pairs(high, cosines, sines, P / 2);
      }
      head_backward(low, high, x1, x2, w1, w2, sum1, sum2, share, j < unit.heads);
      dy.low[j] = pack(low);
      dy.high[j] = pack(high);
    }
    dy.store(c.dx, share, unit);
  }
  if (value || c.partial == nullptr) return;
  const std::int64_t row = std::int64_t{blockIdx.y == kKey ? key_row : 0} + blockIdx.x;
  store_sums(sum1, sum2, share, c.partial + row * c.head_dim, c.head_dim);
}

// Sums the rows of partial, those of the queries first: 32 columns a block.
__global__ void __launch_bounds__(32 * kReduceRows)
    reduce_kernel(const QkNormRopeBackward c, int query_rows, int key_rows) {
  __shared__ float shared[kReduceRows][32];
  const bool query = blockIdx.y == kQuery;
  float* out = query ? c.query_dweight : c.key_dweight;
  if (out == nullptr) return;
  const int row = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.x) * 32 + lane;
  const int begin = query ? 0 : query_rows, end = query ? query_rows : query_rows + key_rows;
  float sum = 0;
  if (column < c.head_dim) {
#pragma unroll 4
    for (int i = begin + row; i < end; i += kReduceRows)
      sum += c.partial[std::int64_t{i} * c.head_dim + column];
  }
  shared[row][lane] = sum;
  __syncthreads();
  if (row != 0 || column >= c.head_dim) return;
  float total = 0;
#pragma unroll
  for (int i = 0; i < kReduceRows; ++i)
    total += shared[i][lane];
  out[column] = total;
}

// The threads of a group: enough for half a head.
int log_group_of(const QkNormRope& c) {
  const int pack = c.type == Type::bf16 ? kPack<__nv_bfloat16> : kPack<float>;
  int result = 0;
  while ((pack << result) < c.head_dim / 2)
    ++result;
  return result;
}

// Blocks for heads of one kind, where a group takes `turns` units.
unsigned blocks_of(const QkNormRope& c, int heads, int unit_heads, int turns) {
  const std::int64_t units = slices_of(heads, unit_heads) * c.tokens;
  const std::int64_t in_block = std::int64_t{turns} * (kThreads >> log_group_of(c));
  return static_cast<unsigned>((units + in_block - 1) / in_block);
}

bool normed(const QkNormRope& c) {
  return c.query_weight || c.key_weight;
}

bool valid(const QkNormRope& c) {
  const int step = c.pairs && c.cosines ? 4 : 2;
  if (!normed(c) && !c.cosines && (c.query_heads > 0 || c.key_heads > 0)) return false;
  const std::int64_t heads = std::int64_t{c.query_heads} + c.key_heads + c.value_heads;
  return c.tokens >= 0 && c.query_heads >= 0 && c.key_heads >= 0 && c.value_heads >= 0 &&
         c.head_dim > 0 && c.head_dim % step == 0 && c.head_dim <= kMostDim &&
         (heads == 0 || c.tokens <= 0x7fffffff / heads) &&
         (!normed(c) || c.query_heads == 0 || c.query_weight) &&
         (!normed(c) || c.key_heads == 0 || c.key_weight) &&
         (c.cosines != nullptr) == (c.sines != nullptr);
}

// Whether 16 bytes may be read at once everywhere.
bool vectors(const QkNormRope& c, const void* a, const void* b, const void* d) {
  const int pack = c.type == Type::bf16 ? kPack<__nv_bfloat16> : kPack<float>;
  return aligned_to_16(a, b, d, c.query_weight, c.key_weight, c.cosines, c.sines) &&
         c.head_dim / 2 % pack == 0;
}

int turn_of(const QkNormRope& c) {
  return c.cosines == nullptr ? kStay : c.pairs ? kPairs : kHalves;
}

template <class T>
int forward(const QkNormRopeForward& c, dim3 blocks, cudaStream_t stream) {
  void (*const norms[2][3])(QkNormRopeForward, int) = {
      {forward_kernel<T, false, kStay, true>, forward_kernel<T, false, kHalves, true>,
       forward_kernel<T, false, kPairs, true>},
      {forward_kernel<T, true, kStay, true>, forward_kernel<T, true, kHalves, true>,
       forward_kernel<T, true, kPairs, true>}};
  void (*const bare[2][2])(QkNormRopeForward, int) = {
      {forward_kernel<T, false, kHalves, false>, forward_kernel<T, false, kPairs, false>},
      {forward_kernel<T, true, kHalves, false>, forward_kernel<T, true, kPairs, false>}};
  const int vector = vectors(c, c.x, c.y, nullptr), turn = turn_of(c);
  const auto kernel =
      normed(c) || turn == kStay ? norms[vector][turn] : bare[vector][turn - kHalves];
  return launch(kernel, blocks, kThreads, 0, stream, c, log_group_of(c));
}

template <class T>
int backward(const QkNormRopeBackward& c, dim3 blocks, int key_row, cudaStream_t stream) {
  void (*const kernels[2][3])(QkNormRopeBackward, int, int) = {
      {backward_kernel<T, false, kStay>, backward_kernel<T, false, kHalves>,
       backward_kernel<T, false, kPairs>},
      {backward_kernel<T, true, kStay>, backward_kernel<T, true, kHalves>,
       backward_kernel<T, true, kPairs>}};
  return launch(kernels[vectors(c, c.x, c.dy, c.dx)][turn_of(c)], blocks, kThreads, 0, stream, c,
                log_group_of(c), key_row);
}

// Blocks of backward for heads of one kind; also rows of partial.
unsigned backward_blocks(const QkNormRope& c, int heads) {
  return blocks_of(c, heads, kBackwardHeads, kBackwardUnits);
}

}  // namespace

int qk_norm_rope_forward(const QkNormRopeForward& call, CUstream_st* stream) {
  if (!valid(call) || (call.back && normed(call))) return cudaErrorInvalidValue;
  const int heads = std::max({call.query_heads, call.key_heads, call.value_heads});
  // Values are a kind of their own, so that they can be left out.
  const bool copied = call.values && call.x != call.y;
  const int most = copied ? heads : std::max(call.query_heads, call.key_heads);
  const dim3 blocks(blocks_of(call, most, kForwardHeads, 1), copied ? 3 : 2);
  return call.type == Type::bf16 ? forward<__nv_bfloat16>(call, blocks, stream)
                                 : forward<float>(call, blocks, stream);
}

std::int64_t qk_norm_rope_partials(const QkNormRopeBackward& call) {
  if (!valid(call) || (!call.query_dweight && !call.key_dweight)) return 0;
  return (std::int64_t{backward_blocks(call, call.query_heads)} +
          backward_blocks(call, call.key_heads)) *
         call.head_dim;
}

int qk_norm_rope_backward(const QkNormRopeBackward& call, CUstream_st* stream) {
  const bool sums = call.query_dweight || call.key_dweight;
  if (!normed(call) && call.query_heads + call.key_heads > 0) {
    QkNormRopeForward turn;
    static_cast<QkNormRope&>(turn) = call;
    turn.x = call.dy, turn.y = call.dx, turn.back = true;
    return sums ? int{cudaErrorInvalidValue} : qk_norm_rope_forward(turn, stream);
  }
  if (!valid(call) || (!call.partial && qk_norm_rope_partials(call) > 0))
    return cudaErrorInvalidValue;
  QkNormRopeBackward c = call;
  if (!sums) c.partial = nullptr;
  const bool in_place = c.dx == c.dy;
  const auto query_rows = static_cast<int>(backward_blocks(c, c.query_heads));
  const auto key_rows = static_cast<int>(backward_blocks(c, c.key_heads));
  const int value_rows = in_place ? 0 : static_cast<int>(backward_blocks(c, c.value_heads));
  const dim3 blocks(static_cast<unsigned>(std::max({query_rows, key_rows, value_rows})),
                    in_place ? 2 : 3);
  const int status = c.type == Type::bf16 ? backward<__nv_bfloat16>(c, blocks, query_rows, stream)
                                          : backward<float>(c, blocks, query_rows, stream);
  if (status != cudaSuccess || !sums) return status;
  const dim3 columns(static_cast<unsigned>((c.head_dim + 31) / 32), 2);
  return launch(reduce_kernel, columns, 32 * kReduceRows, 0, stream, c, query_rows, key_rows);
}

}  // namespace vfm::kernels
