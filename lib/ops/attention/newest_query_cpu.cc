// A text and a key head at a time, with all heads that it serves: its keys are read once for the
// scores of all, its values once for all sums.
// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/newest_query_kernels.h"
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
void newest_values(const float* scores, std::int64_t most, const float* factors, const T* values,
                   std::int64_t stride, std::int64_t seen, int group, int head_dim, float* out) {
  for (int i = 0; i < group * head_dim; ++i)
    out[i] = 0;
  for (std::int64_t j = 0; j < seen; ++j) {
    const T* const value = values + j * stride;
    fetch_later_row(value, stride, head_dim);
    for (int g = 0; g < group; ++g) {
      const float weight = scores[g * most + j];
      float* const to = out + g * head_dim;
      for_lanes(head_dim, [&](auto lanes, std::int64_t d) {
        using V = decltype(lanes);
        store(to + d, load_as<V>(to + d) + weight * load_as<V>(value + d));
      });
    }
  }
  for (int g = 0; g < group; ++g)
    for (int d = 0; d < head_dim; ++d)
      out[g * head_dim + d] *= factors[g];
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
    newest_values(scores, a.most, factors, keys + a.key_heads * a.head_dim, stride, seen, group,
                  a.head_dim, a.out + head * a.head_dim);
  }
}

}  // namespace

void newest_query(const NewestQueryArgs& args) {
  by_type(args.type, [&](auto t) { newest_of<decltype(t)>(args); });
}

}  // namespace vfm::ops::VFM_ISA
