// Time of a normal number: Random::fill_normal against Box-Muller with the C library's functions in
// doubles, in turns.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

#include "base/normals.h"
#include "base/philox.h"

using namespace vfm;

namespace {

constexpr std::size_t kCount = 1 << 17;
constexpr int kRounds = 41;

void in_doubles(const Random& random, std::vector<float>& out) {
  const auto unit = [](std::uint32_t word) { return (word + 0.5) / 4294967296.0; };
  for (std::size_t i = 0; i < out.size(); i += 4) {
    const auto block = static_cast<std::uint32_t>(i / 4);
    const auto words =
        philox4x32({block, 0, random.stream()[0], random.stream()[1]}, random.cipher_key());
    for (int pair = 0; pair < 4; pair += 2) {
      const double radius = std::sqrt(-2 * std::log(unit(words[pair])));
      const double angle = 2 * std::numbers::pi * unit(words[pair + 1]);
      out[i + pair] = static_cast<float>(radius * std::cos(angle));
      out[i + pair + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

void by_blocks(NormalBlocks* make, const Random& random, std::vector<float>& out) {
  for (std::size_t i = 0; i < out.size(); i += 4 * kNormalBlocks)
    make(i / 4, random.cipher_key().data(), random.stream().data(), out.data() + i);
}

template <class F>
double nanoseconds(F&& make) {
  const auto begin = std::chrono::steady_clock::now();
  make();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  return time.count() / kCount;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main() {
  const Random random(1, Purpose::noise, 2, 3);
  std::vector<float> out(kCount);
  std::vector<double> doubles, ours, plain;
  for (int round = 0; round < kRounds; ++round) {
    doubles.push_back(nanoseconds([&] { in_doubles(random, out); }));
    ours.push_back(nanoseconds([&] { random.fill_normal(out); }));
    plain.push_back(nanoseconds([&] { by_blocks(base::normal_blocks, random, out); }));
  }
  const double before = median(doubles);
  std::printf("ns a normal, median of %d: doubles %.2f, fill_normal %.2f, x86-64-v2 alone %.2f\n",
              kRounds, before, median(ours), median(plain));
  std::printf("ratio %.1f, x86-64-v2 alone %.1f\n", before / median(ours), before / median(plain));
}
