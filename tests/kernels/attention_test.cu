// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#include "attention.h"
#include "attention_reference.h"
#include "kernel_test.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

// Fills in what the kernels make. `wide`: the output in f32, too, and nothing but that and the
// log-sum-exp.
template <class T>
void run_kernels(const Case& c, Values<T>& v, std::vector<float>* wide = nullptr) {
  const Layout at(c);
  const AttentionWork work = attention_work(c.queries, c.keys, c.causal);
  const DeviceArray<AttentionItem> query_items(work.query_items), key_items(work.key_items);
  const DeviceArray<T> q(v.q), kv(v.kv), dout(v.dout), out(v.dout.size()), dq(v.q.size()),
      dkv(v.kv.size());
  const DeviceArray<float> lse(at.rows * c.heads), row_sums(2 * at.rows * c.heads);
  Attention call;
  call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  call.causal = c.causal;
  call.heads = c.heads, call.key_heads = c.key_heads, call.head_dim = c.head_dim;
  call.scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
  call.queries = at.rows;
  call.query_items = query_items.get(), call.key_items = key_items.get();
  call.query_item_count = static_cast<std::int64_t>(work.query_items.size());
  call.key_item_count = static_cast<std::int64_t>(work.key_items.size());
  const T* keys = c.self ? q.get() : kv.get();
  T* dkeys = c.self ? dq.get() : dkv.get();
  call.q = q.get(), call.q_stride = at.q_stride;
  call.k = keys + at.k_column, call.v = keys + at.v_column, call.kv_stride = at.kv_stride;
  call.out = out.get(), call.log_sum_exp = lse.get();
  if (wide) {
    const DeviceArray<float> wide_out(v.dout.size());
    call.out = wide_out.get(), call.wide = true;
    need(attention_forward(call, nullptr), "forward");
    *wide = wide_out.host(), v.log_sum_exp = lse.host();
    return;
  }
  need(attention_forward(call, nullptr), "forward");
  call.dout = dout.get(), call.row_sums = row_sums.get();
  call.dq = dq.get(), call.dk = dkeys + at.k_column, call.dv = dkeys + at.v_column;
  need(attention_backward(call, nullptr), "backward");
  v.out = out.host(), v.log_sum_exp = lse.host(), v.dq = dq.host(), v.dkv = dkv.host();
}

// Besides the largest difference, that of all elements together, which sees a small share missing.
template <class T>
void compare(Checker& checker, const std::string& name, const std::vector<T>& got,
             const std::vector<double>& expected, double tolerance) {
  if (expected.empty()) return;
  checker.close(name, got, expected, tolerance);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(expected[i])) continue;
    difference += std::pow(value(got[i]) - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  checker.check(name + " (norm " + std::to_string(std::sqrt(difference / size)) + ")",
                difference <= tolerance * tolerance * size);
}

std::string name_of(const Case& c, bool low) {
  return std::string(low ? "bf16" : "f32") + (c.self ? " self" : " cross") +
         (c.causal ? " causal " : " ") + std::to_string(c.heads) + "/" +
         std::to_string(c.key_heads) + " x " + std::to_string(c.head_dim) + ", " +
         std::to_string(c.queries.size()) + " samples, first " + std::to_string(c.queries[0]) +
         ": ";
}

// bf16 has 9 bits. The result is rounded once, the probabilities once, out's rounding goes into
// delta: a few times 2^-9 of the largest value. f32: sums of up to 256 products and 200 keys, and
// scores of up to 1e3 with an error of 1e-4.
template <class T>
void check_case(Checker& checker, const Case& c) {
  constexpr bool kLow = sizeof(T) == 2;
  Values<T> v = make<T>(c, 11);
  run_kernels(c, v);
  const Reference r = reference(c, v);
  const std::string name = name_of(c, kLow);
  const double fine = c.size > 1 ? 3e-4 : 4e-6;
  compare(checker, name + "out", v.out, r.out, kLow ? 6e-3 : fine);
  compare(checker, name + "log-sum-exp", v.log_sum_exp, r.log_sum_exp, 2e-6);
  compare(checker, name + "dq", v.dq, r.dq, kLow ? 1e-2 : fine);
  compare(checker, name + "dkv", v.dkv, r.dkv, kLow ? 1e-2 : fine);
}

// A part of a case: samples `begin` to `end`.
template <class T>
std::pair<Case, Values<T>> part(const Case& c, const Values<T>& v, std::size_t begin,
                                std::size_t end) {
  const Layout at(c);
  Case few = c;
  few.queries = Lengths(c.queries.begin() + begin, c.queries.begin() + end);
  few.keys = Lengths(c.keys.begin() + begin, c.keys.begin() + end);
  const std::int64_t q0 = total(Lengths(c.queries.begin(), c.queries.begin() + begin));
  const std::int64_t k0 = total(Lengths(c.keys.begin(), c.keys.begin() + begin));
  const std::int64_t q1 = q0 + total(few.queries), k1 = k0 + total(few.keys);
  const auto cut = [](const auto& all, std::int64_t from, std::int64_t to) {
    return all.empty() ? all : std::decay_t<decltype(all)>(all.begin() + from, all.begin() + to);
  };
  Values<T> some;
  some.q = cut(v.q, q0 * at.q_stride, q1 * at.q_stride);
  some.dq = cut(v.dq, q0 * at.q_stride, q1 * at.q_stride);
  some.kv = cut(v.kv, k0 * at.kv_stride, k1 * at.kv_stride);
  some.dkv = cut(v.dkv, k0 * at.kv_stride, k1 * at.kv_stride);
  some.out = cut(v.out, q0 * at.out_stride, q1 * at.out_stride);
  some.dout = cut(v.dout, q0 * at.out_stride, q1 * at.out_stride);
  for (int head = 0; head < c.heads; ++head)
    for (std::int64_t i = q0; i < q1 && !v.log_sum_exp.empty(); ++i)
      some.log_sum_exp.push_back(v.log_sum_exp[head * at.rows + i]);
  return {few, some};
}

template <class A>
bool same_bits(const std::vector<A>& a, const std::vector<A>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(A)) == 0);
}

// The middle one of three samples gets the same bits alone as between two that are full of NaN,
// which come through where they belong.
template <class T>
void check_neighbours(Checker& checker, const Case& c) {
  Values<T> all = make<T>(c, 23);
  auto [alone, expected] = part(c, all, 1, 2);
  run_kernels(alone, expected);
  const Layout at(c);
  const auto poison = [&](std::vector<T>& values, const Lengths& lengths, std::int64_t stride) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i)
      if (i < lengths[0] * stride || i >= (lengths[0] + lengths[1]) * stride)
        values[i] = T(std::numeric_limits<float>::quiet_NaN());
  };
  poison(all.q, c.queries, at.q_stride);
  poison(all.kv, c.keys, at.kv_stride);
  poison(all.dout, c.queries, at.out_stride);
  run_kernels(c, all);
  const Values<T> got = part(c, all, 1, 2).second, first = part(c, all, 0, 1).second;
  const std::string name = name_of(c, sizeof(T) == 2);
  checker.check(name + "out among others", same_bits(got.out, expected.out));
  checker.check(name + "lse among others", same_bits(got.log_sum_exp, expected.log_sum_exp));
  checker.check(name + "dq among others", same_bits(got.dq, expected.dq));
  checker.check(name + "dkv among others", same_bits(got.dkv, expected.dkv));
  const auto all_nan = [](const auto& values) {
    return std::ranges::all_of(values, [](auto u) { return std::isnan(value(u)); });
  };
  checker.check(name + "NaN comes through",
                all_nan(first.out) && all_nan(first.dq) && all_nan(first.dkv));
}

// In f32 the output is what rounds to that in bf16, to the bit, and not rounded.
void check_wide(Checker& checker, const Case& c) {
  using bf16 = __nv_bfloat16;
  Values<bf16> v = make<bf16>(c, 29);
  run_kernels(c, v);
  Values<bf16> again = v;
  std::vector<float> wide;
  run_kernels(c, again, &wide);
  bool same = wide.size() == v.out.size();
  std::size_t finer = 0;
  for (std::size_t i = 0; same && i < wide.size(); ++i) {
    same = value(bf16(wide[i])) == value(v.out[i]);
    finer += wide[i] != static_cast<float>(value(v.out[i])) ? 1 : 0;
  }
  const std::string name = name_of(c, true);
  checker.check(name + "out in f32 rounds to that in bf16", same);
  checker.check(name + "out in f32 is not rounded", finer > wide.size() / 2);
  checker.check(name + "lse beside it", same_bits(again.log_sum_exp, v.log_sum_exp));
}

// The reference's gradients against differences of its own forward.
void check_reference(Checker& checker) {
  const Case c{.queries = {3, 2}, .keys = {4, 2}, .heads = 2, .head_dim = 4, .causal = true};
  Values<float> v = make<float>(c, 31);
  const Reference r = reference(c, v);
  const auto loss = [&] {
    double sum = 0;
    const Reference now = reference(c, v);
    for (std::size_t i = 0; i < now.out.size(); ++i)
      sum += now.out[i] * v.dout[i];
    return sum;
  };
  const auto differences = [&](std::vector<float>& of) {
    std::vector<double> result;
    for (float& element : of) {
      const float kept = element, up = kept + 1e-3f, down = kept - 1e-3f;
      element = up;
      const double above = loss();
      element = down;
      result.push_back((above - loss()) / (double{up} - down));
      element = kept;
    }
    return result;
  };
  const auto near = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      worst = std::max(worst, std::abs(a[i] - b[i]));
    return worst < 1e-5;
  };
  checker.check("reference dq", near(differences(v.q), r.dq));
  checker.check("reference dkv", near(differences(v.kv), r.dkv));
}

void check_work(Checker& checker) {
  const Lengths queries{1, 300, 0, 64}, keys{0, 300, 70, 65};
  for (const bool causal : {false, true}) {
    const AttentionWork work = attention_work(queries, keys, causal);
    checker.check("query blocks", work.query_items.size() == 1 + 3 + 0 + 1);
    checker.check("key blocks", work.key_items.size() == 0 + 5 + 2 + 2);
    const AttentionItem& heavy = work.query_items.front();
    checker.check("the heaviest first", heavy.query_start == 1 && heavy.key_start == 0 &&
                                            heavy.first == (causal ? 256 : 0) &&
                                            work.query_items.back().keys == 0);
  }
}

void check_arguments(Checker& checker) {
  Attention call;
  checker.check("no work is no error",
                attention_forward(call, nullptr) == 0 && attention_backward(call, nullptr) == 0);
  call.query_item_count = call.key_item_count = 1;
  call.heads = 4, call.key_heads = 3, call.head_dim = 64, call.scale = 1;
  checker.check("4 heads over 3", attention_forward(call, nullptr) == cudaErrorInvalidValue);
  call.key_heads = 2, call.head_dim = 257;
  checker.check("wide heads", attention_backward(call, nullptr) == cudaErrorInvalidValue);
  call.head_dim = 64, call.scale = 0;
  checker.check("scale zero", attention_backward(call, nullptr) == cudaErrorInvalidValue);
}

void time_bf16(std::int64_t tokens) {
  constexpr int kHeads = 32, kDim = 128;
  const std::int64_t width = std::int64_t{kHeads} * kDim, size = tokens * width;
  const auto some = as<__nv_bfloat16>(noise(1 << 20, 1));
  std::vector<__nv_bfloat16> many(3 * size);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = some[(i + i / some.size() * 977) % some.size()];
  const DeviceArray<__nv_bfloat16> qkv(many), out(size), dqkv(3 * size),
      dout(std::vector<__nv_bfloat16>(many.begin(), many.begin() + size));
  const DeviceArray<float> lse(tokens * kHeads), row_sums(2 * tokens * kHeads);
  const Lengths lengths{tokens};
  const AttentionWork work = attention_work(lengths, lengths, false);
  const DeviceArray<AttentionItem> query_items(work.query_items), key_items(work.key_items);
  Attention call;
  call.type = Type::bf16;
  call.heads = call.key_heads = kHeads, call.head_dim = kDim;
  call.scale = 1 / std::sqrt(static_cast<float>(kDim));
  call.queries = tokens;
  call.query_items = query_items.get(), call.key_items = key_items.get();
  call.query_item_count = static_cast<std::int64_t>(work.query_items.size());
  call.key_item_count = static_cast<std::int64_t>(work.key_items.size());
  call.q = qkv.get(), call.k = qkv.get() + width, call.v = qkv.get() + 2 * width;
  call.q_stride = call.kv_stride = 3 * width;
  call.out = out.get(), call.log_sum_exp = lse.get();
  call.dout = dout.get(), call.row_sums = row_sums.get();
  call.dq = dqkv.get(), call.dk = dqkv.get() + width, call.dv = dqkv.get() + 2 * width;
  const double flops = 4.0 * static_cast<double>(tokens) * static_cast<double>(size);
  const std::string name = " bf16, " + std::to_string(tokens) + " tokens";
  time_launch("attention forward" + name, 0, flops,
              [&] { return attention_forward(call, nullptr); });
  time_launch("attention backward" + name, 0, 2.5 * flops,
              [&] { return attention_backward(call, nullptr); });
}

// Tensor cores: few in the emulation, where every instruction costs a warp's turns.
void check_tensor_cores(Checker& checker) {
  using bf16 = __nv_bfloat16;
  // Lengths of queries and keys, heads, key heads, head dim, causal, self, padding, size.
  const std::vector<Case> cases = {
      {{1, 65}, {1, 65}, 2, 1, 64, true, true},
      {{64, 17}, {64, 17}, 4, 1, 64, false, true},
      {{130, 17}, {200, 0}, 2, 2, 64, false, false, 8},
      {{0, 20}, {66, 30}, 2, 2, 64, true, false, 8},
      {{20, 70}, {90, 10}, 1, 1, 64, true},
      {{130, 3}, {33, 70}, 1, 1, 128, false, false, 8},
      {{63, 17}, {63, 17}, 2, 1, 128, true, true},
      {{130}, {140}, 1, 1, 128, true},
      // The last key of a tile, or the first one of a diagonal's tile, is hidden alone.
      {{17, 20}, {31, 50}, 1, 1, 64, true},
      {{3, 9}, {63, 31}, 1, 1, 64},
      {{3, 9}, {63, 31}, 1, 1, 128},
      {{17}, {31}, 1, 1, 128, true},
      {{20}, {40}, 1, 1, 64, false, false, 0, 300},
      {{40}, {40}, 1, 1, 128, true, true, 0, 300},
  };
  for (const Case& c : cases)
    check_case<bf16>(checker, c);
  check_neighbours<bf16>(checker, {{3, 40, 5}, {7, 40, 70}, 1, 1, 64, true});
  check_neighbours<bf16>(checker, {{33, 70, 2}, {33, 70, 2}, 2, 1, 128, false, true});
  check_wide(checker, {{3, 40}, {7, 33}, 2, 1, 64});
  check_wide(checker, {{17}, {31}, 1, 1, 128});
  if (small()) return;
  const Lengths lengths{1, 17, 63, 64, 65, 130, 200};
  const Lengths others{200, 0, 64, 130, 65, 1, 63};
  for (const int dim : {64, 128})
    for (const bool causal : {false, true})
      for (const int key_heads : {1, 2, 4}) {
        check_case<bf16>(checker, {lengths, lengths, 4, key_heads, dim, causal, true});
        check_case<bf16>(checker, {lengths, others, 4, key_heads, dim, causal, false, 8});
        check_case<bf16>(checker, {lengths, lengths, 4, key_heads, dim, causal, true, 0, 300});
        check_neighbours<bf16>(
            checker, {{65, 200, 130}, {130, 200, 63}, 4, key_heads, dim, causal, false, 16});
      }
}

void check_simple(Checker& checker) {
  using bf16 = __nv_bfloat16;
  const std::vector<Case> cases = {
      {{1, 33}, {1, 33}, 4, 2, 16, true, true},
      {{5, 40}, {0, 34}, 4, 1, 32, false, false, 1},
      {{130, 10}, {70, 7}, 1, 1, 80, true, false, 4},
      {{17}, {40}, 2, 2, 256},
      {{0, 17}, {3, 65}, 1, 1, 7, false, false, 0, 300},
  };
  for (const Case& c : cases)
    check_case<float>(checker, c);
  check_case<bf16>(checker, {{17, 3}, {17, 3}, 2, 2, 80, true, true});
  check_case<bf16>(checker, {{9}, {40}, 2, 1, 64, false, false, 3});
  check_neighbours<float>(checker, {{3, 40, 5}, {7, 35, 20}, 2, 1, 20, false});
  check_wide(checker, {{17, 3}, {17, 3}, 2, 2, 80, true, true});
  check_wide(checker, {{9}, {40}, 2, 1, 64, false, false, 3});
  if (small()) return;
  const Lengths lengths{1, 17, 63, 64, 65, 130, 200};
  const Lengths others{200, 0, 64, 130, 65, 1, 63};
  for (const int dim : {16, 32, 64, 80, 128, 256})
    for (const bool causal : {false, true})
      for (const int key_heads : {1, 2, 4}) {
        check_case<float>(checker, {lengths, lengths, 4, key_heads, dim, causal, true});
        check_case<float>(checker, {lengths, others, 4, key_heads, dim, causal, false, 5});
        check_case<bf16>(checker, {lengths, others, 4, key_heads, dim, causal, false, 5});
        check_neighbours<bf16>(
            checker, {{65, 200, 130}, {130, 200, 63}, 4, key_heads, dim, causal, false, 5});
      }
}

void tests(Checker& checker) {
  check_work(checker);
  check_arguments(checker);
  check_reference(checker);
  check_simple(checker);
  check_tensor_cores(checker);
  if (!timed()) return;
  time_bf16(8192);
  time_bf16(32768);
}

}  // namespace

int main() {
  return run(tests);
}
