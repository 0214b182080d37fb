// Lists and codes by FAISS, against what is computed in double, pair by pair.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/inverted_file.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/philox.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

double product(const float* a, const float* b, std::size_t dim) {
  double sum = 0;
  for (std::size_t d = 0; d < dim; ++d)
    sum += double{a[d]} * b[d];
  return sum;
}

std::vector<float> unit_vectors(std::size_t n, std::size_t dim, std::uint32_t what) {
  std::vector<float> out(n * dim);
  Random(24, Purpose::test, what).fill_normal(out);
  for (std::size_t i = 0; i < n; ++i) {
    const double length = std::sqrt(product(&out[i * dim], &out[i * dim], dim));
    for (std::size_t d = 0; d < dim; ++d)
      out[i * dim + d] = static_cast<float>(out[i * dim + d] / length);
  }
  return out;
}

/// n vectors in ten narrow heaps, one heap after the other.
std::vector<float> heaps(std::size_t n, std::size_t dim, const std::vector<float>& middles) {
  auto out = unit_vectors(n, dim, 7);
  for (std::size_t i = 0; i < n; ++i) {
    float* vector = &out[i * dim];
    for (std::size_t d = 0; d < dim; ++d)
      vector[d] = 0.1f * vector[d] + middles[i * 10 / n * dim + d];
    const double length = std::sqrt(product(vector, vector, dim));
    for (std::size_t d = 0; d < dim; ++d)
      vector[d] = static_cast<float>(vector[d] / length);
  }
  return out;
}

/// Vectors in the lists and codes that were trained on them.
struct Coded {
  Coded(std::size_t count, std::size_t width, std::size_t lists, int threads = 1)
      : n(count), dim(width), vectors(unit_vectors(n, dim, 1)) {
    share::Slots slots(threads);
    trained = train_lists(vectors, dim, lists, slots);
    const InvertedFile file(dim, trained.centres, trained.words);
    list.resize(n);
    codes.resize(n * code_bytes(dim));
    file.code(vectors.data(), n, list.data(), codes.data());
  }

  /// What the code of vector `i` stands for.
  std::vector<float> stored(std::size_t i) const {
    const std::size_t bytes = code_bytes(dim), width = dim / bytes;
    std::vector<float> out(dim);
    for (std::size_t d = 0; d < dim; ++d)
      out[d] =
          trained.centres[list[i] * dim + d] +
          trained
              .words[(d / width * kCodeWords + codes[i * bytes + d / width]) * width + d % width];
    return out;
  }

  std::size_t n, dim;
  std::vector<float> vectors;
  TrainedLists trained;
  std::vector<std::uint32_t> list;
  std::vector<std::uint8_t> codes;
};

}  // namespace

TEST_CASE("a code has a byte for the widest piece up to eight that divides the dimension") {
  CHECK(code_bytes(768) == 96);
  CHECK(code_bytes(234) == 39);
  CHECK(code_bytes(7) == 1);
  CHECK(code_bytes(11) == 11);
}

TEST_CASE("products of many vectors are theirs") {
  for (const std::size_t n : {1, 3, 100}) {
    const auto queries = unit_vectors(5, 37, 1), vectors = unit_vectors(n, 37, 2);
    std::vector<float> out;
    unit_products(queries, vectors, 37, out);
    REQUIRE(out.size() == 5 * n);
    for (std::size_t q = 0; q < 5; ++q)
      for (std::size_t i = 0; i < n; ++i)
        CHECK(out[q * n + i] ==
              Approx(product(&queries[q * 37], &vectors[i * 37], 37)).margin(1e-5));
  }
}

TEST_CASE("each heap of vectors has a centre in it, with the same bits for any number of threads") {
  const std::size_t dim = 24, n = 5000;
  const auto middles = unit_vectors(10, dim, 3);
  const auto vectors = heaps(n, dim, middles);
  share::Slots one(1), three(3);
  const TrainedLists found = train_lists(vectors, dim, 40, one);
  const TrainedLists again = train_lists(vectors, dim, 40, three);
  CHECK(found.centres == again.centres);
  CHECK(found.words == again.words);
  REQUIRE(found.centres.size() == 40 * dim);
  REQUIRE(found.words.size() == kCodeWords * dim);
  for (std::size_t c = 0; c < 40; ++c)
    CHECK(product(&found.centres[c * dim], &found.centres[c * dim], dim) == Approx(1).margin(1e-5));
  for (std::size_t heap = 0; heap < 10; ++heap) {
    double nearest = -1;
    for (std::size_t c = 0; c < 40; ++c)
      nearest = std::max(nearest, product(&middles[heap * dim], &found.centres[c * dim], dim));
    CHECK(nearest > 0.99);
  }
}

TEST_CASE("a vector is in the list of its nearest centre, and its code stands for about itself") {
  for (const std::size_t dim : {20, 7, 11}) {
    CAPTURE(dim);
    const Coded coded(2000, dim, 16);
    double error = 0;
    for (std::size_t i = 0; i < coded.n; ++i) {
      const float* vector = &coded.vectors[i * dim];
      double best = -2;
      for (std::size_t c = 0; c < 16; ++c)
        best = std::max(best, product(vector, &coded.trained.centres[c * dim], dim));
      CHECK(product(vector, &coded.trained.centres[coded.list[i] * dim], dim) ==
            Approx(best).margin(1e-5));
      const auto stored = coded.stored(i);
      for (std::size_t d = 0; d < dim; ++d)
        error += std::pow(double{stored[d]} - vector[d], 2);
    }
    CHECK(error < 0.2 * static_cast<double>(coded.n));
  }
}

TEST_CASE("fewer vectors than words are coded without loss") {
  const Coded coded(5, 16, 2);
  for (std::size_t i = 0; i < coded.n; ++i) {
    const auto stored = coded.stored(i);
    CHECK(product(stored.data(), &coded.vectors[i * 16], 16) == Approx(1).margin(1e-5));
  }
}

TEST_CASE("the largest products are found, in the nearest lists, among those that are taken") {
  const Coded coded(3000, 16, 20);
  const InvertedFile file(16, coded.trained.centres, coded.trained.words);
  std::vector<std::vector<std::uint32_t>> rows(20);
  std::vector<std::vector<std::uint8_t>> codes(20);
  for (std::uint32_t i = 0; i < coded.n; ++i) {
    rows[coded.list[i]].push_back(i);
    codes[coded.list[i]].insert(codes[coded.list[i]].end(), &coded.codes[i * 2],
                                &coded.codes[i * 2] + 2);
  }
  const auto query = unit_vectors(1, 16, 5);
  std::vector<std::size_t> order(20);
  for (std::size_t c = 0; c < 20; ++c)
    order[c] = c;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return product(query.data(), &coded.trained.centres[a * 16], 16) >
           product(query.data(), &coded.trained.centres[b * 16], 16);
  });
  for (const std::uint64_t wanted : {1, 700, 3000}) {
    for (const bool some : {false, true}) {
      CAPTURE(wanted, some);
      std::vector<std::size_t> asked;
      InvertedFile::Search search;
      search.codes = wanted;
      search.most = 60;
      search.list = [&](std::size_t list) {
        asked.push_back(list);
        return InvertedFile::List{rows[list], codes[list].data()};
      };
      if (some) search.take = [](std::uint32_t row) { return row % 3 == 0; };
      const auto found = file.search(query, search);
      REQUIRE(std::is_sorted(found.begin(), found.end()));
      // As many lists as are needed, the nearest first.
      REQUIRE(std::equal(asked.begin(), asked.end(), order.begin()));
      std::vector<std::uint32_t> seen;
      for (const std::size_t list : asked)
        seen.insert(seen.end(), rows[list].begin(), rows[list].end());
      CHECK(seen.size() >= wanted);
      CHECK(seen.size() - rows[asked.back()].size() < wanted);
      if (some) std::erase_if(seen, [](std::uint32_t row) { return row % 3 != 0; });
      const auto score = [&](std::uint32_t row) {
        return product(query.data(), coded.stored(row).data(), 16);
      };
      std::sort(seen.begin(), seen.end(),
                [&](std::uint32_t a, std::uint32_t b) { return score(a) > score(b); });
      REQUIRE(found.size() == std::min<std::size_t>(60, seen.size()));
      for (const std::uint32_t row : found) {
        CHECK(std::find(seen.begin(), seen.end(), row) != seen.end());
        CHECK(score(row) >= score(seen[found.size() - 1]) - 1e-5);
      }
      CHECK(std::set(found.begin(), found.end()).size() == found.size());
    }
  }
}

TEST_CASE("what a list throws ends the search, and a search for nothing finds nothing") {
  const Coded coded(300, 8, 4);
  const InvertedFile file(8, coded.trained.centres, coded.trained.words);
  InvertedFile::Search search;
  search.codes = 1;
  search.list = [](std::size_t) -> InvertedFile::List { fail("damaged"); };
  CHECK(file.search({coded.vectors.data(), 8}, search).empty());
  search.most = 1;
  CHECK_THROWS_AS(file.search({coded.vectors.data(), 8}, search), Error);
}
