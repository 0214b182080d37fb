// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernel_test.h"
#include "patchify.h"

using vfm::kernels::PatchLayout;
using vfm::kernels::PatchSample;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

using Doubles = std::vector<double>;

struct Size {
  int frames, height, width;
};

// A pack, and the same as the kernels see it.
struct Pack {
  Pack(std::vector<Size> sizes_, int channels, int zero_channels, int pt, int ph, int pw)
      : sizes(std::move(sizes_)) {
    layout.channels = channels;
    layout.zero_channels = zero_channels;
    layout.patch[0] = pt, layout.patch[1] = ph, layout.patch[2] = pw;
    for (const Size& s : sizes) {
      samples.push_back({layout.tokens, latents, s.frames, s.height, s.width});
      layout.tokens += std::int64_t{s.frames / pt} * (s.height / ph) * (s.width / pw);
      latents += std::int64_t{channels} * s.frames * s.height * s.width;
    }
    layout.sample_count = static_cast<int>(samples.size());
  }
  int token_width() const {
    return (layout.channels + layout.zero_channels) * layout.patch[0] * layout.patch[1] *
           layout.patch[2];
  }
  std::size_t token_elements() const {
    return static_cast<std::size_t>(layout.tokens * token_width());
  }

  std::vector<Size> sizes;
  std::vector<PatchSample> samples;
  PatchLayout layout;  // without the pointer to the samples
  std::int64_t latents = 0;
};

// For every element of the latents, in their order: its place in the tokens. By counting, without
// the kernels' offsets.
std::vector<std::size_t> places(const Pack& p, bool channel_first) {
  const int pt = p.layout.patch[0], ph = p.layout.patch[1], pw = p.layout.patch[2];
  const int channels = p.layout.channels + p.layout.zero_channels;
  std::vector<std::size_t> result;
  std::size_t before = 0;
  for (const Size& s : p.sizes) {
    const int rows = s.height / ph, columns = s.width / pw;
    for (int c = 0; c < p.layout.channels; ++c)
      for (int t = 0; t < s.frames; ++t)
        for (int y = 0; y < s.height; ++y)
          for (int x = 0; x < s.width; ++x) {
            const int token = (t / pt * rows + y / ph) * columns + x / pw;
            const int a = t % pt, b = y % ph, d = x % pw;
            const int place = channel_first ? ((c * pt + a) * ph + b) * pw + d
                                            : ((b * pw + d) * pt + a) * channels + c;
            result.push_back((before + static_cast<std::size_t>(token)) *
                                 static_cast<std::size_t>(p.token_width()) +
                             static_cast<std::size_t>(place));
          }
    before += static_cast<std::size_t>(s.frames / pt * rows * columns);
  }
  return result;
}

Doubles to_tokens(const Pack& p, bool channel_first, const Doubles& latents) {
  Doubles result(p.token_elements());
  const auto at = places(p, channel_first);
  for (std::size_t i = 0; i < at.size(); ++i)
    result[at[i]] = latents[i];
  return result;
}

Doubles to_latents(const Pack& p, bool channel_first, const Doubles& tokens) {
  Doubles result;
  for (const std::size_t i : places(p, channel_first))
    result.push_back(tokens[i]);
  return result;
}

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::vector<float> result = noise(count, seed);
  const float inf = std::numeric_limits<float>::infinity();
  const float hard[] = {inf, -inf, std::nanf(""), 1e30f, 1e-40f};
  for (std::size_t i = seed; i < count; i += 7)
    result[i] = hard[i / 7 % std::size(hard)];
  return result;
}

// The value that T holds; so that f32 and bf16 are compared exactly.
template <class T>
Doubles rounded(const Doubles& values) {
  Doubles result;
  for (const double v : values)
    result.push_back(value(T(static_cast<float>(v))));
  return result;
}

template <class T>
void same(Checker& checker, const std::string& name, const std::vector<T>& got,
          const Doubles& expected) {
  bool equal = got.size() == expected.size();
  for (std::size_t i = 0; equal && i < got.size(); ++i)
    equal = value(got[i]) == expected[i] || (std::isnan(expected[i]) && std::isnan(value(got[i])));
  checker.check(name, equal);
}

template <class T>
void compare(Checker& checker, const Pack& p) {
  const DeviceArray<PatchSample> samples(p.samples);
  PatchLayout layout = p.layout;
  layout.samples = samples.get();
  layout.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  const auto latent_count = static_cast<std::size_t>(p.latents);
  const auto latents = numbers(latent_count, 1), tokens = numbers(p.token_elements(), 2);
  const Doubles in(latents.begin(), latents.end());
  const Doubles token_in = rounded<T>({tokens.begin(), tokens.end()});
  const DeviceArray<float> dev_latents(latents), back(latent_count), image(latent_count);
  const DeviceArray<T> dev_tokens(as<T>(tokens)), first(tokens.size()), last(tokens.size());
  need(patchify_forward(layout, dev_latents.get(), first.get(), nullptr), "patchify");
  need(patchify_backward(layout, dev_tokens.get(), back.get(), nullptr), "patchify");
  need(unpatchify_forward(layout, dev_tokens.get(), image.get(), nullptr), "unpatchify");
  need(unpatchify_backward(layout, dev_latents.get(), last.get(), nullptr), "unpatchify");
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") +
                           std::to_string(p.layout.tokens) + " x " +
                           std::to_string(p.token_width());
  same(checker, name + " patchify", first.host(), rounded<T>(to_tokens(p, true, in)));
  same(checker, name + " patchify backward", back.host(), to_latents(p, true, token_in));
  same(checker, name + " unpatchify", image.host(), to_latents(p, false, token_in));
  same(checker, name + " unpatchify backward", last.host(), rounded<T>(to_tokens(p, false, in)));
}

// The gradient of the sum of `weights` times what `function` gives.
template <class Function>
Doubles differences(Doubles at, const std::vector<float>& weights, Function function) {
  Doubles result;
  constexpr double h = 1e-3;  // the functions are linear
  for (double& v : at) {
    const double before = v;
    double sums[2] = {};
    for (const int side : {0, 1}) {
      v = before + (side == 0 ? h : -h);
      const Doubles out = function(at);
      for (std::size_t i = 0; i < out.size(); ++i)
        sums[side] += weights[i] * out[i];
    }
    v = before;
    result.push_back((sums[0] - sums[1]) / (2 * h));
  }
  return result;
}

void test_differences(Checker& checker) {
  const Pack p({{2, 4, 6}, {2, 2, 2}}, 2, 1, 2, 2, 2);
  const DeviceArray<PatchSample> samples(p.samples);
  PatchLayout layout = p.layout;
  layout.samples = samples.get();
  const auto latents = noise(static_cast<std::size_t>(p.latents), 1);
  const auto tokens = noise(p.token_elements(), 2);
  const DeviceArray<float> dtokens(tokens), dlatents(latents.size());
  need(patchify_backward(layout, dtokens.get(), dlatents.get(), nullptr), "patchify");
  checker.close("patchify by differences", dlatents.host(),
                differences({latents.begin(), latents.end()}, tokens,
                            [&](const Doubles& v) { return to_tokens(p, true, v); }),
                1e-6);
  const DeviceArray<float> gradient(latents), out(tokens.size());
  need(unpatchify_backward(layout, gradient.get(), out.get(), nullptr), "unpatchify");
  checker.close("unpatchify by differences", out.host(),
                differences({tokens.begin(), tokens.end()}, latents,
                            [&](const Doubles& v) { return to_latents(p, false, v); }),
                1e-6);
}

void test_refusals(Checker& checker) {
  const int invalid = cudaErrorInvalidValue;
  const auto forward = [](const PatchLayout& l) {
    return patchify_forward(l, nullptr, nullptr, nullptr);
  };
  PatchLayout good;
  good.channels = 4;
  checker.check("no tokens are no error", forward(good) == 0);
  PatchLayout bad = good;
  bad.tokens = 1;
  checker.check("tokens without samples are refused", forward(bad) == invalid);
  bad.tokens = -1;
  checker.check("tokens below zero are refused", forward(bad) == invalid);
  bad = good, bad.patch[1] = 0;
  checker.check("an empty patch is refused", forward(bad) == invalid);
  bad = good, bad.patch[0] = bad.patch[1] = bad.patch[2] = 0x7fffffff;
  checker.check("too wide a token is refused", forward(bad) == invalid);
  bad = good, bad.zero_channels = -1;
  checker.check("channels below zero are refused", forward(bad) == invalid);
}

void time_both() {
  const Pack p({{16, 32, 64}}, 17, 1, 1, 2, 2);
  const DeviceArray<PatchSample> samples(p.samples);
  PatchLayout layout = p.layout;
  layout.samples = samples.get();
  layout.type = Type::bf16;
  const DeviceArray<float> latents(noise(static_cast<std::size_t>(p.latents), 1));
  const DeviceArray<__nv_bfloat16> tokens(p.token_elements());
  time_launch("patchify bf16",
              4. * static_cast<double>(p.latents) + 2. * static_cast<double>(p.token_elements()), 0,
              [&] { return patchify_forward(layout, latents.get(), tokens.get(), nullptr); });
  const Pack q({{16, 32, 64}}, 16, 0, 1, 2, 2);
  const DeviceArray<PatchSample> out_samples(q.samples);
  layout = q.layout;
  layout.samples = out_samples.get();
  const DeviceArray<float> out_tokens(noise(q.token_elements(), 2));
  time_launch("unpatchify f32", 8. * static_cast<double>(q.latents), 0,
              [&] { return unpatchify_forward(layout, out_tokens.get(), latents.get(), nullptr); });
  time_launch("unpatchify backward f32", 8. * static_cast<double>(q.latents), 0, [&] {
    return unpatchify_backward(layout, latents.get(), out_tokens.get(), nullptr);
  });
}

void tests(Checker& checker) {
  const Pack packs[] = {
      Pack({}, 16, 1, 1, 2, 2),
      Pack({{1, 2, 2}}, 16, 1, 1, 2, 2),
      Pack({{2, 6, 8}, {1, 4, 2}, {5, 2, 10}}, 16, 1, 1, 2, 2),
      Pack({{2, 6, 8}, {1, 4, 2}, {5, 2, 10}}, 16, 0, 1, 2, 2),
      Pack({{4, 3, 10}, {2, 6, 5}, {2, 3, 5}, {6, 9, 5}, {2, 3, 5}}, 3, 2, 2, 3, 5),
      Pack({{3, 5, 7}, {1, 1, 1}}, 1, 0, 1, 1, 1),
      Pack({{3, 5, 7}, {1, 1, 1}}, 0, 3, 1, 1, 1),
      Pack(std::vector<Size>(40, {1, 2, 4}), 2, 1, 1, 2, 4),
  };
  for (const Pack& p : packs) {
    compare<float>(checker, p);
    compare<__nv_bfloat16>(checker, p);
  }
  test_differences(checker);
  test_refusals(checker);
  if (timed()) time_both();
}

}  // namespace

int main() {
  return run(tests);
}
