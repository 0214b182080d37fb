// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "ops/check.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

struct Reference {
  std::vector<double> out, dq, dk, dv;  // [S, H K], [S, H K], [L, G K], [L, G K]
};

std::vector<double> columns(const Tensor& t, std::int64_t begin, std::int64_t end) {
  const Tensor wide = t.to(DType::f32);
  std::vector<double> result;
  for (std::int64_t i = 0; i < t.size(0); ++i)
    for (std::int64_t j = begin; j < end; ++j)
      result.push_back(wide.floats()[static_cast<std::size_t>(i * t.size(1) + j)]);
  return result;
}

// The textbook: scores, softmax, and their derivatives, in double.
Reference reference(const AttentionPack& p, const std::vector<double>& q,
                    const std::vector<double>& k, const std::vector<double>& v,
                    const std::vector<double>& dout) {
  const auto H = static_cast<std::size_t>(p.heads), G = static_cast<std::size_t>(p.key_heads),
             K = static_cast<std::size_t>(p.head_dim);
  Reference r{std::vector<double>(q.size()), std::vector<double>(q.size()),
              std::vector<double>(k.size()), std::vector<double>(k.size())};
  std::size_t q0 = 0, k0 = 0;
  for (std::size_t s = 0; s < p.query_lengths.size(); ++s) {
    const auto n = static_cast<std::size_t>(p.query_lengths[s]),
               m = static_cast<std::size_t>(p.key_lengths[s]);
    for (std::size_t h = 0; h < H; ++h)
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t qi = ((q0 + i) * H + h) * K;
        const std::size_t seen = p.causal ? i + m - n + 1 : m;
        std::vector<double> w(seen), dw(seen);
        double top = -1e300, sum = 0, mean = 0;
        const auto kj = [&](std::size_t j) { return ((k0 + j) * G + h / (H / G)) * K; };
        for (std::size_t j = 0; j < seen; ++j) {
          for (std::size_t d = 0; d < K; ++d)
            w[j] += q[qi + d] * k[kj(j) + d] / std::sqrt(double(K));
          top = std::max(top, w[j]);
        }
        for (double& x : w)
          sum += x = std::exp(x - top);
        for (double& x : w)
          x /= sum;
        for (std::size_t j = 0; j < seen; ++j)
          for (std::size_t d = 0; d < K; ++d) {
            r.out[qi + d] += w[j] * v[kj(j) + d];
            r.dv[kj(j) + d] += w[j] * dout[qi + d];
            dw[j] += dout[qi + d] * v[kj(j) + d];
          }
        for (std::size_t j = 0; j < seen; ++j)
          mean += w[j] * dw[j];
        for (std::size_t j = 0; j < seen; ++j) {
          const double ds = w[j] * (dw[j] - mean) / std::sqrt(double(K));
          for (std::size_t d = 0; d < K; ++d) {
            r.dq[qi + d] += ds * k[kj(j) + d];
            r.dk[kj(j) + d] += ds * q[qi + d];
          }
        }
      }
    q0 += n, k0 += m;
  }
  return r;
}

void compare(AttentionPack pack, bool self, DType dtype) {
  std::int64_t queries = 0, keys = 0;
  for (std::int64_t n : pack.query_lengths)
    queries += n;
  for (std::int64_t n : pack.key_lengths)
    keys += n;
  const std::int64_t qw = pack.heads * pack.head_dim, kw = pack.key_heads * pack.head_dim;
  const Tensor q = noise_tensor({queries, self ? qw + 2 * kw : qw}, 1, dtype);
  const Tensor kv = self ? q : noise_tensor({keys, 2 * kw}, 2, dtype);
  const std::int64_t at = self ? qw : 0;
  const Tensor dout = noise_tensor({queries, qw}, 3, dtype);
  const Reference r = reference(pack, columns(q, 0, qw), columns(kv, at, at + kw),
                                columns(kv, at + kw, at + 2 * kw), columns(dout, 0, qw));
  const double tolerance = dtype == DType::f32 ? 3e-6 : 2e-2;
  each_isa(
      [&] {
        Tape tape;
        const Tensor dq = Tensor::zeros(q.shape()), dkv = self ? dq : Tensor::zeros(kv.shape());
        tape.watch(q, dq);
        if (!self) tape.watch(kv, dkv);
        const Tensor out =
            self ? self_attention(tape, q, pack) : cross_attention(tape, q, kv, pack);
        const Tensor kept = out.clone();
        tape.backward(out, dout.clone());
        CHECK(distance(columns(kept, 0, qw), r.out) < tolerance);
        CHECK(distance(columns(dq, 0, qw), r.dq) < tolerance);
        CHECK(distance(columns(dkv, at, at + kw), r.dk) < tolerance);
        CHECK(distance(columns(dkv, at + kw, at + 2 * kw), r.dv) < tolerance);
      },
      true);
}

}  // namespace

TEST_CASE("attention is the textbook's, forward and back, on every instruction set") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    INFO(dtype_name(dtype));
    compare({{48, 48, 1}, {48, 48, 1}, 3, 3, 32, false}, true, dtype);
    compare({{70, 5, 130}, {70, 5, 130}, 2, 2, 16, false}, true, dtype);
    compare({{17, 64}, {17, 64}, 2, 1, 12, false}, true, dtype);   // shared keys, odd width
    compare({{33, 129}, {33, 129}, 4, 2, 40, true}, true, dtype);  // causal
    compare({{48, 100}, {5, 1}, 2, 2, 32, false}, false, dtype);   // to text
    compare({{3, 65}, {77, 200}, 2, 2, 64, true}, false, dtype);   // a chunk of queries, causal
    compare({{40}, {150}, 1, 1, 128, false}, false, dtype);
  }
}

TEST_CASE("attention that reads values where they lie is that of their copy, to the bit") {
  const AttentionPack pack{{33, 90}, {33, 90}, 4, 2, 32, true};
  for (const DType dtype : {DType::f32, DType::bf16})
    each_isa([&] {
      const Tensor x = noise_tensor({123, 8 * 32}, 1, dtype), angles = noise_tensor({123, 16}, 2);
      const Tensor query = noise_tensor({32}, 3), key = noise_tensor({32}, 4);
      QkNormRope layout{4, 2, 2, 32, query, key, angles, noise_tensor({123, 16}, 5), 1e-5f};
      const std::vector<Tensor> leaves{x, query, key};
      const Tensor cotangent = noise_tensor({123, 4 * 32}, 6);
      Tensor plain, read;
      const auto expected = gradients(leaves, cotangent, [&](Tape& t) {
        return plain = self_attention(t, qk_norm_rope(t, x, layout), pack);
      });
      const auto found = gradients(leaves, cotangent, [&](Tape& t) {
        return read = normed_self_attention(t, x, layout, pack);
      });
      CHECK(std::memcmp(plain.raw(), read.raw(), plain.bytes()) == 0);
      for (std::size_t i = 0; i < leaves.size(); ++i)
        CHECK(std::memcmp(expected[i].raw(), found[i].raw(), expected[i].bytes()) == 0);
      Tape silent(false);
      layout.value_heads = 4;
      CHECK_THROWS_AS(normed_self_attention(silent, x, layout, pack), Error);
    });
}

TEST_CASE("attention: a sample without keys gives zero, large scores do not overflow") {
  each_isa(
      [] {
        for (const DType dtype : {DType::f32, DType::bf16}) {
          Tape silent(false);
          const AttentionPack none{{4, 3}, {0, 2}, 2, 2, 16, false};
          const Tensor out = cross_attention(silent, noise_tensor({7, 32}, 1, dtype),
                                             noise_tensor({2, 64}, 2, dtype), none)
                                 .to(DType::f32);
          for (std::size_t i = 0; i < 4 * 32; ++i)
            CHECK(out.floats()[i] == 0);
          CHECK(out.floats()[4 * 32] != 0);

          Tensor big = noise_tensor({20, 48}, 3);
          for (float& v : big.floats())
            v *= 200;
          const Tensor sharp =
              self_attention(silent, big.to(dtype), {{20}, {20}, 1, 1, 16, false}).to(DType::f32);
          for (const float v : sharp.floats())
            CHECK(std::isfinite(v));
        }
      },
      true);
}

TEST_CASE("attention lets a NaN through") {
  each_isa(
      [] {
        for (const DType dtype : {DType::f32, DType::bf16}) {
          Tape silent(false);
          Tensor x = noise_tensor({20, 96}, 3);
          x.floats()[5] = std::numeric_limits<float>::quiet_NaN();
          const Tensor out =
              self_attention(silent, x.to(dtype), {{20}, {20}, 1, 1, 32, false}).to(DType::f32);
          CHECK(std::isnan(out.floats()[0]));
          CHECK_FALSE(std::isnan(out.floats()[32]));
        }
      },
      true);
}

TEST_CASE("attention gives the same bits with any number of threads") {
  const int threads = omp_get_max_threads();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const AttentionPack pack{{300, 40}, {300, 40}, 2, 2, 32, false};
    const Tensor qkv = noise_tensor({340, 192}, 1, dtype), dout = noise_tensor({340, 64}, 2, dtype);
    std::vector<Tensor> outs, grads;
    for (const int n : {1, 2, 3}) {
      omp_set_num_threads(n);
      outs.emplace_back();
      grads.push_back(gradients({qkv}, dout.clone(), [&](Tape& tape) {
        return outs.back() = self_attention(tape, qkv, pack);
      })[0]);
      CHECK(std::memcmp(outs.back().raw(), outs[0].raw(), outs[0].bytes()) == 0);
      CHECK(std::memcmp(grads.back().raw(), grads[0].raw(), grads[0].bytes()) == 0);
    }
    omp_set_num_threads(threads);
  }
}

TEST_CASE("attention refuses what does not fit") {
  Tape silent(false);
  const Tensor qkv = noise_tensor({10, 96}, 1);
  CHECK_THROWS_AS(self_attention(silent, qkv, {{9}, {9}, 1, 1, 32, false}), Error);
  CHECK_THROWS_AS(self_attention(silent, qkv, {{10}, {9}, 1, 1, 32, false}), Error);
  CHECK_THROWS_AS(self_attention(silent, qkv, {{10}, {10}, 3, 2, 32, false}), Error);
  CHECK_THROWS_AS(self_attention(silent, qkv, {{-1, 11}, {-1, 11}, 1, 1, 32, false}), Error);
  CHECK_THROWS_AS(cross_attention(silent, noise_tensor({3, 32}, 1), noise_tensor({2, 64}, 2),
                                  {{3}, {2}, 1, 1, 32, true}),
                  Error);
}
