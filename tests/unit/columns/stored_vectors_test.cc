// Vectors as they stand in tars.
// SPDX-License-Identifier: Apache-2.0
#include "columns/search/stored_vectors.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "curate/vectors/look.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"
#include "unit/columns/vector_shards.h"

using namespace vfm;
using namespace vfm::columns;

TEST_CASE("a vector with a length is brought to 1; zeros and what is not finite have none") {
  std::vector<float> good = {3, 4}, small = {0, 6e-8f}, zeros(4);
  CHECK(to_unit_length(good));
  CHECK(good[0] == Approx(0.6));
  CHECK(to_unit_length(small));
  CHECK(small[1] == 1);
  CHECK_FALSE(to_unit_length(zeros));
  for (const float wild : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> bad = {1, wild};
    CHECK_FALSE(to_unit_length(bad));
  }
}

TEST_CASE("the cosine of a stored vector does not depend on its length, and is 0 without one") {
  CHECK(stored_cosine({1, 0}, {3, 4}) == Approx(0.6));
  CHECK(stored_cosine({1, 0}, {7, 0}) == 1);
  CHECK(stored_cosine({1, 0}, {-7, 0}) == -1);
  CHECK(stored_cosine({1, 0}, {0, 0}) == 0);
  CHECK(stored_cosine({1, 0}, {1, std::numeric_limits<float>::infinity()}) == 0);
  CHECK(stored_cosine({1, 0}, {std::nanf(""), 1}) == 0);
}

TEST_CASE("a vector is read with its place in the tar and its encoder, or there is none") {
  const TemporaryFolder folder;
  const std::string tar = folder / "a.tar";
  const std::string words = io::make_npy_half({2, 4}, Vector{1, 2, 3, 4, 5, 6, 7, 8});
  const auto text = [](const std::string& npy, const char* json) {
    return shard::Sample{"", {{"json", json}, {"text.npy", npy}}};
  };
  const auto one = io::make_npy_half({1, 4}, Vector{1, 2, 3, 4});
  const char* const encoder = R"({"text_encoder":{"name":"sentence:x"}})";
  std::vector<shard::Sample> samples{
      vector_sample("v", {1, 0.5f, -2}),
      vector_sample("look", {0, 1}, Json::object()),
      text(one, encoder),
      text(words, encoder),
      text(words, "{}"),
      text(one, "{}"),
      {"float", {{"json", "{}"}, {"video.npy", io::make_npy_float({3}, Vector{1, 2, 3})}}},
      {"empty", {{"json", "{}"}, {"video.npy", io::make_npy_half({0}, Vector{})}}},
      {"scalar", {{"json", "{}"}, {"video.npy", io::make_npy_half({}, Vector{1})}}},
      text(words, R"({"text_encoder":{"hash":"1a"}})")};
  // Each in a tar of its own, as samples of one have the same members.
  StoredVector vector;
  const auto read = [&](std::size_t i, VectorKind kind) {
    samples[i].key = "k";
    write_tar(tar, {samples[i]});
    StoredVectors stored(tar, kind, {});
    CHECK(stored.rows() == 1);
    CHECK(stored.damage().empty());
    return stored.read(0, vector);
  };
  REQUIRE(read(0, VectorKind::video));
  CHECK(vector.values == Vector{1, 0.5f, -2});
  CHECK(vector.encoder == made_encoder());
  Vector there(3);
  read_halves(shard::TarFile(tar), vector.at, there);
  CHECK(there == vector.values);
  REQUIRE(read(1, VectorKind::video));
  CHECK(vector.encoder == curate::look_config());
  CHECK_FALSE(read(0, VectorKind::text));
  CHECK_FALSE(read(2, VectorKind::video));
  REQUIRE(read(2, VectorKind::text));
  CHECK(vector.values == Vector{1, 2, 3, 4});
  CHECK(vector.encoder == Json{{"name", "sentence:x"}});
  const auto why = [&](std::size_t i, VectorKind kind) {
    try {
      read(i, kind);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string halves = " is not one vector in half precision: an index takes one a sample";
  CHECK(why(3, VectorKind::text) == "k.text.npy of '" + tar +
                                        "' are words by sentence:x; an index takes one vector a "
                                        "sample: embed with --text DIR (a sentence encoder)");
  CHECK_THAT(why(9, VectorKind::text), Catch::Contains("are words by another program;"));
  CHECK(why(4, VectorKind::text) == "k.text.npy of '" + tar + "'" + halves);
  CHECK(why(5, VectorKind::text) == "k.text.npy of '" + tar + "': its json has no 'text_encoder'");
  for (const std::size_t i : {6, 7, 8})
    CHECK(why(i, VectorKind::video) == "k.video.npy of '" + tar + "'" + halves);
}

TEST_CASE("rows of a tar are read by its index, or by its headers where that does not fit") {
  const TemporaryFolder folder;
  const std::string tar = folder / "a.tar";
  write_vectors(tar, "a", {axis(0), axis(1), axis(2)});
  const auto keys = [&] {
    const shard::IndexedReader rows = open_rows(tar, {});
    std::vector<std::string> all;
    for (std::int64_t i = 0; i < rows.samples(); ++i)
      all.push_back(rows.read(i).key);
    return all;
  };
  const std::vector<std::string> three{"a0000", "a0001", "a0002"};
  CHECK(keys() == three);
  folder.write("a.tar.idx", std::string(16, '\1'));
  {
    const HeardLog lines(LogLevel::info);
    CHECK(keys() == three);
    CHECK_THAT(lines.text(), Catch::Contains("; reading the tar without it\n"));
  }
  std::filesystem::remove(tar + ".idx");
  CHECK(keys() == three);
  const std::string bytes = io::read_file(tar);
  folder.write("a.tar", bytes.substr(0, bytes.size() - 2500));
  CHECK(keys() == std::vector<std::string>{"a0000", "a0001"});
  CHECK_FALSE(StoredVectors(tar, VectorKind::video, {}).damage().empty());
  CHECK_THROWS_AS(open_rows(folder / "none.tar", {}), Error);
  io::Record record;
  record.json = Json{{"path", "a.tar"}, {"columns", {{"clip", "b.tar"}}}};
  CHECK(vectors_tar(record) == "a.tar");
  record.json["columns"]["embed"] = "e.tar";
  CHECK(vectors_tar(record) == "e.tar");
  CHECK(std::string(to_string(VectorKind::text)) == "text");
  CHECK(std::string(to_string(VectorKind::video)) == "video");
}
