// Shards compressed by zstd: X.tar.zst.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <functional>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "shard/columns.h"
#include "shard/reader.h"
#include "shard/receipt.h"
#include "shard/tar_file.h"
#include "shard/writer.h"
#include "support/samples.h"

using namespace vfm;
using namespace vfm::shard;
using Catch::Contains;

namespace {

constexpr int kPacked = 12;

/// 100 kB of text that hardly compresses, so that a frame has three samples.
std::string packed_text(int i) {
  std::string text(100'000, '\0');
  std::uint32_t state = static_cast<std::uint32_t>(i);
  for (char& c : text)
    c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

Json write_packed(const std::string& tar) {
  Writer writer(tar);
  for (int i = 0; i < kPacked; ++i)
    writer.add(make_sample("k" + std::to_string(i), packed_text(i)));
  return writer.finish();
}

std::string keys_of(const std::function<bool(Sample&)>& next) {
  std::string keys;
  for (Sample sample; next(sample);)
    keys += sample.key + " ";
  return keys;
}

void change_byte(const std::string& path, std::size_t at) {
  std::string bytes = io::read_file(path);
  bytes[at] = static_cast<char>(~bytes[at]);
  io::write_file(path, bytes);
}

}  // namespace

TEST_CASE(
    "a compressed shard is the plain one, with the same indexes, each time in the same bytes") {
  const TemporaryFolder dir;
  io::make_directories(dir / "b");
  write_packed(dir / "a.tar");
  const Json record = write_packed(dir / "b/a.tar.zst");
  CHECK(record["tar_bytes"] == io::read_file(dir / "a.tar").size());
  CHECK(record["xxh3"] == io::hash_file(dir / "b/a.tar.zst"));
  check_written(dir / "b/a.tar.zst", record);
  CHECK(receipt_path(dir / "b/a.tar.zst") == dir / "b/a.json");
  for (const char* name : {"a.tar.idx", "a.idx"})
    CHECK(io::read_file(dir / name) == io::read_file(dir / ("b/" + std::string(name))));
  const std::string bytes = io::read_file(dir / "b/a.tar.zst");
  write_packed(dir / "b/a.tar.zst");
  CHECK(io::read_file(dir / "b/a.tar.zst") == bytes);
  CHECK_THROWS_WITH(Writer(dir / "a.zst"), Contains("must end in '.tar' or '.tar.zst'"));
  if (output_of("command -v zstd || true").empty()) return;
  output_of("zstd -qd " + (dir / "b/a.tar.zst"));
  CHECK(io::read_file(dir / "b/a.tar") == io::read_file(dir / "a.tar"));
}

TEST_CASE("a compressed shard is read by its index, and from its begin") {
  const TemporaryFolder dir;
  const std::string tar = dir / "a.tar.zst";
  write_packed(tar);
  CHECK(has_index(tar));
  const IndexedReader reader(tar);
  REQUIRE(reader.samples() == kPacked);
  ReadBuffer buffer;
  for (const int i : {7, 0, 11, 3, 4, 5})
    CHECK(reader.view(i, buffer).find("txt") == packed_text(i));
  CHECK(reader.key(8) == "k8");
  CHECK(reader.remote() == nullptr);
  StreamReader stream(tar);
  JoinedReader joined({tar});
  const std::string all = keys_of([&](Sample& sample) { return stream.next(sample); });
  CHECK(all == "k0 k1 k2 k3 k4 k5 k6 k7 k8 k9 k10 k11 ");
  CHECK(keys_of([&](Sample& sample) { return joined.next(sample); }) == all);
  CHECK(joined.faults().empty());
}

TEST_CASE("a changed byte of a compressed shard takes the samples of its frame alone") {
  const TemporaryFolder dir;
  const std::string tar = dir / "a.tar.zst";
  write_packed(tar);
  change_byte(tar, 450'000);  // in the second frame
  JoinedReader joined({tar});
  CHECK(keys_of([&](Sample& sample) { return joined.next(sample); }) ==
        "k0 k1 k2 k6 k7 k8 k9 k10 k11 ");
  REQUIRE(joined.faults().size() == 3);
  for (const io::Fault& fault : joined.faults()) {
    CHECK(fault.cause == Cause::format);
    CHECK_THAT(fault.message, Contains("a.tar.zst' is damaged: zstd says"));
  }
}

TEST_CASE("a compressed shard that is cut off is read up to there, and is an error") {
  const TemporaryFolder dir;
  const std::string tar = dir / "a.tar.zst";
  write_packed(tar);
  io::write_file(tar, io::read_file(tar).substr(0, 700'000));
  CHECK_FALSE(has_index(tar));
  CHECK_THROWS_WITH(IndexedReader(tar), Contains("a.tar.zst' has no table of frames"));
  JoinedReader joined({tar});
  CHECK_THAT(keys_of([&](Sample& sample) { return joined.next(sample); }),
             Catch::StartsWith("k0 k1 k2 k3 k4 "));
  REQUIRE(joined.faults().size() == 1);
  CHECK_THAT(joined.faults()[0].message, Contains("a.tar.zst' is not a readable tar"));
}

TEST_CASE("the receipt of a compressed shard holds for the unpacked one, and not the other way") {
  const TemporaryFolder dir;
  if (output_of("command -v zstd || true").empty()) return;
  const auto check = [](const std::string& tar) {
    check_shard_bytes(io::Record{"shard", Json{{"kind", "shard"}, {"path", tar}}, "x"});
  };
  Json record = write_packed(dir / "a.tar.zst");
  io::write_file(dir / "a.json", dump_json(record));
  check(dir / "a.tar.zst");
  output_of("zstd -qd " + (dir / "a.tar.zst"));
  check(dir / "a.tar");
  io::write_file(dir / "a.tar", io::read_file(dir / "a.tar").substr(0, 1024));
  CHECK_THROWS_WITH(check(dir / "a.tar"), Contains("is not as it was written: it has 1024 bytes"));
  change_byte(dir / "a.tar.zst", 1000);
  CHECK_THROWS_WITH(check(dir / "a.tar.zst"), Contains("its xxh3 is not"));

  record = write_packed(dir / "b.tar");
  io::write_file(dir / "b.json", dump_json(record));
  output_of("zstd -q --rm " + (dir / "b.tar"));
  check(dir / "b.tar.zst");
}

TEST_CASE("columns of a compressed shard are found, compressed or not") {
  const TemporaryFolder dir;
  write_packed(dir / "a.tar.zst");
  write_packed(dir / "a.caption.tar");
  write_packed(dir / "a.embed.tar.zst");
  CHECK(is_column_tar(dir / "a.caption.tar"));
  CHECK(is_column_tar(dir / "a.embed.tar.zst"));
  CHECK_FALSE(is_column_tar(dir / "a.tar.zst"));
  CHECK_FALSE(is_column_tar(dir / "b.caption.tar"));
  io::Record record = io::parse_record(dir / "a.tar.zst", "x");
  complete_shard(record);
  CHECK(record.json["columns"] == Json({{"clip", dir / "a.tar.zst"},
                                        {"caption", dir / "a.caption.tar"},
                                        {"embed", dir / "a.embed.tar.zst"}}));
}
