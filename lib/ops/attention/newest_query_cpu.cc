// A text and a key head at a time, with all heads that it serves: its keys are read once for the
// scores of all, its values once for all sums.
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_kernels.h"
#include "ops/cpu/bytes.h"
#include "ops/cpu/elementary.h"
#include "ops/cpu/fetch_ahead.h"
#include "ops/cpu/row_loops.h"

namespace vfm::ops::VFM_ISA {
namespace {

/// Keys and values of one head are short pieces, `stride` apart.
template <class T>
VFM_INLINE void fetch_later_row(const T* row, std::int64_t stride, int head_dim) {
  const std::int64_t size = sizeof(T), each = stride * size;
  const std::int64_t rows = each < kAheadBytes ? kAheadBytes / each : 1;
  fetch_ahead(row, head_dim * size, rows * each);
}

/// scores [group, seen] of the queries q [group, head_dim]; keys are `stride` apart.
template <class T>
void newest_scores(const float* q, const T* keys, std::int64_t stride, std::int64_t seen, int group,
                   int head_dim, float scale, float* scores, std::int64_t most) {
  for (std::int64_t j = 0; j < seen; ++j) {
    const T* const key = keys + j * stride;
    fetch_later_row(key, stride, head_dim);
    for (int g = 0; g < group; ++g) {
      const float* const query = q + g * head_dim;
      scores[g * most + j] = scale * sum_lanes(head_dim, [&](auto lanes, std::int64_t d) {
                               using V = decltype(lanes);
                               return load_as<V>(query + d) * load_as<V>(key + d);
                             });
    }
  }
}

/// They become e^(score - largest); returns 1 / their sum, NaN where one is.
float newest_softmax(float* scores, std::int64_t seen) {
  float largest = scores[0];
  for (std::int64_t j = 1; j < seen; ++j)
    largest = scores[j] > largest ? scores[j] : largest;
  for (std::int64_t j = 0; j < seen; ++j)
    scores[j] = exp_f(scores[j] - largest);
  const float sum = sum_lanes(
      seen, [&](auto lanes, std::int64_t j) { return load_as<decltype(lanes)>(scores + j); });
  return 1.f / sum;
}

template <class T>
struct WeighedValues {
  const float *scores, *factors;  // [heads, most]; [heads]
  std::int64_t most;
  const T* values;  // `stride` apart
  std::int64_t stride, seen;
  int head_dim;
  float* out;  // [heads, head_dim]
};

/// `count` V of columns from d on, of G heads: their sums stay in registers.
template <int G, int count, class V, class T>
VFM_INLINE void newest_columns(const WeighedValues<T>& w, int d) {
  constexpr int kEach = sizeof(V) / sizeof(float);
  V sums[G][count] = {};
  for (std::int64_t j = 0; j < w.seen; ++j) {
    const T* const value = w.values + j * w.stride + d;
    fetch_later_row(value, w.stride, count * kEach);
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      V of_value;
      if constexpr (kEach == 1)
        of_value = load(value + i);
      else
        of_value = load_as<Native>(value + i * kEach);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g)
        sums[g][i] += w.scores[g * w.most + j] * of_value;
    }
  }
  for (int g = 0; g < G; ++g)
    for (int i = 0; i < count; ++i) {
      float* const to = w.out + g * w.head_dim + d + i * kEach;
      if constexpr (kEach == 1)
        *to = sums[g][i] * w.factors[g];
      else
        store(to, (Native)(sums[g][i] * w.factors[g]));
    }
}

template <int G, class T>
void newest_values(const WeighedValues<T>& w) {
  constexpr int kCount = kWidth == 16 ? 4 : 2;  // as many as there are registers for
  int d = 0;
  for (; d + kCount * kWidth <= w.head_dim; d += kCount * kWidth)
    newest_columns<G, kCount, FloatLanes>(w, d);
  for (; d + kWidth <= w.head_dim; d += kWidth)
    newest_columns<G, 1, FloatLanes>(w, d);
  for (; d < w.head_dim; ++d)
    newest_columns<G, 1, float>(w, d);
}

template <class T>
void newest_of(const NewestQueryArgs& a) {
  constexpr int kMostGroup = 4;  // so that a few heads already keep several processors busy
  const int served = a.heads / a.key_heads, parts = (served + kMostGroup - 1) / kMostGroup;
  const std::int64_t stride = std::int64_t{2} * a.key_heads * a.head_dim;
  const std::int64_t items = a.texts * a.key_heads * parts;
#pragma omp parallel for schedule(dynamic, 1) if (items * a.most * a.head_dim > kAlone)
  for (std::int64_t item = 0; item < items; ++item) {
    const std::int64_t text = item / (a.key_heads * parts);
    const int key_head = static_cast<int>(item / parts % a.key_heads);
    const int begin = static_cast<int>(item % parts) * kMostGroup;
    const int group = served - begin < kMostGroup ? served - begin : kMostGroup;
    const std::int64_t head = text * a.heads + key_head * served + begin;
    const T* const keys = static_cast<const T*>(a.of[text].kv) + key_head * a.head_dim;
    const std::int64_t seen = a.of[text].seen;
    float* const scores = a.scores + head * a.most;
    newest_scores(a.q + head * a.head_dim, keys, stride, seen, group, a.head_dim, a.scale, scores,
                  a.most);
    float factors[kMostGroup];
    for (int g = 0; g < group; ++g)
      factors[g] = newest_softmax(scores + g * a.most, seen);
    const WeighedValues<T> weighed{scores, factors, a.most,     keys + a.key_heads * a.head_dim,
                                   stride, seen,    a.head_dim, a.out + head * a.head_dim};
    static_assert(kMostGroup == 4);
    group == 4   ? newest_values<4>(weighed)
    : group == 3 ? newest_values<3>(weighed)
    : group == 2 ? newest_values<2>(weighed)
                 : newest_values<1>(weighed);
  }
}

}  // namespace

void newest_query(const NewestQueryArgs& args) {
  by_type(args.type, [&](auto t) { newest_of<decltype(t)>(args); });
}

}  // namespace vfm::ops::VFM_ISA
