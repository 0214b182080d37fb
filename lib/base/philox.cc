// SPDX-License-Identifier: Apache-2.0
#include "base/philox.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/normals.h"
#include "base/xxh3.h"

namespace vfm {
namespace {

constexpr std::uint32_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

constexpr double kToUnit = 1.0 / 4294967296.0;  // 2^-32

/// Returns the middle of one of 2^32 cells, so never 0 or 1.
double to_unit(std::uint32_t word) {
  return (word + 0.5) * kToUnit;
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c,
                                        std::array<std::uint32_t, 2> k) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{kMul0} * c[0];
    const std::uint64_t p1 = std::uint64_t{kMul1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += kWeyl0;
    k[1] += kWeyl1;
  }
  return c;
}

// The seed is the key of the cipher. Purpose, step and sample key have 128 bits, but beside the
// 64-bit block index the counter has only 64. One more call of the cipher folds them into 64 bits.
Random::Random(std::uint64_t seed, Purpose purpose, std::uint32_t step, std::uint64_t key) noexcept
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {
  const auto folded =
      philox4x32({static_cast<std::uint32_t>(purpose), step, static_cast<std::uint32_t>(key),
                  static_cast<std::uint32_t>(key >> 32)},
                 key_);
  sample_ = {folded[0] ^ folded[2], folded[1] ^ folded[3]};
}

std::array<std::uint32_t, 4> Random::block(std::uint64_t index) const noexcept {
  return philox4x32({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                     sample_[0], sample_[1]},
                    key_);
}

std::uint32_t Random::bits(std::uint64_t i) const noexcept {
  return block(i / 4)[i % 4];
}

double Random::uniform(std::uint64_t i) const noexcept {
  return to_unit(bits(i));
}

float Random::normal(std::uint64_t i) const noexcept {
  float value;
  fill_normal({&value, 1}, i);
  return value;
}

void Random::fill_normal(std::span<float> out, std::uint64_t first) const noexcept {
  constexpr std::size_t kMany = 4 * kNormalBlocks;
  NormalBlocks* const make = best_normal_blocks();
  while (!out.empty()) {
    const std::size_t skip = first % 4;
    const std::size_t count = std::min(kMany - skip, out.size());
    if (count == kMany) {
      make(first / 4, key_.data(), sample_.data(), out.data());
    } else {  // Too few numbers, or not aligned to a block.
      std::array<float, kMany> many;
      make(first / 4, key_.data(), sample_.data(), many.data());
      std::copy_n(many.begin() + static_cast<std::ptrdiff_t>(skip), count, out.begin());
    }
    out = out.subspan(count);
    first += count;
  }
}

void Random::fill_uniform(std::span<float> out, std::uint64_t first) const noexcept {
  for (std::size_t j = 0; j < out.size();) {
    const std::uint64_t i = first + j;
    const auto words = block(i / 4);
    for (std::uint64_t lane = i % 4; lane < 4 && j < out.size(); ++lane)
      out[j++] = static_cast<float>(to_unit(words[lane]));
  }
}

std::vector<std::uint64_t> Random::permutation(std::uint64_t n) const {
  std::vector<std::uint64_t> order(n);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  for (std::uint64_t i = n; i > 1; --i) {
    // The bias is below n / 2^64, because the range is far below the 64 random bits.
    const std::uint64_t word = std::uint64_t{bits(2 * i)} << 32 | bits(2 * i + 1);
    std::swap(order[i - 1], order[word % i]);
  }
  return order;
}

std::uint64_t random_key(std::string_view sample_key) noexcept {
  return xxh3_64(sample_key.data(), sample_key.size());
}

double inverse_normal_cdf(double p) {
  static constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                                 -2.759285104469687e+02, 1.383577518672690e+02,
                                 -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                                 -1.556989798598866e+02, 6.680131188771972e+01,
                                 -1.328068155288572e+01};
  static constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                                 -2.400758277161838e+00, -2.549732539343734e+00,
                                 4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01,
                                 2.445134137142996e+00, 3.754408661907416e+00};
  const auto tail = [](double q) {
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  };
  constexpr double low = 0.02425;
  double x;
  if (p < low) {
    x = tail(std::sqrt(-2 * std::log(p)));
  } else if (p > 1 - low) {
    x = -tail(std::sqrt(-2 * std::log1p(-p)));
  } else {
    const double q = p - 0.5, r = q * q;
    x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
        (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  const double e = 0.5 * std::erfc(-x / std::numbers::sqrt2) - p;
  const double u = e * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
  return x - u / (1 + x * u / 2);
}

}  // namespace vfm
