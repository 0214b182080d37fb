// Attention with E4M3 products against the formula in double: of what the E4M3 copies hold, where
// only the probabilities' rounding is left, and of the inputs themselves.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <limits>

#include "attention_fp8.h"
#include "attention_reference.h"
#include "fp8_reference.h"
#include "kernel_test.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

using bf16 = __nv_bfloat16;

// What a part of the keys is asked for: with magnitudes that are given, results in f32.
struct Part {
  std::vector<std::uint32_t> largest;
  std::vector<float> out, log_sum_exp;
};

// Fills in the output, of the part if there is one.
void run_kernels(const Case& c, Values<bf16>& v, Part* part = nullptr) {
  const Layout at(c);
  const AttentionWork work = attention_work(c.queries, c.keys, c.causal);
  const DeviceArray<AttentionItem> query_items(work.query_items), key_items(work.key_items);
  const DeviceArray<bf16> q(v.q), kv(v.kv), out(v.dout.size());
  const std::size_t many = part != nullptr ? v.dout.size() : 0;
  const DeviceArray<float> wide(many),
      log_sum_exp(many / static_cast<std::size_t>(c.head_dim));
  const DeviceArray<std::uint32_t> largest(part != nullptr ? part->largest
                                                           : std::vector<std::uint32_t>());
  AttentionFp8 a;
  Attention& call = a.call;
  call.type = Type::bf16;
  call.causal = c.causal;
  call.heads = c.heads, call.key_heads = c.key_heads, call.head_dim = c.head_dim;
  call.scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
  call.queries = at.rows;
  call.query_items = query_items.get(), call.key_items = key_items.get();
  call.query_item_count = static_cast<std::int64_t>(work.query_items.size());
  call.key_item_count = static_cast<std::int64_t>(work.key_items.size());
  const bf16* keys = c.self ? q.get() : kv.get();
  call.q = q.get(), call.q_stride = at.q_stride;
  call.k = keys + at.k_column, call.v = keys + at.v_column, call.kv_stride = at.kv_stride;
  call.out = out.get();
  if (part != nullptr) {
    call.out = wide.get(), call.log_sum_exp = log_sum_exp.get();
    call.wide = true, a.largest = largest.get();
  }
  a.keys = total(c.keys);
  a.samples = static_cast<std::int64_t>(c.queries.size());
  const DeviceArray<unsigned char> room(static_cast<std::size_t>(attention_fp8_room(a)));
  a.room = room.get();
  need(attention_fp8_forward(a, nullptr), "forward");
  if (part == nullptr)
    v.out = out.host();
  else
    part->out = wide.host(), part->log_sum_exp = log_sum_exp.host();
}

// Of queries, keys and values, by sample.
std::vector<std::uint32_t> magnitudes(const Case& c, const Values<bf16>& v) {
  const Layout at(c);
  std::vector<std::uint32_t> largest;
  const auto add = [&](const std::vector<bf16>& x, std::int64_t first, std::int64_t rows,
                       std::int64_t stride, std::int64_t column) {
    float most = 0;
    for (std::int64_t i = first; i < first + rows; ++i)
      for (int d = 0; d < c.head_dim; ++d)
        most = std::max(most, std::abs(value(x[static_cast<std::size_t>(i * stride + column + d)])));
    largest.push_back(std::bit_cast<std::uint32_t>(most));
  };
  std::int64_t q0 = 0, k0 = 0;
  for (std::size_t s = 0; s < c.queries.size(); ++s) {
    for (int head = 0; head < c.heads; ++head)
      add(v.q, q0, c.queries[s], at.q_stride, head * c.head_dim);
    for (const std::int64_t column : {at.k_column, at.v_column})
      for (int head = 0; head < c.key_heads; ++head)
        add(c.self ? v.q : v.kv, k0, c.keys[s], at.kv_stride, column + head * c.head_dim);
    q0 += c.queries[s], k0 += c.keys[s];
  }
  return largest;
}

// Of one sample whose keys come in two parts: with the magnitudes of all of them the parts are what
// all keys are, but for f32's roundings: each weight is rounded alike in its part. And all keys in
// one part give what they give without magnitudes, to the bit.
void check_parts(Checker& checker, int head_dim, std::int64_t keys, std::int64_t in_first) {
  Case c{.queries = {70}, .keys = {keys}, .heads = 2, .key_heads = 1, .head_dim = head_dim, .size = 3};
  const Layout at(c);
  Values<bf16> v = make<bf16>(c, 17);
  run_kernels(c, v);
  Part all{magnitudes(c, v), {}, {}};
  run_kernels(c, v, &all);
  bool same = v.out.size() == all.out.size();
  for (std::size_t i = 0; same && i < v.out.size(); ++i)
    same = value(v.out[i]) == value(bf16(all.out[i]));
  const std::string name = std::to_string(keys) + " keys, head dim " + std::to_string(head_dim);
  checker.check(name + ": the same with magnitudes given, in f32", same);
  Part parts[2] = {all, all};
  const std::vector<bf16> kv = v.kv;
  for (const int i : {0, 1}) {
    c.keys = {i == 0 ? in_first : keys - in_first};
    const auto begin = kv.begin() + (i == 0 ? 0 : in_first * at.kv_stride);
    v.kv.assign(begin, begin + c.keys[0] * at.kv_stride);
    run_kernels(c, v, &parts[i]);
  }
  double worst = 0, largest = 0, apart = 0;
  for (std::size_t i = 0; i < all.out.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(2 * head_dim),
                      head = i / static_cast<std::size_t>(head_dim) % 2, at_sum = head * 70 + row;
    const double a = parts[0].log_sum_exp[at_sum], b = parts[1].log_sum_exp[at_sum];
    const double both = std::log(std::exp(a) + std::exp(b));
    const double sum =
        std::exp(a - both) * parts[0].out[i] + std::exp(b - both) * parts[1].out[i];
    worst = std::max(worst, std::abs(sum - all.out[i]));
    largest = std::max(largest, double{std::abs(all.out[i])});
    apart = std::max(apart, std::abs(both - all.log_sum_exp[at_sum]));
  }
  checker.check(name + ": parts are " + std::to_string(worst / largest) + " apart",
                worst < 1e-4 * largest);
  checker.check(name + ": log-sum-exps are " + std::to_string(apart) + " apart", apart < 1e-4);
}

// The columns of one head in the rows of one sample become what their E4M3 copies stand for.
void round_head(std::vector<float>& values, std::int64_t first, std::int64_t rows,
                std::int64_t stride, std::int64_t column, int width) {
  float largest = 0;
  const auto each = [&](auto&& body) {
    for (std::int64_t i = first; i < first + rows; ++i)
      for (int d = 0; d < width; ++d)
        body(values[static_cast<std::size_t>(i * stride + column + d)]);
  };
  each([&](float& v) { largest = std::max(largest, std::abs(v)); });
  const ReferenceScale by = fp8_scale_of(largest);
  each(
      [&](float& v) { v = static_cast<float>(fp8_value(fp8_code_of(v * by.inverse)) * by.scale); });
}

Values<float> rounded(const Case& c, const Values<bf16>& v) {
  const Layout at(c);
  const auto wide = [](const std::vector<bf16>& low) {
    std::vector<float> result;
    for (const bf16 x : low)
      result.push_back(value(x));
    return result;
  };
  Values<float> r;
  r.q = wide(v.q), r.kv = wide(v.kv), r.dout = wide(v.dout);
  std::vector<float>& kv = c.self ? r.q : r.kv;
  std::int64_t q0 = 0, k0 = 0;
  for (std::size_t s = 0; s < c.queries.size(); ++s) {
    for (int head = 0; head < c.heads; ++head)
      round_head(r.q, q0, c.queries[s], at.q_stride, head * c.head_dim, c.head_dim);
    for (int head = 0; head < c.key_heads; ++head)
      for (const std::int64_t column : {at.k_column, at.v_column})
        round_head(kv, k0, c.keys[s], at.kv_stride, column + head * c.head_dim, c.head_dim);
    q0 += c.queries[s], k0 += c.keys[s];
  }
  return r;
}

struct Apart {
  double worst = 0, norm = 0;  // as parts of the largest value, and of all values' size
};

Apart apart(const std::vector<bf16>& got, const std::vector<double>& expected) {
  double worst = 0, largest = 0, difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(value(got[i]) - expected[i]);
    worst = std::isnan(d) ? 1e30 : std::max(worst, d);
    largest = std::max(largest, std::abs(expected[i]));
    difference += d * d, size += expected[i] * expected[i];
  }
  if (size == 0) return {worst, difference};
  return {worst / largest, std::sqrt(difference / size)};
}

std::string name_of(const Case& c) {
  return std::string(c.self ? "self" : "cross") + (c.causal ? " causal " : " ") +
         std::to_string(c.heads) + "/" + std::to_string(c.key_heads) + " x " +
         std::to_string(c.head_dim) + ", " + std::to_string(c.queries.size()) + " samples, first " +
         std::to_string(c.queries[0]) + ": ";
}

// Rounding to E4M3 changes a number by at most 2^-4 of itself, by 0.026 in the mean square.
// Of the copies: a weight and the sum of the weights each change by that, so the output by at most
// 2^-3 of the largest value, and in the mean square by 0.026 sqrt(2) and bf16's 2^-9.
// Of the inputs: values add another 0.026. Scores of unit size, sums over the head dim of products
// of two rounded numbers, move by 0.026 sqrt(2), and weights as much: 0.06 in all.
void check_case(Checker& checker, const Case& c) {
  Values<bf16> v = make<bf16>(c, 11);
  run_kernels(c, v);
  const Reference of_copies = reference(c, rounded(c, v));
  const Apart copies = apart(v.out, of_copies.out);
  const Apart inputs = apart(v.out, reference(c, v).out);
  const auto told = [](const Apart& a) {
    return std::to_string(a.worst) + " worst, " + std::to_string(a.norm) + " norm";
  };
  checker.check(name_of(c) + "of the copies " + told(copies),
                copies.worst < 0.125 && copies.norm < 0.04);
  // A weight and so their sum is off by 2^-4 of itself at most.
  Part part{magnitudes(c, v), {}, {}};
  run_kernels(c, v, &part);
  double off = 0;
  for (std::size_t i = 0; i < part.log_sum_exp.size(); ++i)
    off = std::max(off, std::abs(part.log_sum_exp[i] - of_copies.log_sum_exp[i]));
  checker.check(name_of(c) + "log-sum-exp " + std::to_string(off) + " off", off < 0.065);
  if (c.size > 1) return;  // large scores turn small errors into other weights
  checker.check(name_of(c) + "of the inputs " + told(inputs),
                inputs.worst < 0.25 && inputs.norm < 0.065);
}

float at_column(const Case& c, const Values<bf16>& v, std::int64_t key, std::int64_t column) {
  const Layout at(c);
  return value((c.self ? v.q : v.kv)[static_cast<std::size_t>(key * at.kv_stride + column)]);
}

// Where nothing has to be rounded, nothing may be wrong by more than bf16's rounding: small whole
// numbers times a power of two, beside one 448 of each head so that the scale is exact.
void check_exact(Checker& checker, int dim, bool one_key) {
  const Case c{.queries = {5, 70}, .keys = {40, 150}, .heads = 2, .key_heads = 1, .head_dim = dim};
  const Layout at(c);
  Values<bf16> v = make<bf16>(c, 3);
  // Queries of zero weigh all keys alike. Else query i is 448 in the direction of key (7 i) % keys,
  // and the keys are the directions of a code whose words differ in dim / 2 places.
  for (bf16& x : v.q)
    x = bf16(0.f);
  std::int64_t k0 = 0;
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::int64_t j = 0; j < c.keys[s]; ++j)
      for (int d = 0; d < dim; ++d) {
        const auto spread = static_cast<unsigned>((j + 1) * 2654435761u) ^ 0x9e3779b9u * (d + 1);
        const bool sign = (spread * 2246822519u >> 15 & 1) != 0;
        v.kv[(k0 + j) * at.kv_stride + at.k_column + d] = bf16(sign ? -448.f : 448.f);
        const int whole = static_cast<int>((j * 31 + d * 7) % 17) - 8;
        v.kv[(k0 + j) * at.kv_stride + at.v_column + d] = bf16(j == 0 && d == 0 ? 448.f : whole);
      }
    k0 += c.keys[s];
  }
  std::vector<double> expected;
  std::int64_t q0 = 0;
  k0 = 0;
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::int64_t i = 0; i < c.queries[s]; ++i)
      for (int head = 0; head < c.heads; ++head) {
        const std::int64_t wanted = 7 * i % c.keys[s];
        for (int d = 0; d < dim; ++d) {
          if (one_key)
            v.q[(q0 + i) * at.q_stride + head * dim + d] =
                bf16(at_column(c, v, k0 + wanted, at.k_column + d));
          double sum = 0;
          for (std::int64_t j = 0; j < c.keys[s]; ++j)
            sum += at_column(c, v, k0 + j, at.v_column + d);
          expected.push_back(one_key ? at_column(c, v, k0 + wanted, at.v_column + d)
                                     : sum / static_cast<double>(c.keys[s]));
        }
      }
    q0 += c.queries[s], k0 += c.keys[s];
  }
  run_kernels(c, v);
  bool right = v.out.size() == expected.size();
  for (std::size_t i = 0; right && i < expected.size(); ++i)
    right = std::abs(value(v.out[i]) - expected[i]) <= 0x1p-8 * std::abs(expected[i]) + 1e-4;
  checker.check("exact, head dim " + std::to_string(dim) + (one_key ? ", one key" : ", all alike"),
                right);
}

// The middle one of three samples gets the same bits alone as between two that are full of NaN,
// which come through where they belong.
void check_neighbours(Checker& checker, const Case& c) {
  const Layout at(c);
  Values<bf16> all = make<bf16>(c, 23);
  const auto cut = [](const std::vector<bf16>& from, std::int64_t begin, std::int64_t end) {
    return from.empty() ? from : std::vector<bf16>(from.begin() + begin, from.begin() + end);
  };
  Case alone = c;
  alone.queries = {c.queries[1]}, alone.keys = {c.keys[1]};
  Values<bf16> middle;
  middle.q = cut(all.q, c.queries[0] * at.q_stride, (c.queries[0] + c.queries[1]) * at.q_stride);
  middle.kv = cut(all.kv, c.keys[0] * at.kv_stride, (c.keys[0] + c.keys[1]) * at.kv_stride);
  const std::int64_t begin = c.queries[0] * at.out_stride;
  const std::int64_t end = begin + c.queries[1] * at.out_stride;
  middle.dout = cut(all.dout, begin, end);
  run_kernels(alone, middle);
  const auto poison = [](std::vector<bf16>& values, const Lengths& lengths, std::int64_t stride) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i)
      if (i < lengths[0] * stride || i >= (lengths[0] + lengths[1]) * stride)
        values[static_cast<std::size_t>(i)] = bf16(std::numeric_limits<float>::quiet_NaN());
  };
  poison(all.q, c.queries, at.q_stride);
  poison(all.kv, c.keys, at.kv_stride);
  run_kernels(c, all);
  const std::vector<bf16> among = cut(all.out, begin, end);
  checker.check(name_of(c) + "among others",
                std::memcmp(among.data(), middle.out.data(), among.size() * sizeof(bf16)) == 0);
  bool nan = true;
  for (std::int64_t i = 0; i < begin; ++i)
    nan = nan && std::isnan(value(all.out[static_cast<std::size_t>(i)]));
  checker.check(name_of(c) + "NaN comes through", nan);
}

// One infinity makes NaN of its head, in its sample, and of nothing else.
void check_infinity(Checker& checker) {
  const Case c{.queries = {9, 20}, .keys = {20, 33}, .heads = 2, .key_heads = 2};
  const Layout at(c);
  Values<bf16> v = make<bf16>(c, 5);
  v.kv[(20 + 4) * at.kv_stride + at.v_column + 64 + 3] = bf16(INFINITY);
  run_kernels(c, v);
  bool right = true;
  for (std::int64_t i = 0; i < at.rows; ++i)
    for (int d = 0; d < 128; ++d)
      right = right && std::isnan(value(v.out[i * 128 + d])) == (i >= 9 && d >= 64);
  checker.check("infinity", right);
}

void check_arguments(Checker& checker) {
  AttentionFp8 a;
  checker.check("no work is no error", attention_fp8_forward(a, nullptr) == 0);
  a.call.query_item_count = a.call.key_item_count = 1;
  a.call.heads = a.call.key_heads = 2, a.call.head_dim = 32, a.call.scale = 1;
  a.call.type = Type::bf16;
  a.samples = 1;
  checker.check("head dim 32", attention_fp8_forward(a, nullptr) == cudaErrorInvalidValue);
  a.call.head_dim = 64, a.call.type = Type::f32;
  checker.check("f32", attention_fp8_forward(a, nullptr) == cudaErrorInvalidValue);
  a.call.type = Type::bf16, a.call.heads = 3;
  checker.check("3 heads over 2", attention_fp8_forward(a, nullptr) == cudaErrorInvalidValue);
}

void time_forward(std::int64_t tokens) {
  constexpr int kHeads = 32, kDim = 128;
  const std::int64_t width = std::int64_t{kHeads} * kDim, size = tokens * width;
  const auto some = as<bf16>(noise(1 << 20, 1));
  std::vector<bf16> many(3 * size);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = some[(i + i / some.size() * 977) % some.size()];
  const DeviceArray<bf16> qkv(many), out(size);
  const Lengths lengths{tokens};
  const AttentionWork work = attention_work(lengths, lengths, false);
  const DeviceArray<AttentionItem> query_items(work.query_items), key_items(work.key_items);
  AttentionFp8 a;
  a.call.type = Type::bf16;
  a.call.heads = a.call.key_heads = kHeads, a.call.head_dim = kDim;
  a.call.scale = 1 / std::sqrt(static_cast<float>(kDim));
  a.call.queries = a.keys = tokens, a.samples = 1;
  a.call.query_items = query_items.get(), a.call.key_items = key_items.get();
  a.call.query_item_count = static_cast<std::int64_t>(work.query_items.size());
  a.call.key_item_count = static_cast<std::int64_t>(work.key_items.size());
  a.call.q = qkv.get(), a.call.k = qkv.get() + width, a.call.v = qkv.get() + 2 * width;
  a.call.q_stride = a.call.kv_stride = 3 * width;
  a.call.out = out.get();
  const DeviceArray<unsigned char> room(static_cast<std::size_t>(attention_fp8_room(a)));
  a.room = room.get();
  time_launch("attention forward E4M3, " + std::to_string(tokens) + " tokens", 0,
              4.0 * static_cast<double>(tokens) * static_cast<double>(size),
              [&] { return attention_fp8_forward(a, nullptr); });
}

void tests(Checker& checker) {
  check_arguments(checker);
  // Lengths of queries and keys, heads, key heads, head dim, causal, self, padding, size.
  const std::vector<Case> cases = {
      {{70, 65}, {70, 65}, 2, 1, 64, true, true},
      {{130, 17}, {200, 0}, 2, 2, 64, false, false, 8},
      {{0, 20}, {66, 30}, 2, 2, 64, true, false, 8},
      {{130, 3}, {33, 70}, 1, 1, 128, false, false, 8},
      {{63, 17}, {63, 17}, 2, 1, 128, true, true},
      {{140}, {150}, 1, 1, 128, true},
      {{17, 20}, {31, 50}, 1, 1, 64, true},
      {{3, 9}, {63, 31}, 1, 1, 64},
      // Behind 48 keys no zeros are written: what lies there must not be read.
      {{20, 5}, {48, 16}, 1, 1, 64},
      {{20, 5}, {48, 16}, 1, 1, 128},
      {{20}, {40}, 1, 1, 64, false, false, 0, 30},
      {{40}, {40}, 1, 1, 128, true, true, 0, 30},
  };
  for (const Case& c : cases)
    check_case(checker, c);
  for (const int dim : {64, 128})
    for (const bool one_key : {false, true})
      check_exact(checker, dim, one_key);
  check_neighbours(checker, {{3, 40, 5}, {7, 40, 70}, 1, 1, 64, true});
  check_neighbours(checker, {{33, 70, 2}, {33, 70, 2}, 2, 1, 128, false, true});
  check_infinity(checker);
  check_parts(checker, 64, 90, 37);
  check_parts(checker, 128, 40, 1);
  if (small()) return;
  const Lengths lengths{1, 17, 63, 64, 65, 130, 200};
  const Lengths others{200, 0, 64, 130, 65, 1, 63};
  for (const int dim : {64, 128})
    for (const bool causal : {false, true})
      for (const int key_heads : {1, 2, 4}) {
        check_case(checker, {lengths, lengths, 4, key_heads, dim, causal, true});
        check_case(checker, {lengths, others, 4, key_heads, dim, causal, false, 8});
        check_neighbours(checker,
                         {{65, 200, 130}, {130, 200, 63}, 4, key_heads, dim, causal, false, 16});
      }
  if (!timed()) return;
  time_forward(8192);
  time_forward(32768);
}

}  // namespace

int main() {
  return run(tests);
}
