// SPDX-License-Identifier: Apache-2.0
#include "kernel_test.h"
#include "time_attention.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

struct Sizes {
  int queries, frames, pixels, channels;
};

struct Expected {
  std::vector<double> out, dq, dk, dv;
};

template <class T>
Expected expect(const Sizes& s, float scale, const std::vector<T>& q, const std::vector<T>& k,
                const std::vector<T>& v, const std::vector<T>& dout) {
  Expected e{std::vector<double>(q.size()), std::vector<double>(q.size()),
             std::vector<double>(k.size()), std::vector<double>(k.size())};
  const auto at = [&](int frame, int pixel) {
    return (static_cast<std::size_t>(frame) * s.pixels + pixel) * s.channels;
  };
  const auto dot = [&](const std::vector<T>& a, std::size_t i, const std::vector<T>& b,
                       std::size_t j) {
    double sum = 0;
    for (int c = 0; c < s.channels; ++c)
      sum += double{value(a[i + c])} * value(b[j + c]);
    return sum;
  };
  for (int pixel = 0; pixel < s.pixels; ++pixel)
    for (int t = 0; t < s.queries; ++t) {
      const int seen = s.frames - s.queries + t + 1;
      const std::size_t mine = at(t, pixel);
      std::vector<double> p(static_cast<std::size_t>(seen)), dp(p.size());
      double sum = 0, mean = 0;
      for (std::size_t j = 0; j < p.size(); ++j)
        sum += p[j] = std::exp(scale * dot(q, mine, k, at(static_cast<int>(j), pixel)));
      for (std::size_t j = 0; j < p.size(); ++j) {
        p[j] /= sum;
        dp[j] = dot(dout, mine, v, at(static_cast<int>(j), pixel));
        mean += p[j] * dp[j];
      }
      for (std::size_t j = 0; j < p.size(); ++j) {
        const std::size_t other = at(static_cast<int>(j), pixel);
        const double ds = scale * p[j] * (dp[j] - mean);
        for (int c = 0; c < s.channels; ++c) {
          e.out[mine + c] += p[j] * value(v[other + c]);
          e.dq[mine + c] += ds * value(k[other + c]);
          e.dk[other + c] += ds * value(q[mine + c]);
          e.dv[other + c] += p[j] * value(dout[mine + c]);
        }
      }
    }
  return e;
}

template <class T>
std::vector<const void*> frames_of(const DeviceArray<T>& array, const Sizes& s) {
  std::vector<const void*> frames;
  for (int j = 0; j < s.frames; ++j)
    frames.push_back(array.get() + static_cast<std::size_t>(j) * s.pixels * s.channels);
  return frames;
}

template <class T>
void compare(Checker& checker, const Sizes& s) {
  const std::size_t frame = static_cast<std::size_t>(s.pixels) * s.channels;
  const auto q = as<T>(noise(s.queries * frame, 1)), k = as<T>(noise(s.frames * frame, 2)),
             v = as<T>(noise(s.frames * frame, 3)), dout = as<T>(noise(s.queries * frame, 4));
  const DeviceArray<T> dev_q(q), dev_k(k), dev_v(v), dev_dout(dout), out(q.size()), dq(q.size()),
      dk(k.size()), dv(k.size());
  const DeviceArray<const void*> keys(frames_of(dev_k, s)), values(frames_of(dev_v, s));
  TimeAttention c;
  c.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  c.vector = s.channels % (16 / static_cast<int>(sizeof(T))) == 0;
  c.queries = s.queries, c.frames = s.frames, c.pixels = s.pixels, c.channels = s.channels;
  c.scale = 1 / std::sqrt(static_cast<float>(s.channels));
  c.q = dev_q.get(), c.keys = keys.get(), c.values = values.get(), c.out = out.get();
  need(time_attention_forward(c, nullptr), "forward");
  const Expected e = expect(s, c.scale, q, k, v, dout);
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") +
                           std::to_string(s.queries) + " of " + std::to_string(s.frames) + ", " +
                           std::to_string(s.pixels) + " x " + std::to_string(s.channels);
  const double tolerance = sizeof(T) == 2 ? 4e-3 : 2e-6;
  checker.close(name, out.host(), e.out, tolerance);
  if (s.queries != s.frames) return;
  const int half = (s.pixels + 1) / 2;  // pixels in two calls
  const std::size_t square = static_cast<std::size_t>(s.queries) * s.queries;
  const DeviceArray<float> p(half * square), ds(half * square);
  c.dout = dev_dout.get(), c.dq = dq.get(), c.dk = dk.get(), c.dv = dv.get();
  c.p = p.get(), c.ds = ds.get();
  for (int first = 0; first < s.pixels; first += half) {
    c.first_pixel = first, c.some_pixels = std::min(half, s.pixels - first);
    need(time_attention_backward(c, nullptr), "backward");
  }
  checker.close(name + " dq", dq.host(), e.dq, tolerance);
  checker.close(name + " dk", dk.host(), e.dk, tolerance);
  checker.close(name + " dv", dv.host(), e.dv, tolerance);
}

void tests(Checker& checker) {
  for (const Sizes& s : {Sizes{1, 1, 1, 1}, Sizes{3, 3, 5, 21}, Sizes{2, 7, 3, 40},
                         Sizes{35, 35, 1, 8}, Sizes{2, 2, 3, 264}, Sizes{2, 3, 2, 1021}}) {
    compare<float>(checker, s);
    compare<__nv_bfloat16>(checker, s);
  }
  if (!small()) compare<__nv_bfloat16>(checker, {16, 16, 1000, 512});
  TimeAttention c;
  c.channels = kTimeAttentionChannels + 1;
  checker.check("too many channels are refused",
                time_attention_forward(c, nullptr) == cudaErrorInvalidValue);
  c.channels = 8, c.queries = 2, c.frames = 1;
  checker.check("fewer keys than queries are refused",
                time_attention_forward(c, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error", time_attention_forward({}, nullptr) == 0);
}

}  // namespace

int main() {
  return run(tests);
}
