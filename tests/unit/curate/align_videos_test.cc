// SPDX-License-Identifier: Apache-2.0
#include "curate/copies/align_videos.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/philox.h"
#include "curate/copies/crop_sampler.h"
#include "unit/curate/moving_scene.h"

using namespace vfm;
using curate::AlignmentStart;
using curate::CropWindow;
using curate::SignaturePicture;
using drawing::discs;
using drawing::film;

namespace {

std::vector<curate::VideoMatch> match(const std::vector<SignaturePicture>& first,
                                      const std::vector<SignaturePicture>& second, double offset,
                                      const CropWindow& crop = {}) {
  return curate::align_videos(first, second, {offset, crop, 0, second.size()}, {});
}

/// A still box over a 20th of the area.
void add_logo(std::vector<SignaturePicture>& pictures) {
  for (SignaturePicture& picture : pictures)
    for (int y = 2; y < 8; ++y)
      for (int x = 22; x < 30; ++x)
        picture[static_cast<std::size_t>(y * 32 + x)] = 255 * curate::kLevelParts;
}

}  // namespace

TEST_CASE("a cropped part with a logo is found from where it is and how it is cropped") {
  const auto whole = film(discs(1, 2), 0, 20);
  const CropWindow crop{0.12, 0.95, 0.03, 0.87};
  auto part = film(discs(1, 2), 6.1, 7, crop);
  add_logo(part);
  const auto matches = match(whole, part, 24, {0.1, 0.95, 0.05, 0.9});
  REQUIRE(matches.size() == 1);
  const curate::VideoMatch& found = matches[0];
  CHECK(found.offset == Approx(24.4).margin(0.3));
  CHECK(found.crop.left == Approx(crop.left).margin(0.03));
  CHECK(found.crop.right == Approx(crop.right).margin(0.03));
  CHECK(found.crop.top == Approx(crop.top).margin(0.03));
  CHECK(found.crop.bottom == Approx(crop.bottom).margin(0.03));
  CHECK(found.begin == 0);
  CHECK(found.end == part.size());
  CHECK(found.score > 0.7);
}

TEST_CASE("the whole is found in its cropped part, too") {
  const auto whole = film(discs(3, 4), 0, 10);
  const auto part = film(discs(3, 4), 2, 6, {0.1, 0.9, 0.1, 0.9});
  const auto matches = match(part, whole, -8, {-0.125, 1.125, -0.125, 1.125});
  REQUIRE(matches.size() == 1);
  CHECK(matches[0].offset == Approx(-8).margin(0.3));
  CHECK(matches[0].begin >= 8);
}

TEST_CASE("the same view with other motion, and other views, are no match") {
  const auto film_one = film(discs(5, 6), 0, 10);
  CHECK(match(film_one, film(discs(5, 7), 0, 10), 0).empty());
  CHECK(match(film_one, film(discs(8, 9), 0, 10), 0).empty());
  CHECK(match(film_one, film(discs(5, 6), 20, 10), 0).empty());
}

TEST_CASE("where nothing changes nothing is proved; between changes pictures go on") {
  const auto still = [](double x, double y, double) { return 100 + 80 * std::sin(9 * x + 7 * y); };
  CHECK(match(film(still, 0, 10), film(still, 0, 10), 0).empty());
  // Slides that change three times in 24 s.
  const auto slides = [](double x, double y, double t) {
    const double page = std::floor(t / 6.5);
    return 128 + 100 * std::sin((9 + 2 * page) * x + (7 + 3 * page * page) * y);
  };
  const auto matches = match(film(slides, 0, 24), film(slides, 3, 20), 12);
  REQUIRE(matches.size() == 1);
  CHECK(matches[0].begin == 0);
  CHECK(matches[0].end >= 78);
}

TEST_CASE("something small that moves is enough, and other noise in the copy does not hide it") {
  const auto far_away = [](double way) {
    return [way](double x, double y, double t) {
      const double cx = 0.5 + 0.3 * std::sin(0.9 * t + way);
      const double cy = 0.4 + 0.2 * std::sin(1.3 * t + 2 * way);
      const double level = 100 + 40 * std::sin(9 * x + 7 * y);
      return level + (std::hypot(x - cx, y - cy) < 0.025 ? 20 : 0);
    };
  };
  const auto whole = film(far_away(0), 0, 12);
  auto part = film(far_away(0), 3, 6);
  curate::ChangePicture change;
  for (std::size_t k = curate::kFirstMoment; k < curate::moments_end(part.size()); ++k) {
    curate::change_at(part, k, change);
    CHECK(curate::change_strength(change) < 0.9F);
    CHECK(curate::change_noise(change) < 0.05F);
  }
  const auto matches = match(whole, part, 12);
  REQUIRE(matches.size() == 1);
  CHECK(matches[0].begin == 0);
  CHECK(matches[0].end == part.size());
  CHECK(match(whole, film(far_away(2), 3, 6), 12).empty());

  std::vector<float> normal(part.size() * curate::kSignatureCells);
  Random(1, Purpose::test).fill_normal(normal);
  const auto add_noise = [&](std::vector<SignaturePicture>& pictures, double strength) {
    for (std::size_t k = 0; k < pictures.size(); ++k)
      for (std::size_t i = 0; i < curate::kSignatureCells; ++i)
        pictures[k][i] = static_cast<std::uint16_t>(pictures[k][i] +
                                                    strength * curate::kLevelParts *
                                                        normal[k * curate::kSignatureCells + i]);
  };
  add_noise(part, 0.1);
  CHECK(match(whole, part, 12).size() == 1);
  auto noisy = film([](double, double, double) { return 100; }, 0, 2);
  add_noise(noisy, 0.5);
  curate::change_at(noisy, 5, change);
  CHECK(curate::change_strength(change) == Approx(0.5).margin(0.05));
  CHECK(curate::change_noise(change) == Approx(0.5).margin(0.05));
}

TEST_CASE("a match ends where the two part, and less than five seconds are none") {
  const auto one = film(discs(10, 11), 0, 16);
  auto half = film(discs(10, 11), 0, 16);
  const auto other = film(discs(10, 12), 8, 8);
  std::copy(other.begin(), other.end(), half.begin() + 32);
  const auto matches = curate::align_videos(one, half, {0, {}, 4, 24}, {});
  REQUIRE(matches.size() == 1);
  CHECK(matches[0].begin == 0);
  CHECK(matches[0].end >= 28);
  CHECK(matches[0].end <= 38);
  CHECK(match(one, film(discs(10, 11), 2, 4), 8).empty());
}

TEST_CASE("a short match must be a better one, and stillness makes none longer") {
  const curate::MatchRules rules;
  CHECK(rules.least_score(20, 20, 0.2) == Approx(0.83));
  CHECK(rules.least_score(40, 40, 0.2) == Approx(0.665));
  CHECK(rules.least_score(4000, 4000, 0.2) < 0.51);
  CHECK(rules.least_score(4000, 8, 0.2) == Approx(0.83));
  CHECK(rules.least_score(18, 4, 0.2) == 0.9);
  CHECK(rules.least_score(20, 20, 0.01) == 0.95);
  CHECK(rules.least_score(4000, 4000, 0.01) < 0.51);
}

TEST_CASE("offsets without overlap and videos without moments match nothing") {
  const auto one = film(discs(13, 14), 0, 6);
  CHECK(match(one, one, 100).empty());
  CHECK(match(one, one, -100).empty());
  CHECK(match(one, {}, 0).empty());
  CHECK(match({}, one, 0).empty());
  CHECK(match(film(discs(13, 14), 0, 0.75), one, 0).empty());
}

TEST_CASE("of most moments one way to crop has the code of the whole") {
  const auto whole = film(discs(15, 16), 0, 15);
  const auto part = film(discs(15, 16), 0, 15, {0.08, 0.86, 0, 0.93});
  curate::ChangePicture change;
  curate::LookupCodes codes;
  int found = 0, all = 0;
  for (std::size_t k = curate::kFirstMoment; k < curate::moments_end(whole.size()); ++k) {
    curate::change_at(whole, k, change);
    const auto code = curate::index_code(change);
    curate::change_at(part, k, change);
    if (!code || !curate::lookup_codes(change, codes)) continue;
    ++all;
    found += std::any_of(codes.begin(), codes.end(), [&](const auto& tried) {
      return std::find(tried.begin(), tried.end(), *code) != tried.end();
    });
  }
  CHECK(all > 40);
  CHECK(found > all / 3);
}

TEST_CASE("codes that are tried differ in the weakest four signs at most, the likeliest is first") {
  const auto whole = film(discs(17, 18), 0, 2);
  curate::ChangePicture change;
  curate::LookupCodes codes;
  curate::change_at(whole, 3, change);
  REQUIRE(curate::lookup_codes(change, codes));
  CHECK(codes[0][0] == *curate::index_code(change));
  for (const auto& tried : codes)
    for (const std::uint32_t code : tried) {
      CHECK(code >> curate::kCodeBits == 0);
      CHECK(std::popcount(code ^ tried[0]) <= 4);
    }
  const CropWindow last = curate::crop_of_way(curate::kCropWays - 1);
  CHECK(last.left == 0.15);
  CHECK(last.right == 0.85);
  CHECK(last.bottom == 0.85);
  curate::change_at(film([](double, double, double) { return 90; }, 0, 1), 2, change);
  CHECK_FALSE(curate::index_code(change));
  CHECK_FALSE(curate::lookup_codes(change, codes));
}

TEST_CASE("two pictures have too little in common, or their sizes are too far apart") {
  CHECK(curate::CropSampler::of({}));
  CHECK(curate::CropSampler::of({0.15, 0.85, 0.15, 0.85}));
  CHECK_FALSE(curate::CropSampler::of({0.7, 1.7, 0, 1}));
  CHECK_FALSE(curate::CropSampler::of({0.3, 0.7, 0, 1}));
  CHECK_FALSE(curate::CropSampler::of({0.9, 0.1, 0, 1}));
}
