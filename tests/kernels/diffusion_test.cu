// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numbers>

#include "diffusion.h"
#include "kernel_test.h"

using namespace vfm::test;
using vfm::kernels::diffusion_loss;
using vfm::kernels::diffusion_mix;
using vfm::kernels::diffusion_noise;
using vfm::kernels::diffusion_partials;
using vfm::kernels::DiffusionLoss;
using vfm::kernels::DiffusionPack;
using vfm::kernels::DiffusionSample;
using vfm::kernels::kDiffusionChunk;

namespace {

using Block = std::array<std::uint32_t, 4>;
using Doubles = std::vector<double>;
constexpr double kSigmaData = 0.5;

Block cipher(Block c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const std::uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
  }
  return c;
}

// The stream of vfm::Random(seed, Purpose::noise, step, key).
void name_stream(DiffusionSample& s, std::uint64_t seed, std::uint32_t step, std::uint64_t key) {
  s.key[0] = static_cast<std::uint32_t>(seed), s.key[1] = static_cast<std::uint32_t>(seed >> 32);
  const Block name =
      cipher({2, step, static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)},
             s.key[0], s.key[1]);
  s.stream[0] = name[0] ^ name[2], s.stream[1] = name[1] ^ name[3];
}

// Normal number i of the stream of a sample, in doubles; lib/base/normals.h comes near to the same.
float normal(const DiffusionSample& s, std::uint64_t i) {
  const std::uint64_t index = i / 4;
  const Block words = cipher({static_cast<std::uint32_t>(index),
                              static_cast<std::uint32_t>(index >> 32), s.stream[0], s.stream[1]},
                             s.key[0], s.key[1]);
  const auto unit = [](std::uint32_t word) { return (word + 0.5) / 4294967296.0; };
  const int pair = static_cast<int>(i % 4 / 2) * 2;
  const double radius = std::sqrt(-2 * std::log(unit(words[pair])));
  const double angle = 2 * std::numbers::pi * unit(words[pair + 1]);
  return static_cast<float>(radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

struct Pack {
  std::vector<DiffusionSample> samples;
  Doubles sigmas;
  std::size_t size = 0;
  std::int64_t longest = 0;

  // Samples one after the other from `begin` on.
  Pack(const std::vector<std::int64_t>& counts, std::size_t begin = 0) : size(begin) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double sigma = std::array{0.002, 0.5, 1.3, 80.0}[i % 4];
      const double in = 1 / std::sqrt(sigma * sigma + kSigmaData * kSigmaData);
      DiffusionSample s;
      s.begin = s.latents = static_cast<std::int64_t>(size), s.count = counts[i];
      s.in = static_cast<float>(in), s.in_noise = static_cast<float>(in * sigma);
      s.of_x0 = static_cast<float>(in * sigma / kSigmaData);
      s.of_noise = static_cast<float>(in * kSigmaData);
      name_stream(s, 0x123456789abcdef0 + i / 2, 5, 77 * i);
      samples.push_back(s), sigmas.push_back(sigma);
      size += static_cast<std::size_t>(s.count);
      longest = std::max(longest, s.count);
    }
  }
  std::size_t begin() const {
    return samples.empty() ? size : static_cast<std::size_t>(samples[0].begin);
  }
  // The sample of element i.
  std::size_t sample_of(std::size_t i) const {
    std::size_t s = 0;
    while (static_cast<std::int64_t>(i) >= samples[s].begin + samples[s].count)
      ++s;
    return s;
  }
  DiffusionPack on(const DeviceArray<DiffusionSample>& device) const {
    return {device.get(), static_cast<std::int64_t>(samples.size()), longest};
  }
};

bool same_bits(const auto& a, const auto& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
}

// Units in the last place between floats of one sign; far for others.
long distance(float a, float b) {
  return std::abs(long{std::bit_cast<std::int32_t>(a)} - long{std::bit_cast<std::int32_t>(b)});
}

void check_noise(Checker& checker, const Pack& pack) {
  const DeviceArray<DiffusionSample> samples(pack.samples);
  const DeviceArray<float> noise(pack.size);
  need(diffusion_noise(pack.on(samples), noise.get(), nullptr), "noise");
  const std::vector<float> got = noise.host();
  long worst = 0, differ = 0;
  for (std::size_t i = pack.begin(); i < pack.size; ++i) {
    const DiffusionSample& s = pack.samples[pack.sample_of(i)];
    const long d = distance(got[i], normal(s, i - static_cast<std::size_t>(s.begin)));
    worst = std::max(worst, d), differ += d > 0;
  }
  checker.check("noise (worst " + std::to_string(worst) + " units)", worst <= 1);
  checker.check("noise differs rarely (" + std::to_string(differ) + ")",
                differ <= static_cast<long>(pack.size / 1000));
}

// What vfm::Random(0x123456789abcdef, Purpose::noise, 7, 0xfedcba9876543210) gives in doubles.
void check_known_noise(Checker& checker) {
  Pack pack({8});
  name_stream(pack.samples[0], 0x123456789abcdef, 7, 0xfedcba9876543210);
  const DeviceArray<DiffusionSample> samples(pack.samples);
  const DeviceArray<float> noise(8);
  need(diffusion_noise(pack.on(samples), noise.get(), nullptr), "noise");
  constexpr std::uint32_t kBits[] = {0xbcf262e7, 0xbe22d4d9, 0x3f9f5bdd, 0x3f67db65,
                                     0xbfa1e576, 0xbfa3253f, 0xbd904c93, 0xbe87bf23};
  const auto got = noise.host();
  for (int i = 0; i < 8; ++i)
    checker.check("known normal " + std::to_string(i),
                  distance(got[i], std::bit_cast<float>(kBits[i])) <= 1);
}

// The frame of lib/models/process/process.h by its definition.
struct Frame {
  double sigma, variance = sigma * sigma + kSigmaData * kSigmaData;
  double in = 1 / std::sqrt(variance), skip = kSigmaData * kSigmaData / variance;
  double out = sigma * kSigmaData / std::sqrt(variance);

  // lambda (D - x0)^2, and its slope by F.
  double loss(double f, double x0, double e) const {
    return std::pow((skip * (x0 + sigma * e) + out * f - x0) / out, 2);
  }
  double slope(double f, double x0, double e) const {
    return 2 / out * (skip * (x0 + sigma * e) + out * f - x0);
  }
};

void check_loss(Checker& checker, const std::string& name, const Pack& pack,
                const std::vector<float>& output, const std::vector<float>& target,
                const Doubles& slopes, const Doubles& sums, double scale) {
  const DeviceArray<DiffusionSample> samples(pack.samples);
  const DeviceArray<float> d_output(output), d_target(target), seed(pack.size);
  DiffusionLoss call;
  call.pack = pack.on(samples), call.scale = scale;
  call.output = d_output.get(), call.target = d_target.get();
  const DeviceArray<double> partial(static_cast<std::size_t>(diffusion_partials(call.pack))),
      got(sums.size());
  call.partial = partial.get(), call.sums = got.get();
  need(diffusion_loss(call, nullptr), "loss");
  const auto first = got.host();
  for (std::size_t i = 0; i < sums.size(); ++i)
    checker.check(name + " sum " + std::to_string(i),
                  std::isfinite(sums[i])
                      ? std::abs(first[i] - sums[i]) <= 1e-6 * sums[i]
                      : std::isnan(sums[i]) == std::isnan(first[i]) && !std::isfinite(first[i]));
  call.seed = seed.get();
  need(diffusion_loss(call, nullptr), "loss");
  checker.check(name + " sums have the same bits again", same_bits(got.host(), first));
  const std::size_t begin = pack.begin();
  const auto got_seed = seed.host();
  checker.close(name + " seed", std::vector<float>(got_seed.begin() + begin, got_seed.end()),
                Doubles(slopes.begin() + begin, slopes.end()), 2e-6);
  call.seed = d_output.get();
  need(diffusion_loss(call, nullptr), "loss");
  const auto in_place = d_output.host();
  checker.check(name + " in place",
                same_bits(std::vector(in_place.begin() + begin, in_place.end()),
                          std::vector(got_seed.begin() + begin, got_seed.end())));
}

// Mixes, compares with the definition of the frame, and so the loss; `spoiled` elements of F are
// given other values.
void check_pack(Checker& checker, const std::string& name, const Pack& pack,
                const std::vector<std::pair<std::size_t, float>>& spoiled = {}) {
  const std::size_t begin = pack.begin();
  const auto x0 = noise(pack.size, 1), e = noise(pack.size, 2);
  auto output = noise(pack.size, 3);
  for (const auto& [at, v] : spoiled)
    output[at] = v;
  const double scale = 0.7;
  Doubles latents, targets, slopes(pack.size), sums(pack.samples.size());
  for (std::size_t i = begin; i < pack.size; ++i) {
    const std::size_t s = pack.sample_of(i);
    const Frame frame{pack.sigmas[s]};
    const double x = x0[i] + frame.sigma * e[i];
    latents.push_back(frame.in * x);
    targets.push_back((x0[i] - frame.skip * x) / frame.out);
    slopes[i] = scale * frame.slope(output[i], x0[i], e[i]);
    sums[s] += frame.loss(output[i], x0[i], e[i]);
    // A parabola: differences over a wide step are exact but for rounding.
    if (i % 97 == 0 && spoiled.empty()) {
      const double h = 0.5, f = output[i];
      const double slope =
          (frame.loss(f + h, x0[i], e[i]) - frame.loss(f - h, x0[i], e[i])) / (2 * h);
      checker.check("slope by differences",
                    std::abs(scale * slope - slopes[i]) <= 1e-7 * (1 + std::abs(slopes[i])));
    }
  }
  const DeviceArray<DiffusionSample> samples(pack.samples);
  const DeviceArray<float> d_x0(x0), d_e(e), d_latents(pack.size), d_target(pack.size);
  need(diffusion_mix(pack.on(samples), d_x0.get(), d_e.get(), d_latents.get(), d_target.get(),
                     nullptr),
       "mix");
  const auto got = d_latents.host(), target = d_target.host();
  checker.close(name + " latents", std::vector<float>(got.begin() + begin, got.end()), latents,
                3e-7);
  checker.close(name + " target", std::vector<float>(target.begin() + begin, target.end()), targets,
                3e-7);
  need(diffusion_mix(pack.on(samples), d_x0.get(), d_e.get(), d_e.get(), d_x0.get(), nullptr),
       "mix");
  const auto in_place = d_e.host(), target_in_place = d_x0.host();
  checker.check(
      name + " in place",
      std::equal(got.begin() + begin, got.end(), in_place.begin() + begin) &&
          std::equal(target.begin() + begin, target.end(), target_in_place.begin() + begin));
  check_loss(checker, name, pack, output, target, slopes, sums, scale);
}

void time_pack(int samples, std::int64_t count) {
  const Pack pack(std::vector<std::int64_t>(static_cast<std::size_t>(samples), count));
  const DeviceArray<DiffusionSample> d_samples(pack.samples);
  const DeviceArray<float> x0(noise(pack.size, 1)), e(pack.size), latents(pack.size),
      target(pack.size), seed(pack.size);
  const DiffusionPack on = pack.on(d_samples);
  const DeviceArray<double> partial(static_cast<std::size_t>(diffusion_partials(on))),
      sums(pack.samples.size());
  const DiffusionLoss loss = {on,         x0.get(),      target.get(), 1.0,
                              seed.get(), partial.get(), sums.get()};
  const std::string name = std::to_string(samples) + " x " + std::to_string(count);
  const auto size = static_cast<double>(pack.size);
  time_launch("diffusion noise " + name, 4 * size, 0,
              [&] { return diffusion_noise(on, e.get(), nullptr); });
  time_launch("diffusion mix " + name, 16 * size, 0, [&] {
    return diffusion_mix(on, x0.get(), e.get(), latents.get(), target.get(), nullptr);
  });
  time_launch("diffusion loss " + name, 12 * size, 0,
              [&] { return diffusion_loss(loss, nullptr); });
}

void tests(Checker& checker) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  const std::vector<std::int64_t> even = {64, 4, 0, 2 * kDiffusionChunk, kDiffusionChunk + 8, 12},
                                  odd = {1, 37, kDiffusionChunk + 5, 0, 2, 1031};
  check_known_noise(checker);
  for (const auto& counts : {even, odd, std::vector<std::int64_t>{}, {0}, {1}})
    for (const std::size_t begin : {0, 3}) {
      const Pack pack(counts, begin);
      check_noise(checker, pack);
      check_pack(checker, std::to_string(counts.size()) + " from " + std::to_string(begin), pack);
    }
  const Pack small({16, 16, 16, 16});
  check_pack(checker, "spoiled", small, {{3, kNan}, {17, kInf}, {40, 1e18f}});
  check_pack(checker, "spoiled", small, {{3, -kInf}, {4, kNan}, {50, 1e-30f}});
  check_pack(checker, "large", Pack({4, 6}), {{1, 1e30f}, {5, -1e30f}});
  checker.check("too long a sample is refused",
                diffusion_noise({nullptr, 1, 65536 * kDiffusionChunk}, nullptr, nullptr) ==
                    cudaErrorInvalidValue);
  checker.check("a negative number is refused",
                diffusion_loss({{nullptr, -1, 8}}, nullptr) == cudaErrorInvalidValue);
  checker.check("no samples are no error", diffusion_loss(DiffusionLoss{}, nullptr) == 0);
  if (!timed()) return;
  time_pack(8, 8192 * 64 / 8);  // 8192 tokens of 2 x 2 x 16 channels
  time_pack(8, 1 << 22);
}

}  // namespace

int main() {
  return run(tests);
}
