// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/dedup.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/philox.h"

using namespace vfm;
using namespace vfm::curate;

namespace {

/// `n` rows around a few centres: positive numbers, like histograms, with duplicates of many
/// strengths.
std::vector<float> clustered(std::size_t n, std::size_t dim, double spread) {
  std::vector<float> rows(n * dim), noise(n * dim);
  Random(2, Purpose::test).fill_normal(noise);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t d = 0; d < dim; ++d) {
      const double centre = 1 + std::sin(static_cast<double>((i % 7 + 1) * (d + 1)));
      rows[i * dim + d] = static_cast<float>(centre + spread * noise[i * dim + d]);
    }
  return rows;
}

/// The definition, word by word.
std::vector<NearDuplicate> by_definition(const std::vector<float>& rows, std::size_t dim,
                                         double threshold) {
  std::vector<NearDuplicate> result;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < rows.size() / dim; ++i) {
    bool dropped = false;
    for (const std::size_t k : kept) {
      double ab = 0, aa = 0, bb = 0;
      for (std::size_t d = 0; d < dim; ++d) {
        const double a = rows[i * dim + d], b = rows[k * dim + d];
        ab += a * b, aa += a * a, bb += b * b;
      }
      if (ab / std::sqrt(aa * bb) < threshold) continue;
      result.push_back({i, k, ab / std::sqrt(aa * bb)});
      dropped = true;
      break;
    }
    if (!dropped) kept.push_back(i);
  }
  return result;
}

}  // namespace

TEST_CASE("near duplicates are those of the definition, on any number of threads") {
  for (const std::size_t dim : {3u, 64u, 65u, 200u}) {
    const auto rows = clustered(dim == 200 ? 2500 : 700, dim, 0.12);
    const double threshold = 0.9905;
    const auto want = by_definition(rows, dim, threshold);
    REQUIRE(want.size() > 10);
    for (const int threads : {1, 3}) {
      share::Slots slots(threads);
      const auto got = find_near_duplicates(rows, dim, threshold, slots);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i].item == want[i].item);
        CHECK(got[i].keeper == want[i].keeper);
        CHECK(got[i].cosine == Approx(want[i].cosine).margin(1e-6));
      }
    }
  }
}

TEST_CASE("a dropped item drops no other") {
  // Neighbours on a circle, 10 degrees apart: 1 duplicates 0, 2 duplicates only 1, which is gone.
  std::vector<float> rows;
  for (int i = 0; i < 4; ++i) {
    const double angle = i * 10 * 3.14159265358979 / 180;
    rows.push_back(static_cast<float>(std::cos(angle)));
    rows.push_back(static_cast<float>(std::sin(angle)));
  }
  share::Slots slots(1);
  const auto found = find_near_duplicates(rows, 2, 0.98, slots);
  REQUIRE(found.size() == 2);
  CHECK(found[0].item == 1);
  CHECK(found[0].keeper == 0);
  CHECK(found[1].item == 3);
  CHECK(found[1].keeper == 2);
  CHECK(found[1].cosine == Approx(std::cos(10 * 3.14159265358979 / 180)).margin(1e-6));
}

TEST_CASE("length does not count, direction does; nothing is like a row without a direction") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  share::Slots slots(1);
  CHECK(find_near_duplicates({1, 2, 1e-3f, 2e-3f}, 2, 1.0, slots).size() == 1);
  CHECK(find_near_duplicates({1, 2, -1, -2}, 2, 0.5, slots).empty());
  CHECK(find_near_duplicates({0, 0, 0, 0, nan, 1, nan, 1}, 2, 0.5, slots).empty());
  CHECK(find_near_duplicates({}, 2, 0.5, slots).empty());
  CHECK(find_near_duplicates({}, 0, 0.5, slots).empty());
}
