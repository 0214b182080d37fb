// SPDX-License-Identifier: Apache-2.0
#include "data/latents.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "data/index_file.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/npy.h"
#include "shard/writer.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::data;
using Catch::Contains;

namespace {

/// A folder of two shards, removed at the end: samples a, b of 000000.tar, c of 000001.tar.
class Folder {
 public:
  Folder() {
    io::make_directories(path("train"));
    io::write_file(path("latents.json"), R"({"version":1,"channels":2,"mean":[0,0],"std":[1,1]})");
    std::string index;
    write_shard("000000.tar", {"a", "b"}, index);
    write_shard("000001.tar", {"c"}, index);
    io::write_file(path("train/index.jsonl"), index);
  }
  std::string path(const std::string& name = "") const { return folder_.path + "/" + name; }

 private:
  void write_shard(const std::string& name, const std::vector<std::string>& keys,
                   std::string& index) {
    shard::Writer writer(path("train/" + name));
    for (std::size_t row = 0; row < keys.size(); ++row) {
      const float base = keys[row][0] - 'a';
      const std::vector<float> latent = {base, 1, 2, 3, 4, 5, 6, 7}, text = {base, 8, 9};
      writer.add(shard::Sample{keys[row],
                               {{"latent.npy", io::make_npy_half({2, 1, 2, 2}, latent)},
                                {"text.npy", io::make_npy_half({1, 3}, text)},
                                {"json", R"({"caption":"x"})"}}});
      Entry entry{keys[row], name, static_cast<std::int64_t>(row), 1, 2, 2, 0, 1};
      index += dump_json(to_json(entry)) + "\n";
    }
    writer.finish();
  }
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a folder of latents is read by index, from any thread") {
  const Folder folder;
  const LatentSet set(folder.path(), "train");
  REQUIRE(set.size() == 3);
  CHECK(set.index().entry(2).key == "c");
  CHECK(set.index().place(2).row == 0);
  CHECK(set.info().at("channels") == 2);
  std::vector<std::thread> threads;
  std::vector<LatentSample> samples(6);
  for (std::size_t i = 0; i < 6; ++i)
    threads.emplace_back([&, i] { samples[i] = set.read(i % 3); });
  for (auto& thread : threads)
    thread.join();
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(samples[i].latent == std::vector<float>{float(i % 3), 1, 2, 3, 4, 5, 6, 7});
    CHECK(samples[i].text == std::vector<float>{float(i % 3), 8, 9});
    CHECK(samples[i].meta->at("caption") == "x");
  }
  const auto offsets = set.offsets(std::vector<std::uint64_t>{2, 1, 0});
  REQUIRE(offsets.size() == 3);
  CHECK(offsets[0] == 0);
  CHECK(offsets[1] > 0);
  CHECK(offsets[2] == 0);
}

TEST_CASE("a sample is read in pieces, of which all are the sample") {
  const Folder folder;
  const LatentSet set(folder.path(), "train");
  for (std::size_t i = 0; i < 3; ++i) {
    const LatentSample whole = set.read(i);
    CHECK(set.about_bytes(i) == 3 * 1024);  // three members, each a header and a block
    CHECK(whole.bytes == 3 * 1024);
    for (const std::vector<std::int64_t>& cuts :
         {std::vector<std::int64_t>{0, 3072}, {0, 1, 3072}, {0, 700, 701, 2900, 3072}}) {
      std::string bytes;
      for (std::size_t k = 1; k < cuts.size(); ++k)
        bytes += set.read_piece(i, cuts[k - 1], cuts[k]);
      const LatentSample made = set.put_together(i, bytes);
      CHECK(made.latent == whole.latent);
      CHECK(made.text == whole.text);
      CHECK(made.bytes == whole.bytes);
    }
    CHECK_THROWS_WITH(set.put_together(i, "too short"), Contains("has 3072 bytes, not 9"));
    CHECK_THROWS_WITH(set.read_piece(i, 0, 4000), Contains("there are none up to"));
  }
  // Bytes of another sample are none of this one.
  CHECK_THROWS_WITH(set.put_together(0, set.read_piece(1, 0, 3072)), Contains("the shard has 'b'"));
}

TEST_CASE("parts of several samples are fetched together, and one that fails fails alone") {
  const Folder folder;
  const LatentSet set(folder.path(), "train");
  CHECK_FALSE(set.is_remote());
  std::vector<SampleBytes> parts = {
      {2, 0, 3072, {}, {}}, {0, 700, 3072, {}, {}}, {1, 0, 4000, {}, {}}, {0, 0, 700, {}, {}}};
  set.fetch(parts);
  CHECK_THAT(parts[2].failure, Contains("there are none up to"));
  for (const std::size_t k : {0, 1, 3}) {
    CHECK(parts[k].failure.empty());
    CHECK(parts[k].bytes == set.read_piece(parts[k].sample, parts[k].begin, parts[k].end));
  }
  CHECK(set.put_together(2, parts[0].bytes).latent == set.read(2).latent);
}

TEST_CASE("what does not fit the index is refused by name") {
  const Folder folder;
  const auto index_with = [&](const char* name, const Json& value) {
    Entry entry{"a", "000000.tar", 0, 1, 2, 2, 0, 1};
    Json line = to_json(entry);
    line[name] = value;
    io::write_file(folder.path("train/index.jsonl"), dump_json(line) + "\n");
  };
  const auto read_error = [&] {
    try {
      LatentSet(folder.path(), "train").read(0);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(read_error() == "no error");
  index_with("key", "z");
  CHECK_THAT(read_error(), Contains("'z'") && Contains("the shard has 'a' there"));
  index_with("row", 5);
  CHECK_THAT(read_error(), Contains("only 2 samples"));
  index_with("frames", 3);
  CHECK_THAT(read_error(), Contains("not 2 x 3 x 2 x 2"));
  index_with("text_tokens", 2);
  CHECK_THAT(read_error(), Contains("not 2 tokens"));
  index_with("shard", "gone.tar");
  CHECK_THAT(read_error(), Contains("gone.tar"));
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, Json>>{{"shard", "../train/000000.tar"},
                                                 {"row", -1},
                                                 {"height", 0},
                                                 {"width", 1e9},
                                                 {"fps", -2},
                                                 {"frames", "three"},
                                                 {"key", nullptr}}) {
    index_with(name, value);
    CHECK_THAT(usage_error([&] { LatentSet(folder.path(), "train"); }),
               Contains("line 1 of") && Contains("index.jsonl"));
  }
}

TEST_CASE("samples are read by an index file as by the list, and its damage is called so") {
  const Folder folder;
  const std::string list = folder.path("train/index.jsonl"), path = folder.path("train/index.bin");
  {
    const Json info = parse_json(io::read_file(folder.path("latents.json")), "info");
    io::AtomicFile file(path);
    make_index(list, file, info);
    file.commit();
  }
  const LatentSet set(folder.path(), "train");
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(set.read(i).key == std::string(1, static_cast<char>('a' + i)));
    CHECK(set.read(i).latent[0] == float(i));
    CHECK(set.about_bytes(i) == 3 * 1024);
  }
  CHECK(set.offsets(std::vector<std::uint64_t>{2}) == std::vector<std::uint64_t>{0});
  // The text of the second sample, and the check of the third.
  std::string bytes = io::read_file(path);
  LatentIndexHeader header;
  std::copy_n(bytes.data(), sizeof header, reinterpret_cast<char*>(&header));
  const LatentIndexLayout layout(header);
  bytes[layout.texts + 3] ^= 2;
  bytes[layout.checks + 16] ^= 1;
  io::write_file(path, bytes);
  const LatentSet damaged(folder.path(), "train");
  CHECK(damaged.read(0).key == "a");
  CHECK_THROWS_WITH(damaged.read(1), Contains("index.bin' is damaged"));
  CHECK_THROWS_WITH(damaged.read(2), Contains("index.bin' is damaged"));
}

TEST_CASE("a folder that is none, a split that is not there, a torn index") {
  const Folder folder;
  CHECK_THAT(usage_error([&] { LatentSet(folder.path("train"), "train"); }),
             Contains("is not a folder of latents"));
  CHECK_THAT(usage_error([&] { LatentSet(folder.path(), "val"); }), Contains("no split 'val'"));
  const std::string index = io::read_file(folder.path("train/index.jsonl"));
  io::write_file(folder.path("train/index.jsonl"), index.substr(0, index.size() - 1));
  CHECK_THAT(usage_error([&] { LatentSet(folder.path(), "train"); }), Contains("line 3"));
  io::write_file(folder.path("latents.json"), "[1");
  CHECK_THAT(usage_error([&] { LatentSet(folder.path(), "train"); }), Contains("latents.json"));
}

TEST_CASE("visual tokens are patches of the latent") {
  Entry entry;
  entry.frames = 3, entry.height = 8, entry.width = 10;
  CHECK(token_count(entry) == 3 * 4 * 5);
  CHECK(token_count(entry, {3, 1, 1}) == 80);
}

TEST_CASE("discrete latents are read as codes, and a code beyond the vocabulary is an error") {
  const TemporaryFolder folder;
  io::make_directories(folder.path + "/train");
  const std::vector<std::uint16_t> codes = {0, 7, 9, 3};
  shard::Writer writer(folder.path + "/train/a.tar");
  writer.add(shard::Sample{"a",
                           {{"codes.npy", io::make_npy("<u2", {1, 2, 2}, codes.data(), 8)},
                            {"text.npy", io::make_npy_half({0, 0}, {})},
                            {"json", "{}"}}});
  writer.finish();
  folder.write("train/index.jsonl",
               dump_json(to_json(Entry{"a", "a.tar", 0, 1, 2, 2, 0, 0})) + "\n");
  const auto read = [&](int vocabulary) {
    folder.write("latents.json",
                 fmt::format(R"({{"version":1,"channels":6,"vocabulary":{}}})", vocabulary));
    const LatentSet set(folder.path, "train");
    CHECK(set.vocabulary() == vocabulary);
    return set.read(0);
  };
  const LatentSample sample = read(10);
  CHECK(sample.codes == std::vector<std::int32_t>{0, 7, 9, 3});
  CHECK(sample.latent.empty());
  CHECK_THROWS_WITH(read(9), Contains("holds code 9"));
  CHECK(usage_error([&] { read(-1); }).find("vocabulary") != std::string::npos);
}
