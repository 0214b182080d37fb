// SPDX-License-Identifier: Apache-2.0
#include "data/packing.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "support/epoch_packs.h"

using namespace vfm;
using namespace vfm::data;

namespace {

/// Half images, half videos of 17 to 121 frames (steps of 4), about 256 x 256 pixels in five aspect
/// ratios; a token is 2 x 2 pixels of a latent that is 4 times smaller in time, 8 in space.
std::vector<std::int64_t> mixed_set(std::size_t samples, double images) {
  constexpr int kShapes[5][2] = {{16, 16}, {12, 20}, {20, 12}, {14, 18}, {18, 14}};
  const Random random(1, Purpose::test);
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < samples; ++i) {
    const auto& shape = kShapes[random.bits(3 * i) % 5];
    const bool image = random.uniform(3 * i + 1) < images;
    const std::int64_t frames = image ? 1 : 5 + random.bits(3 * i + 2) % 27;
    tokens.push_back(shape[0] * shape[1] * frames);
  }
  return tokens;
}

/// The set that tests/bench/pack_plan.cc takes: videos of 3 to 16 times an image's tokens, so that
/// none has more squares than a pack should.
std::vector<std::int64_t> even_set(std::size_t samples) {
  constexpr int kAreas[5] = {256, 240, 240, 252, 252};
  const Random random(2, Purpose::test);
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < samples; ++i)
    tokens.push_back(kAreas[random.bits(3 * i) % 5] *
                     (random.bits(3 * i + 1) % 2 == 0 ? 1 : 3 + random.bits(3 * i + 2) % 14));
  return tokens;
}

/// What the header says, read literally: a list as the window, searched from end to end.
class Slowly {
 public:
  Slowly(const std::vector<std::int64_t>& tokens, const PackingOptions& options)
      : tokens_(tokens), options_(options) {
    fill();
  }

  std::vector<Pack> best_fit() {
    std::vector<Pack> packs;
    while (!window_.empty()) {
      Pack pack = {take(0)};
      for (;;) {
        const std::int64_t room = options_.tokens - sum(pack, 1);
        std::size_t best = window_.size();
        for (std::size_t k = 0; k < window_.size(); ++k)
          if (at(k) <= room && (best == window_.size() || at(k) > at(best))) best = k;
        if (best == window_.size()) break;
        pack.push_back(take(best));
      }
      packs.push_back(pack);
    }
    return packs;
  }

  std::vector<Pack> balanced() {
    std::vector<Pack> packs;
    while (!window_.empty())
      packs.push_back(balanced_pack());
    return packs;
  }

 private:
  std::int64_t at(std::size_t k) const { return tokens_[window_[k]]; }
  void fill() {
    while (window_.size() < static_cast<std::size_t>(options_.window) && next_ < tokens_.size())
      window_.push_back(next_++);
  }
  std::size_t take(std::size_t k) {
    const std::size_t sample = window_[k];
    window_.erase(window_.begin() + static_cast<std::ptrdiff_t>(k));
    fill();
    return sample;
  }
  std::int64_t sum(const std::vector<std::size_t>& samples, int power) const {
    std::int64_t total = 0;
    for (const std::size_t i : samples)
      total += power == 1 ? tokens_[i] : tokens_[i] * tokens_[i];
    return total;
  }
  std::int64_t asked() const {
    std::vector<std::size_t> left = window_;
    for (std::size_t i = next_; i < tokens_.size(); ++i)
      left.push_back(i);
    const auto share = [&](const std::vector<std::size_t>& of) {
      return std::llround(static_cast<double>(options_.tokens) *
                          (static_cast<double>(sum(of, 2)) / static_cast<double>(sum(of, 1))));
    };
    return (4 * share(left) + share(window_)) / 5;
  }

  /// What could close the pack: none, one or two lengths, in the order that decides between equals.
  std::vector<std::vector<std::int64_t>> closings(std::int64_t room) const {
    std::vector<std::int64_t> lengths;
    for (std::size_t k = 0; k < window_.size(); ++k)
      lengths.push_back(at(k));
    std::sort(lengths.begin(), lengths.end());
    std::vector<std::vector<std::int64_t>> all = {{}};
    for (std::size_t k = 0; k < lengths.size() && lengths[k] <= room; ++k) {
      all.push_back({lengths[k]});
      // The longest beside it, which is not itself.
      for (std::size_t j = lengths.size() - 1; j > k; --j)
        if (lengths[k] + lengths[j] <= room) {
          all.push_back({lengths[k], lengths[j]});
          break;
        }
    }
    return all;
  }

  Pack balanced_pack() {
    const std::int64_t squares = asked(),
                       price = std::max<std::int64_t>(1, 3 * squares / options_.tokens);
    Pack pack = {take(0)};
    std::int64_t least = -1;
    std::size_t kept = 0;
    std::vector<std::int64_t> closing;
    for (;;) {
      const std::int64_t room = options_.tokens - sum(pack, 1), wanted = squares - sum(pack, 2);
      for (const std::vector<std::int64_t>& lengths : closings(room)) {
        std::int64_t miss = wanted, empty = room;
        for (const std::int64_t n : lengths)
          miss -= n * n, empty -= n;
        miss = std::abs(miss) + price * empty;
        if (least < 0 || miss < least) least = miss, kept = pack.size(), closing = lengths;
      }
      std::vector<std::int64_t> lengths;
      for (std::size_t k = 0; k < window_.size(); ++k)
        lengths.push_back(at(k));
      std::size_t best = window_.size();
      std::int64_t nearest = 0;
      for (std::size_t k = 0; k < window_.size(); ++k) {
        const std::int64_t after = room - at(k), missing = wanted - at(k) * at(k);
        if (after < 0) continue;
        const std::int64_t low = std::ranges::min(lengths) * after;
        const std::int64_t high = std::min(after, std::ranges::max(lengths)) * after;
        const std::int64_t beyond = std::max({std::int64_t{0}, low - missing, missing - high});
        if (best == window_.size() || beyond < nearest) best = k, nearest = beyond;
      }
      if (best == window_.size()) break;
      pack.push_back(take(best));
    }
    window_.insert(window_.end(), pack.begin() + static_cast<std::ptrdiff_t>(kept), pack.end());
    std::sort(window_.begin(), window_.end());
    pack.resize(kept);
    for (const std::int64_t n : closing)
      for (std::size_t k = 0; k < window_.size(); ++k)
        if (at(k) == n) {
          pack.push_back(take(k));
          break;
        }
    return pack;
  }

  const std::vector<std::int64_t>& tokens_;
  PackingOptions options_;
  std::vector<std::size_t> window_;
  std::size_t next_ = 0;
};

/// Every sample once, no pack too full, the oldest that is left opens each, and none waits for more
/// packs than the window has samples.
void check_plan(const std::vector<std::int64_t>& tokens, const std::vector<Pack>& packs,
                const PackingOptions& options) {
  const auto window = static_cast<std::size_t>(options.window);
  std::vector<std::size_t> pack_of(tokens.size(), packs.size());
  std::vector<std::size_t> seen_at(tokens.size(), packs.size());
  std::size_t oldest = 0, taken = 0, seen = 0;
  for (std::size_t p = 0; p < packs.size(); ++p) {
    for (; seen < std::min(tokens.size(), taken + window); ++seen)
      seen_at[seen] = p;
    while (oldest < tokens.size() && pack_of[oldest] < packs.size())
      ++oldest;
    bool good = !packs[p].empty() && packs[p].front() == oldest;
    std::int64_t sum = 0;
    for (const std::size_t i : packs[p]) {
      good = good && pack_of[i] == packs.size();
      pack_of[i] = p;
      sum += tokens[i];
    }
    if (!good || sum > options.tokens) FAIL("pack " << p);
    taken += packs[p].size();
  }
  REQUIRE(taken == tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)  // one that was taken at sight was not waiting
    if (seen_at[i] <= pack_of[i] && pack_of[i] - seen_at[i] >= window) FAIL("sample " << i);
}

/// Over steps of eight packs: the standard deviation of the share of samples of at most `most`
/// tokens, and the mean squares of a step's heaviest pack over those of its mean one.
std::pair<double, double> of_steps(const std::vector<std::int64_t>& tokens,
                                   const std::vector<Pack>& packs, std::int64_t most) {
  double shares = 0, squared_shares = 0, heaviest = 0, work = 0, steps = 0;
  for (std::size_t p = 0; p + 8 <= packs.size(); p += 8, ++steps) {
    double images = 0, all = 0, heavy = 0;
    for (std::size_t k = p; k < p + 8; ++k) {
      double squares = 0;
      for (const std::size_t i : packs[k]) {
        images += tokens[i] <= most;
        ++all;
        squares += static_cast<double>(tokens[i] * tokens[i]);
      }
      heavy = std::max(heavy, squares);
      work += squares / 8;
    }
    shares += images / all;
    squared_shares += images / all * images / all;
    heaviest += heavy;
  }
  return {std::sqrt(squared_shares / steps - shares / steps * shares / steps), heaviest / work};
}

bool is_usage_error(const std::vector<std::int64_t>& tokens, const PackingOptions& options) {
  try {
    plan_packs(tokens, options);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::usage;
  }
  return false;
}

}  // namespace

TEST_CASE("best fit: the oldest opens the pack, then the longest that fits, of equals the oldest") {
  const std::vector<std::int64_t> tokens = {3, 5, 2, 5, 1, 9};
  const std::vector<Pack> expected = {{0, 1, 2}, {3, 4}, {5}};
  for (const int window : {1, 4, 100})
    CHECK(plan_packs(tokens, {.tokens = 10, .window = window, .packing = Packing::best_fit}) ==
          expected);
  CHECK(plan_packs({}, {.packing = Packing::best_fit}).empty());
  CHECK(plan_packs({}, {}).empty());
}

TEST_CASE(
    "balanced: two full packs of 54 squares each, where best fit makes one of 72 and one of 36") {
  const std::vector<std::int64_t> tokens = {6, 6, 3, 3, 3, 3};
  CHECK(plan_packs(tokens, {.tokens = 12, .packing = Packing::best_fit}) ==
        std::vector<Pack>{{0, 1}, {2, 3, 4, 5}});
  CHECK(plan_packs(tokens, {.tokens = 12}) == std::vector<Pack>{{0, 2, 3}, {1, 4, 5}});
  CHECK(plan_packs(tokens, {.tokens = 12, .window = 1}) == std::vector<Pack>{{0, 1}, {2, 3, 4, 5}});
}

TEST_CASE("both plans are those of a literal search") {
  int balanced_ones = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Random random(seed, Purpose::test);
    const std::uint64_t most = std::array<std::uint64_t, 4>{7, 500, 150, 60}[seed % 4];
    std::vector<std::int64_t> tokens;
    for (std::uint64_t i = 0; i < 200; ++i)
      tokens.push_back(1 + random.bits(i) % most);
    for (const int window : {1, 2, 20, 64, 1000}) {
      PackingOptions options{.tokens = 500, .window = window, .packing = Packing::best_fit};
      const auto fullest = Slowly(tokens, options).best_fit();
      CHECK(plan_packs(tokens, options) == fullest);
      options.packing = Packing::balanced;
      const auto even = Slowly(tokens, options).balanced();
      const bool better = pack_stats(tokens, even, options).square_spread <=
                          0.9 * pack_stats(tokens, fullest, options).square_spread;
      const bool taken = better && 100 * even.size() <= 101 * fullest.size();
      CHECK(plan_packs(tokens, options) == (taken ? even : fullest));
      balanced_ones += taken;
    }
  }
  CHECK(balanced_ones > 8);
}

TEST_CASE("a mixed image and video set is packed to 98 % with a window of 64") {
  for (const double images : {0.5, 0.8}) {
    const auto tokens = mixed_set(16384, images);
    for (const Packing packing : {Packing::best_fit, Packing::balanced}) {
      const PackingOptions options{.tokens = 8192, .window = 64, .packing = packing};
      const auto packs = plan_packs(tokens, options);
      CHECK(pack_stats(tokens, packs, options).fill >= 0.98);
      check_plan(tokens, packs, options);
    }
  }
}

TEST_CASE("balanced packs are of like work, as full, and no less mixed than others") {
  const auto tokens = even_set(100'000);
  for (const int window : {64, 1024}) {
    const PackingOptions options{.tokens = 8192, .window = window};
    PackingOptions before = options;
    before.packing = Packing::best_fit;
    const auto packs = plan_packs(tokens, options), others = plan_packs(tokens, before);
    check_plan(tokens, packs, options);
    const PackStats now = pack_stats(tokens, packs, options);
    CHECK(now.fill >= 0.985);
    CHECK(now.square_spread <= 0.05);
    CHECK(pack_stats(tokens, others, before).square_spread > 0.2);
    const auto [share, heaviest] = of_steps(tokens, packs, 256);
    const auto [other_share, other_heaviest] = of_steps(tokens, others, 256);
    CHECK(share <= 1.05 * other_share);
    CHECK(heaviest < 1.06);
    CHECK(other_heaviest > 1.3);
  }
}

TEST_CASE("of any lengths packs are as full as best fit makes them, less a hundredth") {
  struct Kind {
    const char* name;
    std::function<std::int64_t(double u, double v)> length;  // of two uniform numbers
  };
  const auto either = [](std::int64_t a, std::int64_t b) {
    return [=](double u, double) { return u < 0.5 ? a : b; };
  };
  const std::vector<Kind> kinds = {
      {"equal", [](double, double) { return 1000; }},
      {"of one pack each", [](double, double) { return 8192; }},
      {"just above half", [](double, double) { return 4097; }},
      {"one token", [](double, double) { return 1; }},
      {"two", either(256, 4096)},
      {"two, one of a pack", either(256, 8192)},
      {"two that do not fit together", either(3000, 6000)},
      {"heavy tail",
       [](double u, double) { return std::min(8192.0, 100 / std::pow(1 - u, 1 / 1.2)); }},
      {"log-normal",
       [](double u, double v) {
         return std::clamp(std::exp(6.5 + std::sqrt(-2 * std::log(1 - u)) * std::cos(6.2832 * v)),
                           1.0, 8192.0);
       }},
      {"near the capacity", [](double u, double) { return 4915 + 3277 * u; }},
      {"near the capacity, and fillings",
       [](double u, double v) { return v < 0.3 ? 4915 + 3277 * u : 1 + 499 * u; }},
      {"about a third", [](double u, double) { return 2500 + 500 * u; }},
      {"any", [](double u, double) { return 1 + 8191 * u; }},
      {"up to a quarter", [](double u, double) { return 1 + 2047 * u; }},
  };
  for (const Kind& kind : kinds)
    for (const std::size_t samples : {1, 2, 10, 65, 300, 3000})
      for (const int window : {1, 2, 5, 64})
        for (const bool sorted : {false, true}) {
          const Random random(samples, Purpose::test);
          std::vector<std::int64_t> tokens;
          for (std::size_t i = 0; i < samples; ++i)
            tokens.push_back(kind.length(random.uniform(2 * i), random.uniform(2 * i + 1)));
          if (sorted) std::sort(tokens.begin(), tokens.end());
          const PackingOptions options{.tokens = 8192, .window = window};
          PackingOptions fullest = options;
          fullest.packing = Packing::best_fit;
          const auto packs = plan_packs(tokens, options), others = plan_packs(tokens, fullest);
          INFO(kind.name << ", " << samples << " samples, window " << window);
          check_plan(tokens, packs, options);
          CHECK(100 * packs.size() <= 101 * others.size());
          if (tokens.front() == tokens.back() && sorted) CHECK(packs == others);
          CHECK(pack_stats(tokens, packs, options).square_spread <=
                pack_stats(tokens, others, options).square_spread);
        }
}

TEST_CASE(
    "packs of a thousand million tokens are balanced, of more are not, and nothing overflows") {
  const std::int64_t most = std::int64_t{1} << 30;
  auto tokens = even_set(2000);
  for (std::int64_t& n : tokens)
    n *= most / 8192;
  for (const std::int64_t capacity : {most, most + 1}) {
    const PackingOptions options{.tokens = capacity};
    const auto packs = plan_packs(tokens, options);
    check_plan(tokens, packs, options);
    CHECK((pack_stats(tokens, packs, options).square_spread < 0.1) == (capacity == most));
  }
  const std::vector<std::int64_t> full(100, most);
  CHECK(plan_packs(full, {.tokens = most}).size() == 100);
}

TEST_CASE("many short samples fill a pack beyond the window") {
  const std::vector<std::int64_t> tokens(4000, 48);
  const PackingOptions options{.tokens = 48 * 200, .window = 8};
  const auto packs = plan_packs(tokens, options);
  CHECK(packs.size() == 20);
  CHECK(pack_stats(tokens, packs, options).fill == Approx(1));
  CHECK(pack_stats(tokens, packs, options).square_spread == Approx(0).margin(1e-6));
}

TEST_CASE("pack statistics by hand") {
  const std::vector<std::int64_t> tokens = {6, 2, 4};
  const std::vector<Pack> packs = {{0, 1}, {2}};  // squares: 40 and 16
  const PackStats stats = pack_stats(tokens, packs, {.tokens = 8});
  CHECK(stats.fill == Approx(12.0 / 16));
  CHECK(stats.square_spread == Approx(12.0 / 28));
}

TEST_CASE("lengths and options that cannot be are refused") {
  CHECK(is_usage_error({5, 11}, {.tokens = 10}));
  CHECK(is_usage_error({0}, {.tokens = 10}));
  CHECK(is_usage_error({-4}, {.tokens = 10}));
  CHECK(is_usage_error({1}, {.tokens = 0}));
  CHECK(is_usage_error({1}, {.tokens = 10, .window = 0}));
  CHECK(is_usage_error({1}, {.tokens = 10, .window = -1}));
}
