// Clusters of directions: they are found, and the same on any machine with any number of slots.
// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/clusters.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/philox.h"

using namespace vfm;
using namespace vfm::curate;

namespace {

/// `n` rows of length 1 around `heaps` directions in turn, which are axes. `spread`: a power of
/// two, so that no product here is rounded.
std::vector<float> heaped(std::size_t n, std::size_t dim, std::size_t heaps, float spread) {
  std::vector<float> rows(n * dim);
  const Random random(3, Purpose::test);
  for (std::size_t i = 0; i < n; ++i) {
    double length = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      const auto noise = static_cast<float>(random.uniform(i * dim + d) - 0.5);
      const float value = (d == i % heaps ? 1.0f : 0.0f) + spread * noise;
      rows[i * dim + d] = value;
      length += double{value} * value;
    }
    for (std::size_t d = 0; d < dim; ++d)
      rows[i * dim + d] = static_cast<float>(rows[i * dim + d] / std::sqrt(length));
  }
  return rows;
}

std::vector<std::uint32_t> names(const std::vector<Clusters::Nearest>& nearest) {
  std::vector<std::uint32_t> clusters;
  for (const Clusters::Nearest& one : nearest)
    clusters.push_back(one.cluster);
  return clusters;
}

}  // namespace

TEST_CASE("clusters: heaps of vectors are found, also more than a tile of centres") {
  share::Slots slots(2);
  for (const std::size_t heaps : {1u, 3u, 16u, 17u, 40u}) {
    const std::size_t dim = 48, n = 1200;
    const auto rows = heaped(n, dim, heaps, 0.125f);
    const Clusters clusters = Clusters::find(rows, dim, heaps, 5, slots);
    REQUIRE(clusters.count() == heaps);
    const auto found = clusters.nearest(rows, slots);
    const auto cluster = names(found);
    for (std::size_t i = heaps; i < n; ++i)
      REQUIRE(cluster[i] == cluster[i % heaps]);
    auto first = std::vector(cluster.begin(), cluster.begin() + static_cast<std::ptrdiff_t>(heaps));
    std::sort(first.begin(), first.end());
    CHECK(std::adjacent_find(first.begin(), first.end()) == first.end());
    for (const Clusters::Nearest& one : found)
      REQUIRE(one.cosine > 0.9f);
  }
}

TEST_CASE(
    "clusters: the cosine is that of the row and the middle of its heap, whatever came with it") {
  share::Slots slots(1);
  // Two rows at right angles: their middle lies 45 degrees from both.
  const std::vector<float> rows = {1, 0, 0, 1};
  const Clusters one = Clusters::find(rows, 2, 1, 0, slots);
  const auto both = one.nearest(rows, slots);
  for (const Clusters::Nearest& nearest : both)
    CHECK(nearest.cosine == Approx(std::sqrt(0.5)));
  const auto alone = one.nearest({0, 1}, slots);
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].cosine == both[1].cosine);
  CHECK(one.nearest({}, slots).empty());
}

TEST_CASE("clusters: there are no more than different rows") {
  share::Slots slots(1);
  std::vector<float> rows;
  for (int i = 0; i < 30; ++i)
    rows.insert(rows.end(), i % 3 == 0 ? std::initializer_list<float>{1, 0}
                                       : std::initializer_list<float>{0, 1});
  const Clusters clusters = Clusters::find(rows, 2, 20, 1, slots);
  CHECK(clusters.count() == 2);
  const auto cluster = names(clusters.nearest(rows, slots));
  for (std::size_t i = 0; i < cluster.size(); ++i)
    CHECK((cluster[i] == cluster[0]) == (i % 3 == 0));
}

TEST_CASE("clusters: every bit is the same on any processor, with any number of slots") {
  const std::size_t dim = 37, n = 1500, wanted = 21;
  const auto rows = heaped(n, dim, 11, 2.0f);
  for (const int threads : {1, 3}) {
    share::Slots slots(threads);
    const auto found = Clusters::find(rows, dim, wanted, 9, slots).nearest(rows, slots);
    REQUIRE(found.size() == n);
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const Clusters::Nearest& one : found)
      for (const std::uint32_t word : {one.cluster, std::bit_cast<std::uint32_t>(one.cosine)})
        hash = (hash ^ word) * 0x100000001b3;
    CHECK(hash == 0xa03dd236b0614d96);
  }
}
