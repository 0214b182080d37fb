// Searches in an index: against all comparisons in double, among equals by key, and of shards that
// have changed since.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/index_search.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "base/half.h"
#include "columns/search/inverted_file.h"
#include "support/temporary_folder.h"
#include "unit/columns/vector_shards.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

void write_queries(const TemporaryFolder& folder, const std::vector<Vector>& queries) {
  Vector all;
  for (const Vector& query : queries)
    all.insert(all.end(), query.begin(), query.end());
  const auto rows = static_cast<std::int64_t>(queries.size());
  folder.write("query.npy", io::make_npy_float({rows, std::int64_t(queries[0].size())}, all));
}

double exact_cosine(const Vector& query, const Vector& other) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < query.size(); ++i) {
    const double stored = half_to_float(float_to_half(other[i]));
    ab += query[i] * stored, aa += double{query[i]} * query[i], bb += stored * stored;
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace

TEST_CASE("an index finds what all comparisons find, with their scores, in the order of queries") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  std::vector<std::pair<std::string, Vector>> all;
  std::vector<std::string> tars;
  for (const char* name : {"a", "b", "c"}) {
    const auto vectors = random_vectors(name[0] == 'b' ? 600 : 300, name[0]);
    tars.push_back(folder / (std::string(name) + ".tar"));
    write_vectors(tars.back(), name, vectors);
    for (std::size_t i = 0; i < vectors.size(); ++i)
      all.emplace_back(name + std::to_string(10000 + i).substr(1), vectors[i]);
  }
  build(folder / "index", tars);
  const std::vector<Vector> queries = random_vectors(5, 77);
  write_queries(folder, queries);
  for (const std::size_t top : {1, 7})
    for (const bool exact : {true, false})
      for (const int threads : {1, 3}) {
        CAPTURE(top, exact, threads);
        const FoundMatches found =
            find_in(folder / "index", folder / "query.npy", top, exact, threads);
        CHECK(found.errors == 0);
        REQUIRE(found.matches.size() == 5 * top);
        for (std::size_t q = 0; q < 5; ++q) {
          std::vector<std::pair<double, std::string>> best;
          for (const auto& [key, vector] : all)
            best.emplace_back(-exact_cosine(queries[q], vector), key);
          std::sort(best.begin(), best.end());
          for (std::size_t i = 0; i < top; ++i) {
            const Json& match = found.matches[q * top + i];
            const double score = -std::round(best[i].first * 1e4) / 1e4;
            CHECK(match == Json{{"kind", "match"},
                                {"rank", i + 1},
                                {"score", match["score"]},
                                {"key", best[i].second},
                                {"path", folder / (best[i].second.substr(0, 1) + ".tar")},
                                {"query", q}});
            CHECK(match["score"].get<double>() == Approx(score).margin(1.01e-4));
          }
        }
      }
}

TEST_CASE("of equal matches the first keys are found, wherever they stand") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  // 40 equal ones, whose keys fall, in two shards; one better, and some worse.
  std::vector<std::string> tars;
  int number = 40;
  for (const char* name : {"a", "b"}) {
    std::vector<shard::Sample> samples;
    for (int i = 0; i < 20; ++i)
      samples.push_back(vector_sample("k" + std::to_string(100 + number--), axis(1, 16, 2)));
    samples.push_back(vector_sample(std::string("worse") + name, axis(2)));
    if (name[0] == 'b')
      samples.push_back(
          vector_sample("zbest", {0.5f, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    tars.push_back(folder / (std::string(name) + ".tar"));
    write_tar(tars.back(), samples);
  }
  build(folder / "index", tars);
  Vector query = axis(1);
  query[0] = 0.5f;
  write_queries(folder, {query});
  for (const bool exact : {true, false}) {
    const FoundMatches found = find_in(folder / "index", folder / "query.npy", 4, exact);
    CHECK(found.keys() == std::vector<std::string>{"zbest", "k101", "k102", "k103"});
    CHECK(found.matches[0]["score"] == 1);
    CHECK(found.matches[1]["score"] == 0.8944);
    const FoundMatches every = find_in(folder / "index", folder / "query.npy", 100, exact);
    REQUIRE(every.matches.size() == 43);
    CHECK(every.keys()[42] == "worseb");
    CHECK(every.matches[42]["score"] == 0);
    CHECK(every.matches[42]["rank"] == 43);
  }
}

TEST_CASE("very many queries are searched for in parts, in order") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  write_vectors(folder / "a.tar", "a", {axis(0), axis(1), axis(2)});
  build(folder / "index", {folder / "a.tar"});
  std::vector<Vector> queries;
  for (std::size_t q = 0; q < 1030; ++q)
    queries.push_back(axis(q % 3));
  write_queries(folder, queries);
  const FoundMatches found = find_in(folder / "index", folder / "query.npy", 1, true);
  REQUIRE(found.matches.size() == 1030);
  for (std::size_t q = 0; q < 1030; ++q) {
    CHECK(found.matches[q]["query"] == q);
    CHECK(found.matches[q]["key"] == "a000" + std::to_string(q % 3));
    CHECK(found.matches[q]["score"] == 1);
  }
}

TEST_CASE("shards that changed or are gone since they were indexed give no match, and are told") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  std::vector<std::string> tars;
  for (const char* name : {"a", "b", "c"}) {
    tars.push_back(folder / (std::string(name) + ".tar"));
    write_vectors(tars.back(), name, random_vectors(30, name[0]));
  }
  const std::string index = folder / "index";
  build(index, tars);
  write_queries(folder, {axis(1)});
  CHECK(find_in(index, folder / "query.npy", 90, true).matches.size() == 90);
  std::filesystem::last_write_time(
      tars[0], std::filesystem::last_write_time(tars[0]) - std::chrono::seconds(9));
  std::filesystem::remove(tars[1]);
  for (const bool exact : {true, false}) {
    const FoundMatches found = find_in(index, folder / "query.npy", 90, exact);
    CHECK(found.errors == 2);
    REQUIRE(found.matches.size() == 30);
    for (const Json& match : found.matches)
      CHECK(match["path"] == tars[2]);
    const std::string add = " since it was indexed; add it again: vfm-embed index " + index + "\n";
    CHECK(found.warnings == tars[0] + ": '" + tars[0] + "' has changed" + add + tars[1] + ": '" +
                                tars[1] + "' is not there any more" + add);
  }
}

TEST_CASE("a shard that cannot be read while it is searched costs its own matches, once") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  const std::string a = folder / "a.tar", b = folder / "b.tar", index = folder / "index";
  write_vectors(a, "a", random_vectors(5, 1));
  write_vectors(b, "b", random_vectors(5, 2));
  build(index, {a, b});
  // Of the same size and time, but no longer what it was.
  const auto time = std::filesystem::last_write_time(a);
  std::string bytes = io::read_file(a);
  for (std::size_t at = 0; at < bytes.size(); at += 512)
    if (bytes.compare(at, 1, "a") == 0) bytes[at + 100] = 'x';
  folder.write("a.tar", bytes);
  std::filesystem::last_write_time(a, time);
  write_queries(folder, random_vectors(2, 3));
  const FoundMatches found = find_in(index, folder / "query.npy", 10, true);
  CHECK(found.errors == 1);
  CHECK(found.matches.size() == 10);
  for (const Json& match : found.matches)
    CHECK(match["path"] == b);
  CHECK_THAT(found.warnings, Catch::StartsWith(a + ": "));
}

TEST_CASE("an index that is damaged where it is searched is told") {
  if (faiss_version().empty()) return;
  const TemporaryFolder folder;
  write_vectors(folder / "a.tar", "a", random_vectors(5, 1));
  build(folder / "index", {folder / "a.tar"});
  write_queries(folder, {axis(1)});
  std::string bytes = io::read_file(folder / "index");
  bytes[64] = static_cast<char>(bytes[64] ^ 1);
  folder.write("index", bytes);
  for (const bool exact : {true, false})
    CHECK_THROWS_WITH(find_in(folder / "index", folder / "query.npy", 1, exact),
                      Catch::Contains("is damaged: where vectors stand"));
  CHECK(is_vectors_file(folder / "query.npy"));
  CHECK_FALSE(is_vectors_file(folder / "none.npy"));
  CHECK_FALSE(is_vectors_file(folder / "a.tar"));
}
