// SPDX-License-Identifier: Apache-2.0
#include "shard/writer.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "support/samples.h"

using namespace vfm;
using namespace vfm::shard;
using Catch::Contains;

namespace {

std::vector<std::uint64_t> numbers(const std::string& bytes) {
  std::vector<std::uint64_t> values(bytes.size() / 8);
  std::memcpy(values.data(), bytes.data(), values.size() * 8);
  return values;
}

}  // namespace

TEST_CASE("the tar is plain ustar, byte for byte as POSIX draws it") {
  const TemporaryFolder dir;
  Writer writer(dir / "a.tar");
  writer.add(make_sample("k1", "hello"));
  writer.finish();
  const std::string tar = io::read_file(dir / "a.tar");
  REQUIRE(tar.size() == 4 * 512 + 1024);
  // Fields of the first header, at the offsets of POSIX.1-1988.
  CHECK(tar.substr(0, 100) == "k1.json" + std::string(93, '\0'));
  CHECK(tar.substr(100, 8) == std::string("0000644\0", 8));
  CHECK(tar.substr(108, 16) == std::string("0000000\0000000000\0", 16));
  CHECK(tar.substr(124, 12) == std::string("00000000007\0", 12));
  CHECK(tar.substr(136, 12) == std::string("00000000000\0", 12));
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < 512; ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(tar[i]);
  CHECK(tar.substr(148, 8) == fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  CHECK(tar[156] == '0');
  CHECK(tar.substr(257, 8) == std::string("ustar\00000", 8));
  CHECK(tar.substr(345, 167) == std::string(167, '\0'));
  CHECK(tar.substr(512, 8) == std::string("{\"a\":1}\0", 8));
  CHECK(tar.substr(4 * 512) == std::string(1024, '\0'));
}

TEST_CASE("GNU tar and Python read what was written") {
  const TemporaryFolder dir;
  const std::string key(80, 'k'), ext(19, 'e');  // a name of exactly 100 bytes
  {
    Writer writer(dir / "a.tar");
    writer.add(Sample{key, {{"json", "{\"a\":1}"}, {ext, std::string(513, 'x')}}});
    writer.add(Sample{"empty", {{"json", "{\"a\":1}"}, {ext, ""}}});
    writer.finish();
  }
  CHECK(output_of("tar tvf " + (dir / "a.tar") + " --full-time --numeric-owner 2>&1") ==
        "-rw-r--r-- 0/0               7 1970-01-01 00:00:00 " + key + ".json\n" +
            "-rw-r--r-- 0/0             513 1970-01-01 00:00:00 " + key + "." + ext + "\n" +
            "-rw-r--r-- 0/0               7 1970-01-01 00:00:00 empty.json\n" +
            "-rw-r--r-- 0/0               0 1970-01-01 00:00:00 empty." + ext + "\n");
  const std::string python =
      "python3 -c \"import tarfile,sys; t=tarfile.open(sys.argv[1],'r:'); "
      "print([(m.size,m.mode,m.offset,m.offset_data,m.pax_headers) for m in t])\" ";
  CHECK(output_of(python + (dir / "a.tar")) ==
        "[(7, 420, 0, 512, {}), (513, 420, 1024, 1536, {}), (7, 420, 2560, 3072, {}), "
        "(0, 420, 3584, 4096, {})]\n");
}

TEST_CASE("the indexes say where the samples are") {
  const TemporaryFolder dir;
  Writer writer(dir / "x.caption.tar");
  writer.add(make_sample("k1", std::string(600, 'a')));
  writer.add(make_sample("k2", "b"));
  CHECK(writer.bytes() == 2560 + 2048);
  const Json record = writer.finish();
  CHECK(numbers(io::read_file(dir / "x.caption.tar.idx")) ==
        std::vector<std::uint64_t>{0, 2560, 4608});
  CHECK(io::read_file(dir / "x.idx") ==
        "v1.2 2\njson 512 7 k1.json txt 1536 600 k1.txt\njson 3072 7 k2.json txt 4096 1 k2.txt\n");
  CHECK(record["samples"] == 2);
  CHECK(record["bytes"] == 4608 + 1024);
  CHECK(record["xxh3"] == io::hash_file(dir / "x.caption.tar"));
}

TEST_CASE("members larger than the buffer are whole") {
  const TemporaryFolder dir;
  std::string big((3u << 20) + 17, '\0');
  for (std::size_t i = 0; i < big.size(); ++i)
    big[i] = static_cast<char>(i * 2654435761u >> 13);
  Json record;
  {
    Writer writer(dir / "a.tar");
    for (const char* key : {"a", "b"})
      writer.add(make_sample(key, big));
    record = writer.finish();
  }
  CHECK(record["xxh3"] == io::hash_file(dir / "a.tar"));
  CHECK(output_of("tar xOf " + (dir / "a.tar") + " b.txt") == big);
}

TEST_CASE("a refused sample leaves the shard as it was") {
  const TemporaryFolder dir;
  Writer writer(dir / "a.tar");
  writer.add(make_sample("k", "x"));
  const std::uint64_t before = writer.bytes();
  CHECK_THROWS_WITH(writer.add(make_sample("k", "y")), Contains("twice"));
  CHECK_THROWS_WITH(writer.add(make_sample("a.b", "y")), Contains("'a.b'"));
  CHECK_THROWS_AS(writer.add(make_sample("", "y")), Error);
  CHECK_THROWS_AS(writer.add(make_sample("a/b", "y")), Error);
  CHECK_THROWS_AS(writer.add(make_sample("a b", "y")), Error);
  CHECK_THROWS_AS(writer.add(make_sample("__a__", "y")), Error);
  CHECK_THROWS_AS(writer.add(make_sample("\xc3\xa4", "y")), Error);
  CHECK_THROWS_WITH(writer.add(make_sample(std::string(81, 'k'), "y")), Contains("1 to 80"));
  CHECK_THROWS_WITH(
      writer.add(Sample{std::string(80, 'k'), {{"json", ""}, {std::string(20, 'e'), ""}}}),
      Contains("100 bytes"));
  CHECK_THROWS_WITH(writer.add(Sample{"z", {{"json", "{}"}}}), Contains("other members"));
  CHECK_THROWS_WITH(writer.add(Sample{"z", {{"txt", ""}, {"json", "{}"}}}),
                    Contains("other members"));
  CHECK_THROWS_WITH(writer.add(Sample{"z", {{"json", ""}, {"json", ""}}}), Contains("two members"));
  CHECK_THROWS_WITH(writer.add(Sample{"z", {{"JSON", ""}}}), Contains("'JSON'"));
  CHECK_THROWS_WITH(writer.add(Sample{"z", {}}), Contains("no members"));
  CHECK(writer.bytes() == before);
  CHECK(writer.samples() == 1);
}

TEST_CASE("a member of 2 GiB is refused before a byte of it is read") {
  const TemporaryFolder dir;
  Writer writer(dir / "a.tar");
  SampleView huge;
  huge.key = "k";
  huge.members.push_back({"mp4", std::string_view("x", std::size_t{1} << 31)});
  CHECK_THROWS_WITH(writer.add(huge), Contains("2 GiB"));
}

TEST_CASE("nothing stands under the name before finish, nor after abandon, nor without samples") {
  const TemporaryFolder dir;
  {
    Writer writer(dir / "a.tar");
    writer.add(make_sample("k", "x"));
    CHECK_FALSE(io::file_exists(dir / "a.tar"));
    writer.abandon();
  }
  {
    Writer writer(dir / "a.tar");
    CHECK_THROWS_WITH(writer.finish(), Contains("empty"));
  }
  CHECK(std::filesystem::is_empty(dir / "."));
  CHECK_THROWS_AS(Writer(dir / "a.zip"), Error);
  CHECK_THROWS_AS(Writer(dir / "missing/a.tar"), Error);
}

TEST_CASE("writers on several threads do not meet") {
  const TemporaryFolder dir;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&dir, t] {
      Writer writer(dir / (std::to_string(t) + ".tar"));
      for (int i = 0; i < 200; ++i)
        writer.add(make_sample("k" + std::to_string(i), "same"));
      writer.finish();
    });
  for (std::thread& thread : threads)
    thread.join();
  for (int t = 1; t < 4; ++t)
    CHECK(io::read_file(dir / (std::to_string(t) + ".tar")) == io::read_file(dir / "0.tar"));
}
