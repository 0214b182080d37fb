// Attention in plain double, for the test of the kernels: what a case is, how its arrays lie in
// memory, and the formula.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "kernel_test.h"

namespace vfm::test {

using Lengths = std::vector<std::int64_t>;

struct Case {
  Lengths queries, keys;
  int heads = 1, key_heads = 1, head_dim = 64;
  bool causal = false;
  bool self = false;  // q, k, v are columns of one matrix, else q is one and k, v another
  int padding = 0;    // elements behind each row that nobody may touch
  float size = 1;     // of queries, so of scores
};

inline std::int64_t total(const Lengths& lengths) {
  std::int64_t sum = 0;
  for (const std::int64_t n : lengths)
    sum += n;
  return sum;
}

// Where things lie in a case's arrays, in elements.
struct Layout {
  std::int64_t q_stride, kv_stride, k_column, v_column, q_size, kv_size, out_stride, rows;

  explicit Layout(const Case& c) : rows(total(c.queries)) {
    const std::int64_t width = std::int64_t{c.heads} * c.head_dim;
    const std::int64_t key_width = std::int64_t{c.key_heads} * c.head_dim;
    k_column = c.self ? width : 0;
    v_column = k_column + key_width;
    kv_stride = v_column + key_width + c.padding;
    q_stride = c.self ? kv_stride : width + c.padding;
    q_size = rows * q_stride;
    kv_size = total(c.keys) * kv_stride;
    out_stride = width;
  }
};

// All that goes in and comes out, T as in memory. For self-attention `kv` and `dkv` are unused.
template <class T>
struct Values {
  std::vector<T> q, kv, dout, out, dq, dkv;
  std::vector<float> log_sum_exp;
};

template <class T>
Values<T> make(const Case& c, unsigned seed) {
  const Layout at(c);
  Values<T> v;
  std::vector<float> q = noise(at.q_size, seed);
  for (std::int64_t i = 0; i < at.q_size; ++i)
    if (i % at.q_stride < at.out_stride) q[i] *= c.size;
  v.q = as<T>(q);
  if (!c.self) v.kv = as<T>(noise(at.kv_size, seed + 1));
  v.dout = as<T>(noise(at.rows * at.out_stride, seed + 2));
  return v;
}

// The formula in double, one head of one sample; what no one writes stays NaN.
struct Reference {
  std::vector<double> out, log_sum_exp, dq, dkv;
};

template <class T>
void attend(const Case& c, const Values<T>& v, std::int64_t q0, std::int64_t queries,
            std::int64_t k0, std::int64_t keys, int head, Reference& r) {
  const Layout at(c);
  const int width = c.head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const std::vector<T>& kv = c.self ? v.q : v.kv;
  std::vector<double>& dkv = c.self ? r.dq : r.dkv;
  const std::int64_t column = std::int64_t{head / (c.heads / c.key_heads)} * width;
  std::vector<double> p(keys), dp(keys);
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t q = (q0 + i) * at.q_stride + head * width;
    const std::int64_t o = (q0 + i) * at.out_stride + head * width;
    const std::int64_t seen =
        c.causal ? std::clamp<std::int64_t>(i + 1 + keys - queries, 0, keys) : keys;
    const auto k = [&](std::int64_t j) { return (k0 + j) * at.kv_stride + at.k_column + column; };
    const auto u = [&](std::int64_t j) { return (k0 + j) * at.kv_stride + at.v_column + column; };
    double top = -std::numeric_limits<double>::infinity(), sum = 0, delta = 0;
    for (std::int64_t j = 0; j < seen; ++j) {
      p[j] = dp[j] = 0;
      for (int d = 0; d < width; ++d) {
        p[j] += double{value(v.q[q + d])} * value(kv[k(j) + d]) * scale;
        dp[j] += double{value(v.dout[o + d])} * value(kv[u(j) + d]);
      }
      top = std::max(top, p[j]);
    }
    for (std::int64_t j = 0; j < seen; ++j)
      sum += p[j] = std::exp(p[j] - top);
    for (std::int64_t j = 0; j < seen; ++j)
      p[j] /= sum;
    r.log_sum_exp[head * at.rows + q0 + i] = seen > 0 ? top + std::log(sum) : 0;
    for (int d = 0; d < width; ++d) {
      r.out[o + d] = r.dq[q + d] = 0;
      for (std::int64_t j = 0; j < seen; ++j)
        r.out[o + d] += p[j] * value(kv[u(j) + d]);
      // Of `out` as it is stored: with large scores ds is a difference of nearly equal values.
      delta += value(v.dout[o + d]) * double{value(T(static_cast<float>(r.out[o + d])))};
    }
    for (int d = 0; d < width; ++d)
      for (std::int64_t j = 0; j < seen; ++j) {
        const double ds = p[j] * (dp[j] - delta) * scale;
        r.dq[q + d] += ds * value(kv[k(j) + d]);
        dkv[k(j) + d] += ds * value(v.q[q + d]);
        dkv[u(j) + d] += p[j] * value(v.dout[o + d]);
      }
  }
}

template <class T>
Reference reference(const Case& c, const Values<T>& v) {
  const Layout at(c);
  const double none = std::numeric_limits<double>::quiet_NaN();
  Reference r;
  r.out.assign(v.dout.size(), none);
  r.log_sum_exp.assign(at.rows * c.heads, none);
  r.dq.assign(v.q.size(), none);
  r.dkv.assign(v.kv.size(), none);
  std::vector<double>& dkv = c.self ? r.dq : r.dkv;
  const std::int64_t end = at.kv_stride - c.padding;
  for (std::size_t i = 0; i < dkv.size(); ++i) {
    const std::int64_t column = static_cast<std::int64_t>(i) % at.kv_stride;
    if (column >= at.k_column && column < end) dkv[i] = 0;
  }
  std::int64_t q0 = 0, k0 = 0;
  for (std::size_t s = 0; s < c.queries.size(); ++s) {
    for (int head = 0; head < c.heads; ++head)
      attend(c, v, q0, c.queries[s], k0, c.keys[s], head, r);
    q0 += c.queries[s];
    k0 += c.keys[s];
  }
  return r;
}

}  // namespace vfm::test
