// SPDX-License-Identifier: Apache-2.0
#include "shard/dataset_meta.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "base/format.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "shard/image_header.h"
#include "shard/sample_list.h"
#include "shard/writer.h"
#include "support/samples.h"

using namespace vfm;
using namespace vfm::shard;
using Catch::Contains;

namespace {

DatasetShard write_one(const TemporaryFolder& dir, const std::string& path,
                       const std::string& split, const std::vector<std::string>& keys) {
  io::make_directories(io::dir_name(dir / path));
  Writer writer(dir / path);
  for (const std::string& key : keys)
    writer.add(make_sample(key, key + key));
  const Json record = writer.finish();
  return {path, split, record["samples"], record["bytes"], record["xxh3"]};
}

const MediaOf kNoMedia = [](std::size_t, std::int64_t, std::string_view, std::string_view) {
  return MediaMetadata{};
};

std::string sql(const TemporaryFolder& dir, const std::string& query) {
  return output_of(
      "python3 -c \"import sqlite3,sys; [print(*r, sep='|') for r in "
      "sqlite3.connect(sys.argv[1]).execute(sys.argv[2])]\" " +
      (dir / ".nv-meta/index.sqlite") + " '" + query + "'");
}

}  // namespace

TEST_CASE("Energon's metadata says where everything is") {
  const TemporaryFolder dir;
  const std::vector<DatasetShard> shards = {
      write_one(dir, "train/b/b-000000.tar", "train", {"k1", "k2"}),
      write_one(dir, "train/b/b-000001.tar", "train", {"k3"}),
      write_one(dir, "val/b/b-000000.tar", "val", {"k4"})};
  write_energon_meta(
      dir / ".", shards,
      [](std::size_t shard, std::int64_t row, std::string_view, std::string_view ext) {
        if (ext != "txt") return MediaMetadata{};
        return MediaMetadata{"av", Json{{"shard", shard}, {"row", row}}};
      });
  CHECK(
      parse_json(io::read_file(dir / ".nv-meta/.info.json"), "info") ==
      Json{
          {"energon_version", nullptr},
          {"shard_counts",
           {{"train/b/b-000000.tar", 2}, {"train/b/b-000001.tar", 1}, {"val/b/b-000000.tar", 1}}}});
  CHECK(io::read_file(dir / ".nv-meta/split.yaml") ==
        "split_parts:\n  \"train\":\n  - \"train/b/b-{000000..000001}.tar\"\n  \"val\":\n"
        "  - \"val/b/b-000000.tar\"\nexclude: []\n");
  CHECK(sql(dir, "SELECT * FROM samples ORDER BY 1, 3") ==
        "0|k1|0|0|2048\n0|k2|1|2048|2048\n1|k3|0|0|2048\n2|k4|0|0|2048\n");
  CHECK(sql(dir, "SELECT * FROM sample_parts WHERE tar_file_id = 0 ORDER BY 2, 4") ==
        "0|0|json|512|7\n0|0|txt|1536|4\n0|1|json|2560|7\n0|1|txt|3584|4\n");
  CHECK(sql(dir, "SELECT * FROM media_metadata ORDER BY 1 LIMIT 2") ==
        "k1.txt|av|{\"shard\":0,\"row\":0}\nk2.txt|av|{\"shard\":0,\"row\":1}\n");
  const std::string uuid = io::read_file(dir / ".nv-meta/index.uuid");
  CHECK(output_of(
            "grep -cE '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' " +
            (dir / ".nv-meta/index.uuid")) == "1\n");

  const std::string before = io::read_file(dir / ".nv-meta/index.sqlite");
  std::filesystem::remove_all(dir / ".nv-meta");
  write_energon_meta(
      dir / ".", shards,
      [](std::size_t shard, std::int64_t row, std::string_view, std::string_view ext) {
        if (ext != "txt") return MediaMetadata{};
        return MediaMetadata{"av", Json{{"shard", shard}, {"row", row}}};
      });
  CHECK(io::read_file(dir / ".nv-meta/index.sqlite") == before);
  CHECK(io::read_file(dir / ".nv-meta/index.uuid") == uuid);
}

TEST_CASE("the list of a dataset's samples is what the shards' indexes say") {
  const TemporaryFolder dir;
  const std::vector<DatasetShard> shards = {
      write_one(dir, "train/b/b-000000.tar", "train", {"k1", "k2"}),
      write_one(dir, "val/b/b-000000.tar", "val", {"k4"}),
      write_one(dir, "train/b/b-000001.tar", "train", {"k3"})};
  const std::string path = sample_list_path(dir.path);
  write_energon_meta(dir / ".", shards, kNoMedia);
  CHECK_FALSE(io::file_exists(path));
  write_energon_meta(dir / ".", shards, kNoMedia, true);
  const auto text_of = [](const IndexedSample& sample) {
    std::string text = fmt::format("{} {}", sample.key, sample.size);
    for (const IndexedMember& member : sample.members)
      text += fmt::format(" {} {}", member.extension, member.size);
    return text + "\n";
  };
  std::string wanted, found;
  const auto read = [&] {
    found.clear();
    read_sample_list(
        path,
        [&](const DatasetShard& shard) {
          found += fmt::format("{} {} {} {}\n", shard.path, shard.split, shard.xxh3, shard.samples);
          return shard.split == "train";
        },
        [&](const IndexedSample& sample) { found += text_of(sample); });
  };
  for (const DatasetShard& shard : shards) {
    wanted += fmt::format("{} {} {} {}\n", shard.path, shard.split, shard.xxh3, shard.samples);
    if (shard.split == "train")
      for_each_indexed(dir / shard.path,
                       [&](const IndexedSample& sample) { wanted += text_of(sample); });
  }
  read();
  CHECK(found == wanted);
  const std::string whole = io::read_file(path);
  for (const std::size_t at : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    io::write_file(path, damaged);
    CHECK_THROWS_WITH(read(), Contains("is damaged"));
  }
  io::write_file(path, "");
  CHECK_THROWS_WITH(read(), Contains("is damaged"));
}

TEST_CASE("a key in two shards is refused, a damaged index too") {
  const TemporaryFolder dir;
  const std::vector<DatasetShard> shards = {write_one(dir, "a-000000.tar", "train", {"k"}),
                                            write_one(dir, "a-000001.tar", "train", {"k"})};
  CHECK_THROWS_WITH(write_energon_meta(dir / ".", shards, kNoMedia), Contains("'k' comes twice"));
  CHECK_FALSE(io::file_exists(dir / ".nv-meta/index.uuid"));
  for (const char* bad :
       {"", "v1.1 1\n", "v1.2 2\n", "v1.2 1\n", "v1.2 1\njson x 7 k.json\n", "v1.2 1\njson 512 7\n",
        "v1.2 1\njson 512 7 json\n", "v1.2 1\njson 512 7 k.json\nmore\n"}) {
    io::write_file(dir / "a-000000.idx", bad);
    CHECK_THROWS_WITH(for_each_indexed(dir / "a-000000.tar", [](const IndexedSample&) {}),
                      Contains("a-000000.idx"));
  }
}

TEST_CASE("wids.json, for all and for each split") {
  const TemporaryFolder dir;
  write_wids(dir / ".", "set", {write_one(dir, "train/b/b-000000.tar", "train", {"k1", "k2"})});
  const Json index = parse_json(io::read_file(dir / "wids.json"), "wids");
  CHECK(index["__kind__"] == "wids-shard-index-v1");
  CHECK(index["wids_version"] == 1);
  CHECK(index["shardlist"] ==
        Json::array({{{"url", "train/b/b-000000.tar"}, {"nsamples", 2}, {"filesize", 5120}}}));
  CHECK(parse_json(io::read_file(dir / "train/wids.json"), "wids")["shardlist"][0]["url"] ==
        "b/b-000000.tar");
}

TEST_CASE("runs of numbers collapse to braces") {
  const TemporaryFolder dir;
  std::vector<DatasetShard> shards;
  for (const char* path : {"a.tar", "b.tar", "x/a-000008.tar", "x/a-000009.tar", "x/a-000010.tar",
                           "x/a-000012.tar", "y/a-000013.tar"})
    shards.push_back(write_one(dir, path, "train", {"k" + std::to_string(shards.size())}));
  write_energon_meta(dir / ".", shards, kNoMedia);
  CHECK(io::read_file(dir / ".nv-meta/split.yaml") ==
        "split_parts:\n  \"train\":\n  - \"a.tar\"\n  - \"b.tar\"\n"
        "  - \"x/a-{000008..000010}.tar\"\n  - \"x/a-000012.tar\"\n  - \"y/a-000013.tar\"\n"
        "exclude: []\n");
}

TEST_CASE("headers of images that ffmpeg made") {
  const TemporaryFolder dir;
  output_of("cd " + (dir / ".") +
            " && ffmpeg -nostdin -loglevel quiet -f lavfi -i color=red:size=322x200 "
            "-frames:v 1 a.jpg -frames:v 1 -pix_fmt rgba b.png -frames:v 1 c.webp");
  for (const auto& [file, format] : std::map<std::string, std::string>{
           {"a.jpg", "JPEG RGB"}, {"b.png", "PNG RGBA"}, {"c.webp", "WEBP RGB"}}) {
    if (!io::file_exists(dir / file)) continue;  // no ffmpeg, or one without that encoder
    const std::string bytes = io::read_file(dir / file);
    const auto header = read_image_header(bytes);
    REQUIRE(header);
    CHECK(header->width == 322);
    CHECK(header->height == 200);
    CHECK(header->format + " " + header->mode == format);
    for (std::size_t cut = 0; cut < std::min<std::size_t>(bytes.size(), 700); ++cut)
      read_image_header(std::string_view(bytes).substr(0, cut));
  }
}

TEST_CASE("headers of images written by hand, after the standards") {
  const auto mode = [](const std::string& bytes) {
    const auto header = read_image_header(bytes);
    return header ? vfm::format("{}x{} {}", header->width, header->height, header->mode) : "none";
  };
  const auto png = [](char depth, char colour) {
    return std::string("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\1\2\0\0\0\3", 24) + depth + colour;
  };
  CHECK(mode(png(8, 0)) == "258x3 L");
  CHECK(mode(png(1, 0)) == "258x3 1");
  CHECK(mode(png(16, 0)) == "258x3 I;16");
  CHECK(mode(png(8, 3)) == "258x3 P");
  CHECK(mode(png(8, 4)) == "258x3 LA");
  CHECK(mode(png(8, 7)) == "none");
  const auto jpeg = [](char parts) {
    // Fill bytes, a segment to skip, a table (C4) that is no frame, then SOF2.
    return std::string("\xff\xd8\xff\xff\xff\xe0\0\3x\xff\xc4\0\2\xff\xc2\0\x11\x08\0\x10\0\x20",
                       22) +
           parts + "   ";
  };
  CHECK(mode(jpeg(1)) == "32x16 L");
  CHECK(mode(jpeg(3)) == "32x16 RGB");
  CHECK(mode(jpeg(4)) == "32x16 CMYK");
  CHECK(mode(std::string("RIFF\0\0\0\0WEBPVP8X\0\0\0\0\x10\0\0\0\xff\0\0\x0f\0\0", 30)) ==
        "256x16 RGBA");
  CHECK(mode(std::string("RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc0\x07\x10    ", 30)) ==
        "64x32 RGBA");
  CHECK(mode("") == "none");
  CHECK(mode("\xff\xd8\xff") == "none");
  CHECK(mode(std::string("\x89PNG\r\n\x1a\n") + std::string(40, '\xff')) == "none");
  CHECK(mode(std::string(100, 'x')) == "none");
}
