// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>
#include <memory>

#include "kernel_test.h"
#include "newest_query.h"

using vfm::kernels::kNewestTexts;
using vfm::kernels::newest_query;
using vfm::kernels::NewestQuery;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

struct Heads {
  int heads, key_heads, head_dim;
  float scale() const { return 1 / std::sqrt(static_cast<float>(head_dim)); }
  int width() const { return heads * head_dim; }
  int kv_width() const { return 2 * key_heads * head_dim; }
};

// Keys and values of some texts.
template <class T>
struct Texts {
  std::vector<std::vector<T>> host;
  std::vector<std::unique_ptr<DeviceArray<T>>> device;
  std::vector<float> q;

  Texts(const Heads& h, const std::vector<int>& seen) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      host.push_back(as<T>(
          noise(static_cast<std::size_t>(seen[i]) * h.kv_width(), static_cast<unsigned>(i + 1))));
      device.push_back(std::make_unique<DeviceArray<T>>(host.back()));
    }
    q = noise(seen.size() * static_cast<std::size_t>(h.width()), 99);
    for (float& v : q)
      v *= 3;  // a maximum that moves
  }

  std::vector<float> run(const Heads& h, const std::vector<std::size_t>& which) const {
    std::vector<float> queries;
    NewestQuery call;
    for (const std::size_t i : which) {
      const auto from = q.begin() + static_cast<std::int64_t>(i) * h.width();
      queries.insert(queries.end(), from, from + h.width());
      call.of[call.texts++] = {device[i]->get(),
                               static_cast<std::int64_t>(host[i].size()) / h.kv_width()};
    }
    const DeviceArray<float> dq(queries), out(queries.size());
    call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
    call.heads = h.heads, call.key_heads = h.key_heads, call.head_dim = h.head_dim;
    call.scale = h.scale();
    call.q = dq.get(), call.out = out.get();
    need(newest_query(call, nullptr), "newest query");
    return out.host();
  }

  void expect(const Heads& h, std::size_t text, std::vector<double>& out) const {
    const std::size_t seen = host[text].size() / static_cast<std::size_t>(h.kv_width());
    for (int head = 0; head < h.heads; ++head) {
      const float* query =
          q.data() + static_cast<std::int64_t>(text) * h.width() + head * h.head_dim;
      const std::size_t column = static_cast<std::size_t>(head / (h.heads / h.key_heads)) *
                                 static_cast<std::size_t>(h.head_dim);
      const auto kv = [&](std::size_t key, std::size_t at) {
        return double{
            value(host[text][key * static_cast<std::size_t>(h.kv_width()) + column + at])};
      };
      std::vector<double> scores(seen), sums(static_cast<std::size_t>(h.head_dim));
      double top = -1e30, total = 0;
      for (std::size_t key = 0; key < seen; ++key) {
        for (int d = 0; d < h.head_dim; ++d)
          scores[key] += query[d] * kv(key, static_cast<std::size_t>(d)) * h.scale();
        top = std::max(top, scores[key]);
      }
      for (std::size_t key = 0; key < seen; ++key) {
        const double weight = std::exp(scores[key] - top);
        total += weight;
        for (std::size_t d = 0; d < sums.size(); ++d)
          sums[d] += weight * kv(key, static_cast<std::size_t>(h.key_heads * h.head_dim) + d);
      }
      for (const double sum : sums)
        out.push_back(sum / total);
    }
  }
};

template <class T>
void compare(Checker& checker, const Heads& h, const std::vector<int>& seen) {
  const Texts<T> texts(h, seen);
  std::vector<std::size_t> all;
  std::vector<double> expected;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    all.push_back(i);
    texts.expect(h, i, expected);
  }
  const auto together = texts.run(h, all);
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") +
                           std::to_string(h.heads) + " heads of " + std::to_string(h.head_dim);
  checker.close(name, together, expected, 3e-6);
  // A text has the same bits alone.
  for (const std::size_t i : all) {
    const auto alone = texts.run(h, {i});
    checker.check(
        name + ", text " + std::to_string(i) + " alone",
        std::memcmp(alone.data(), together.data() + i * static_cast<std::size_t>(h.width()),
                    alone.size() * sizeof(float)) == 0);
  }
}

void test_hard_numbers(Checker& checker) {
  const Heads h{1, 1, 4};
  Texts<float> texts(h, {40});
  texts.host[0][3 * 8] = std::numeric_limits<float>::quiet_NaN();  // of the fourth key
  texts.device[0] = std::make_unique<DeviceArray<float>>(texts.host[0]);
  const std::vector<double> nothing(4, std::nan(""));
  checker.close("a key that is no number", texts.run(h, {0}), nothing, 0);
}

void tests(Checker& checker) {
  for (const Heads& h : {Heads{4, 2, 64}, Heads{2, 1, 128}, Heads{3, 3, 80}, Heads{2, 2, 5},
                         Heads{2, 1, 256}, Heads{6, 2, 8}}) {
    compare<float>(checker, h, {1, 37, 4, 70});
    compare<__nv_bfloat16>(checker, h, {33, 1, 5});
  }
  compare<__nv_bfloat16>(checker, {2, 1, 16}, std::vector<int>(kNewestTexts, 9));
  test_hard_numbers(checker);
  NewestQuery bad;
  bad.heads = bad.key_heads = 1, bad.head_dim = 8, bad.texts = 1;
  checker.check("a text without keys is refused",
                newest_query(bad, nullptr) == cudaErrorInvalidValue);
  bad.texts = kNewestTexts + 1;
  checker.check("too many texts are refused", newest_query(bad, nullptr) == cudaErrorInvalidValue);
  bad.texts = 0, bad.head_dim = 257;
  checker.check("wide heads are refused", newest_query(bad, nullptr) == cudaErrorInvalidValue);
  bad.head_dim = 8;
  checker.check("nothing is no error", newest_query(bad, nullptr) == 0);
  if (!timed()) return;
  const Heads h{28, 4, 128};  // of Qwen2.5-VL 7B
  const std::vector<int> seen(8, 2048);
  const Texts<__nv_bfloat16> texts(h, seen);
  NewestQuery call;
  call.type = Type::bf16, call.texts = 8;
  call.heads = h.heads, call.key_heads = h.key_heads, call.head_dim = h.head_dim;
  call.scale = h.scale();
  const DeviceArray<float> q(texts.q), out(texts.q.size());
  call.q = q.get(), call.out = out.get();
  for (std::size_t i = 0; i < seen.size(); ++i)
    call.of[i] = {texts.device[i]->get(), seen[i]};
  time_launch("newest query bf16", 8. * 2048 * h.kv_width() * 2, 0,
              [&] { return newest_query(call, nullptr); });
}

}  // namespace

int main() {
  return run(tests);
}
