// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/cell_search.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/philox.h"
#include "curate/vectors/dedup.h"
#include "curate/vectors/sketch.h"
#include "curate/vectors/sketch_cells.h"

using namespace vfm;
using namespace vfm::curate;

namespace {

/// A vector of length 1 whose numbers vary the less the later they stand.
std::vector<float> direction(std::size_t dim, std::uint32_t what, std::uint64_t key) {
  std::vector<float> out(dim);
  Random(7, Purpose::test, what, key).fill_normal(out);
  for (std::size_t d = 0; d < dim; ++d)
    out[d] /= std::sqrt(1 + static_cast<float>(d) / 10);
  to_unit_row(out);
  return out;
}

std::vector<float> sum(const std::vector<float>& a, double by, const std::vector<float>& b) {
  std::vector<float> out(a);
  for (std::size_t d = 0; d < a.size(); ++d)
    out[d] += static_cast<float>(by) * b[d];
  to_unit_row(out);
  return out;
}

/// `n` vectors in groups of which some lie close together; every eighth is a near duplicate of an
/// earlier one, with cosines from 0.96 on.
std::vector<float> planted(std::size_t n, std::size_t dim) {
  std::vector<std::vector<float>> all;
  for (std::size_t i = 0; i < n; ++i) {
    const Random random(7, Purpose::test, 1, i);
    if (i % 8 == 7) {
      const auto of = static_cast<std::size_t>(random.uniform(0) * static_cast<double>(i));
      all.push_back(sum(all[of], 0.3 * random.uniform(1), direction(dim, 3, i)));
    } else {
      const auto group = static_cast<std::uint64_t>(std::pow(random.uniform(2), 2) * 30);
      all.push_back(sum(direction(dim, 2, group), 0.4 + random.uniform(1), direction(dim, 3, i)));
    }
  }
  std::vector<float> rows;
  for (const auto& row : all)
    rows.insert(rows.end(), row.begin(), row.end());
  return rows;
}

struct Found {
  std::vector<NearDuplicate> near;
  CellCounts counts;
};

/// `reversed`: the vectors stand the other way round.
Found in_cells(const std::vector<float>& rows, CellSearch search, int threads,
               bool reversed = false) {
  const std::size_t n = rows.size() / search.dim;
  for (std::size_t i = 0; i < n; ++i)
    search.places.push_back(static_cast<std::uint32_t>(reversed ? n - 1 - i : i));
  search.read = [&](std::size_t place, float* out) {
    const std::size_t i = reversed ? n - 1 - place : place;
    std::copy_n(&rows[i * search.dim], search.dim, out);
  };
  if (search.width == 0) search.width = kWidestSketch;
  share::Slots slots(threads);
  Found found;
  found.counts = find_near_duplicates_in_cells(
      search, slots, [&](const NearDuplicate& one) { found.near.push_back(one); });
  return found;
}

void check_same(const std::vector<NearDuplicate>& got, const std::vector<NearDuplicate>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i].item == want[i].item);
    CHECK(got[i].keeper == want[i].keeper);
    CHECK(got[i].cosine == want[i].cosine);  // to the bit
  }
}

Sketcher trained(const std::vector<float>& rows, std::size_t dim, std::size_t width) {
  share::Slots slots(2);
  return Sketcher::train(rows, dim, width, slots);
}

}  // namespace

TEST_CASE("products of sketches are exact, and never below a cosine by more than they say") {
  for (const std::size_t dim : {20u, 127u, 128u, 300u})
    for (const std::size_t width : {32u, 64u, 128u}) {
      const std::size_t n = 70;
      const std::vector<float> rows = planted(n, dim);
      std::vector<std::int16_t> sketches(n * width);
      const Sketcher sketcher = trained(rows, dim, width);
      sketcher.sketch(rows.data(), n, sketches.data());
      const std::int16_t* pointers[n];
      for (std::size_t i = 0; i < n; ++i)
        pointers[i] = &sketches[i * width];
      std::vector<std::int16_t> tile(width * kTileSide);
      double most = 0;
      for (const std::size_t some : {kTileSide, std::size_t{5}}) {
        fill_tile(pointers + 10, some, width, tile.data());
        TileProducts products;
        tile_products(pointers + 50, width, tile.data(), products);
        for (std::size_t r = 0; r < 4; ++r)
          for (std::size_t j = 0; j < kTileSide; ++j) {
            std::int64_t want = 0;
            for (std::size_t p = 0; p < width && j < some; ++p)
              want += std::int64_t{pointers[50 + r][p]} * pointers[10 + j][p];
            REQUIRE(products[r][j] == want);
            if (j >= some) continue;
            CHECK(sketch_product(pointers[50 + r], pointers[10 + j], width) == want);
            const double cosine =
                near_cosine({&rows[(50 + r) * dim], dim}, {&rows[(10 + j) * dim], dim});
            const double bound = static_cast<double>(want) / kSketchScale / kSketchScale;
            CHECK(bound >= cosine - kSketchSlack);
            most = std::max(most, bound - cosine);
          }
      }
      // All of a short vector is seen: then it is the cosine itself.
      if (dim < width) CHECK(most < kSketchSlack);
    }
}

TEST_CASE("with the whole margin no cell is left out in which a near vector can be") {
  constexpr std::size_t kDim = 200, kRows = 1500, kCells = 400;
  const std::vector<float> rows = planted(kRows, kDim);
  const Sketcher sketcher = trained(rows, kDim, 64);
  std::vector<std::int16_t> sketches(kRows * 64);
  sketcher.sketch(rows.data(), kRows, sketches.data());
  share::Slots slots(2);
  const SketchCells cells = SketchCells::find(sketches, 64, kCells, slots);
  REQUIRE(cells.count() == kCells);
  std::vector<std::uint32_t> own(kRows);
  cells.nearest(sketches.data(), kRows, own.data());
  const double threshold = 0.9;
  std::size_t pairs = 0, across = 0, cut = 0, looked_at = 0;
  for (std::size_t a = 0; a < kRows; ++a) {
    const std::int16_t* four[4];
    std::fill(four, four + 4, &sketches[a * 64]);
    SketchCells::Near near[4], narrow[4];
    cells.near(four, {std::sqrt(2 - 2 * threshold), 1, kCells}, near);
    cells.near(four, {std::sqrt(2 - 2 * threshold), 0.3, 3}, narrow);
    REQUIRE(near[0].cells.front() == own[a]);
    REQUIRE(near[3].cells == near[0].cells);
    CHECK(near[0].all);
    REQUIRE(narrow[0].cells.size() <= 3);
    CHECK(std::equal(narrow[0].cells.begin(), narrow[0].cells.end(), near[0].cells.begin()));
    cut += !narrow[0].all;
    looked_at += near[0].cells.size();
    for (std::size_t b = 0; b < kRows; ++b) {
      if (a == b || near_cosine({&rows[a * kDim], kDim}, {&rows[b * kDim], kDim}) < threshold)
        continue;
      ++pairs;
      across += own[a] != own[b];
      REQUIRE(std::count(near[0].cells.begin(), near[0].cells.end(), own[b]) == 1);
    }
  }
  CHECK(pairs > 200);
  CHECK(across > 20);
  CHECK(cut > 0);
  CHECK(looked_at < kRows * kCells * 3 / 4);  // it does leave out some
}

TEST_CASE("cells of the same centre are no neighbours: others are looked at instead") {
  constexpr std::size_t kDim = 200, kRows = 1600, kCells = 400, kWidth = 64;
  const auto alike = direction(kDim, 5, 0);
  std::vector<float> rows;
  for (std::size_t i = 0; i < kRows; ++i) {  // a third of all centres begin as the same one
    const auto row = i % 3 ? sum(alike, 0.25, direction(kDim, 3, i)) : alike;
    rows.insert(rows.end(), row.begin(), row.end());
  }
  std::vector<std::int16_t> sketches(kRows * kWidth);
  trained(rows, kDim, kWidth).sketch(rows.data(), kRows, sketches.data());
  share::Slots slots(2);
  const SketchCells cells = SketchCells::find(sketches, kWidth, kCells, slots);
  std::vector<std::uint32_t> own(kRows);
  cells.nearest(sketches.data(), kRows, own.data());
  std::sort(own.begin(), own.end());
  own.erase(std::unique(own.begin(), own.end()), own.end());
  const std::int16_t* four[4];
  std::fill(four, four + 4, &sketches[kWidth]);
  SketchCells::Near near[4];
  cells.near(four, {2, 1, kCells}, near);  // everywhere
  // But for few, cells that have vectors.
  CHECK(near[0].cells.size() >= own.size());
  CHECK(near[0].cells.size() <= own.size() + 30);
  CHECK(own.size() + 100 < kCells);
}

TEST_CASE("in cells: with the whole margin what all pairs give, to the bit") {
  for (const std::size_t dim : {30u, 200u}) {
    const std::vector<float> rows = planted(4000, dim);
    for (const double threshold : {0.9, 0.97, 1.0}) {
      share::Slots slots(2);
      const auto want = find_near_duplicates(rows, dim, threshold, slots);
      if (threshold < 1) REQUIRE(want.size() > 50);
      CellSearch search;
      search.dim = dim, search.threshold = threshold;
      search.margin = 1, search.most = 1000;
      const Found whole = in_cells(rows, search, 1);
      check_same(whole.near, want);
      CHECK(whole.counts.cut == 0);
      CHECK(whole.counts.cells == 126);
      check_same(in_cells(rows, search, 3, true).near, want);
      search.width = 32;
      check_same(in_cells(rows, search, 3).near, want);
    }
  }
}

TEST_CASE("in cells: by default nearly all, and the same at any number of slots and anywhere") {
  constexpr std::size_t kDim = 200;
  const std::vector<float> rows = planted(4000, kDim);
  CellSearch search;
  search.dim = kDim, search.threshold = 0.97, search.margin = cell_margin(kDim);
  CHECK(search.margin == 0.5);
  share::Slots slots(2);
  const auto want = find_near_duplicates(rows, kDim, search.threshold, slots);
  const Found one = in_cells(rows, search, 1), three = in_cells(rows, search, 3, true);
  check_same(three.near, one.near);
  CHECK(three.counts.looked_at == one.counts.looked_at);
  CHECK(three.counts.decided == one.counts.decided);
  CHECK(one.counts.looked_at < 4000 * one.counts.cells / 2);
  std::size_t hits = 0;
  for (const NearDuplicate& duplicate : want)
    hits += std::any_of(one.near.begin(), one.near.end(), [&](const NearDuplicate& found) {
      return found.item == duplicate.item && found.keeper == duplicate.keeper &&
             found.cosine == duplicate.cosine;
    });
  CHECK(static_cast<double>(hits) >= 0.98 * static_cast<double>(want.size()));
}

TEST_CASE("in cells: many that are alike, and come late, do not fill the memory") {
  // After 3,072 of their own a block of 4,096 begins, with more pairs than are kept.
  constexpr std::size_t kDim = 16, kOwn = 3072, kAlike = 4200;
  std::vector<float> rows;
  for (std::size_t i = 0; i < kOwn; ++i) {
    const auto row = direction(kDim, 4, i);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  const auto alike = direction(kDim, 5, 0);
  for (std::size_t i = 0; i < kAlike; ++i)
    rows.insert(rows.end(), alike.begin(), alike.end());
  CellSearch search;
  search.dim = kDim, search.threshold = 0.9999;
  const Found found = in_cells(rows, search, 2);
  REQUIRE(found.near.size() == kAlike - 1);
  for (std::size_t i = 0; i < found.near.size(); ++i) {
    REQUIRE(found.near[i].item == kOwn + 1 + i);
    REQUIRE(found.near[i].keeper == kOwn);
    REQUIRE(found.near[i].cosine == 1);
  }
  CHECK(found.counts.looked_at >= kOwn + kAlike);
}

TEST_CASE("in cells: nothing is like a vector without a direction; none and one are fine") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CellSearch search;
  search.dim = 2, search.threshold = 0.5;
  CHECK(in_cells({0, 0, 0, 0, nan, 1, nan, 1}, search, 1).near.empty());
  CHECK(in_cells({}, search, 1).near.empty());
  CHECK(in_cells({1, 2}, search, 1).near.empty());
  CHECK(in_cells({1, 2, -1, -2}, search, 1).near.empty());
  const auto near = in_cells({0, 0, 1, 2, nan, 1, 1e-3f, 2e-3f}, search, 1).near;
  REQUIRE(near.size() == 1);
  CHECK(near[0].item == 3);
  CHECK(near[0].keeper == 1);
}

TEST_CASE("in cells: vectors that are too long to train from are compared all the same") {
  constexpr std::size_t kDim = kLongestTrained + 1;
  std::vector<float> rows;
  for (const std::uint64_t key : {0u, 1u, 2u, 1u, 0u}) {
    const auto row = direction(kDim, 6, key);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  CellSearch search;
  search.dim = kDim, search.threshold = 0.9;
  const auto near = in_cells(rows, search, 2).near;
  REQUIRE(near.size() == 2);
  CHECK(near[0].item == 3);
  CHECK(near[0].keeper == 1);
  CHECK(near[1].item == 4);
  CHECK(near[1].keeper == 0);
}

TEST_CASE("sketches are as wide as memory lets them be, margins all of it in few dimensions") {
  CHECK(cell_margin(3) == 1);
  CHECK(cell_margin(16) == 0.75);
  CHECK(cell_sketch_width(10, 10 * cell_bytes(128)) == 128);
  CHECK(cell_sketch_width(10, 10 * cell_bytes(128) - 1) == 64);
  CHECK(cell_sketch_width(10, 10 * cell_bytes(64) - 1) == 32);
  CHECK(cell_sketch_width(10, 10 * cell_bytes(32) - 1) == 0);
}
