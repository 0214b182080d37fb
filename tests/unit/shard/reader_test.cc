// SPDX-License-Identifier: Apache-2.0
#include "shard/reader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "shard/writer.h"
#include "support/samples.h"

using namespace vfm;
using namespace vfm::shard;
using Catch::Contains;

namespace {

/// "key: ext=data ext=data" a sample.
std::vector<std::string> list(StreamReader reader) {
  std::vector<std::string> lines;
  for (Sample sample; reader.next(sample);) {
    std::string line = sample.key + ":";
    for (const Member& member : sample.members)
      line += " " + member.extension + "=" + member.data;
    lines.push_back(line);
  }
  return lines;
}

/// A tar made by Python's tarfile: `format` is one of its constants, `entries` a Python list of
/// pairs of name and contents.
std::string python_tar(const TemporaryFolder& dir, const std::string& format,
                       const std::string& entries) {
  const std::string path = dir / "py.tar";
  io::write_file(dir / "make.py",
                 "import tarfile, io, sys\n"
                 "t = tarfile.open(sys.argv[1], 'w', format=tarfile." +
                     format +
                     ")\n"
                     "for name, data in " +
                     entries +
                     ":\n"
                     "  i = tarfile.TarInfo(name); i.mtime = 1.5\n"
                     "  d = data.encode(); i.size = len(d); t.addfile(i, io.BytesIO(d))\n"
                     "t.close()\n");
  output_of("python3 " + (dir / "make.py") + " " + path);
  return path;
}

void write_shard(const std::string& path, int samples) {
  Writer writer(path);
  for (int i = 0; i < samples; ++i)
    writer.add(make_sample("k" + std::to_string(i), std::string(static_cast<std::size_t>(i), 'x')));
  writer.finish();
}

}  // namespace

TEST_CASE("names split at the first dot of the base name") {
  std::string key, ext;
  const auto split = [&](const char* name) {
    return split_member_name(name, key, ext) ? key + "|" + ext : "-";
  };
  CHECK(split("a.mp4") == "a|mp4");
  CHECK(split("a.b.MP4") == "a|b.mp4");
  CHECK(split("a..mp4") == "a|mp4");
  CHECK(split("./d.x/a.txt") == "d.x/a|txt");
  CHECK(split("d.x/a") == "-");
  CHECK(split("a.") == "-");
  CHECK(split("a..") == "-");
  CHECK(split(".hidden") == "-");
  CHECK(split("d/.hidden.txt") == "-");
  CHECK(split("__meta__/a.txt") == "-");
  CHECK(split("") == "-");
}

TEST_CASE("what the Writer wrote comes back, by index and by scanning") {
  const TemporaryFolder dir;
  write_shard(dir / "a.tar", 1200);
  const IndexedReader reader(dir / "a.tar");
  StreamReader stream(dir / "a.tar");
  REQUIRE(reader.samples() == 1200);
  Sample scanned;
  ReadBuffer buffer;
  for (int i = 0; i < 1200; ++i) {
    const Sample sample = reader.read(i);
    REQUIRE(stream.next(scanned));
    REQUIRE(sample.key == scanned.key);
    REQUIRE(sample.members.size() == 2);
    REQUIRE(*sample.find("txt") == std::string(static_cast<std::size_t>(i), 'x'));
    REQUIRE(*scanned.find("txt") == *sample.find("txt"));
    const SampleView& view = reader.view(i, buffer);
    REQUIRE(view.find("txt") == *sample.find("txt"));
    REQUIRE(view.members[0].offset == reader.offset(i) + 512);
    REQUIRE(reader.size(i) == sample_bytes(view));
  }
  CHECK_FALSE(stream.next(scanned));
  CHECK_FALSE(stream.next(scanned));
  CHECK(scanned.find("nothing") == nullptr);
  CHECK_THROWS_AS(reader.read(-1), Error);
  CHECK_THROWS_AS(reader.read(1200), Error);
}

TEST_CASE("tars of other programs are read") {
  const TemporaryFolder dir;
  const std::string name(120, 'n');
  const std::string entries = "[('a.JPG','1'),('a.txt','2'),('__meta__/x.json','0'),('" + name +
                              ".txt','3'),('dir/\xc3\xa4 b..mp4','4'),('noext','5')]";
  const std::vector<std::string> want = {"a: jpg=1 txt=2", name + ": txt=3",
                                         "dir/\xc3\xa4 b: mp4=4"};
  for (const char* format : {"PAX_FORMAT", "GNU_FORMAT"})
    CHECK(list(StreamReader(python_tar(dir, format, entries))) == want);
  for (const char* packer : {"gzip", "zstd -q", "xz", "bzip2"}) {
    const std::string packed = dir / "p.tar";
    if (output_of(std::string("command -v ") + packer + " >/dev/null || echo no") == "no\n")
      continue;
    output_of(std::string(packer) + " -c " + (dir / "py.tar") + " >" + packed);
    CHECK(list(StreamReader(packed)) == want);
  }
}

TEST_CASE("a compressed tar unpacks to no more than its limit, whatever belongs to a sample") {
  const TemporaryFolder dir;
  const ReadLimits limits{.unpacked = 1 << 20};
  for (const std::string large : {"b.png", "noext"}) {
    const std::string tar =
        python_tar(dir, "USTAR_FORMAT",
                   "[('a.txt','1'),('b.txt','1'),('" + large + "','0' * 16000000),('c.txt','2')]");
    CHECK(list(StreamReader(tar, limits)).size() >= 2);  // as it lies on the disk it may be large
    for (const char* packer : {"gzip", "zstd -q", "xz"}) {
      if (output_of(std::string("command -v ") + packer + " >/dev/null || echo no") == "no\n")
        continue;
      CAPTURE(large, packer);
      const std::string packed = dir / "p.tar.x";
      output_of(std::string(packer) + " -c " + tar + " >" + packed);
      CHECK(list(StreamReader(packed)).back() == "c: txt=2");
      StreamReader reader(packed, limits);
      Sample sample;
      const auto read_all = [&] {
        while (reader.next(sample))
          CHECK(sample.key == "a");
      };
      CHECK_THROWS_WITH(read_all(),
                        Contains("unpacks to more than") && Contains("unpack it yourself"));
      const Unpacked unpacked = unpack(packed, dir / "out.tar", limits);
      CHECK(unpacked.cause == Cause::limit);
      CHECK(list(StreamReader(dir / "out.tar")) == std::vector<std::string>{"a: txt=1"});
    }
  }
}

TEST_CASE("where members' data begin is known in tars of other programs, too") {
  const TemporaryFolder dir;
  const std::string name(120, 'n');
  for (const std::string format : {"PAX_FORMAT", "GNU_FORMAT"}) {
    CAPTURE(format);
    const std::string tar =
        python_tar(dir, format,
                   "[('__meta__/x.json','0' * 700),('d/a.txt','1' * "
                   "513),('d/a.json','2'),('d/a.cls',''),('f/" +
                       name + ".txt','3'),('f/" + name + ".b','4' * 1024),('__meta__/y','5'),('f/" +
                       name + ".c','6')]");
    const IndexedReader reader(tar, TarOffsets::scan(tar, tar));
    const std::string bytes = io::read_file(tar);
    ReadBuffer buffer;
    std::size_t members = 0;
    for (std::int64_t i = 0; i < reader.samples(); ++i)
      for (const MemberView& member : reader.view(i, buffer).members) {
        CHECK(member.offset > reader.offset(i));
        CHECK(bytes.substr(member.offset, member.data.size()) == member.data);
        CHECK(member.offset % 512 == 0);
        ++members;
      }
    CHECK(members == 6);
  }
}

TEST_CASE("a repeated extension begins the next sample") {
  const TemporaryFolder dir;
  CHECK(list(StreamReader(
            python_tar(dir, "USTAR_FORMAT", "[('a.x','1'),('a.y','2'),('a.X','3')]"))) ==
        std::vector<std::string>{"a: x=1 y=2", "a: x=3"});
}

TEST_CASE("an index beside a foreign tar works, PAX headers and all") {
  const TemporaryFolder dir;
  const std::string tar =
      python_tar(dir, "PAX_FORMAT", "[('d/a.x','1'),('d/a.Y','2'),('b.x','3')]");
  // Every member takes a PAX header, its data, a header and a block of data: 2048 bytes.
  const std::uint64_t offsets[] = {0, 4096, 6144};
  io::write_file(tar + ".idx", {reinterpret_cast<const char*>(offsets), sizeof offsets});
  const IndexedReader reader(tar);
  REQUIRE(reader.samples() == 2);
  CHECK(reader.read(0).key == "d/a");
  CHECK(*reader.read(0).find("y") == "2");
  CHECK(*reader.read(1).find("x") == "3");
}

TEST_CASE("a tar without an index is walked over once, then read by sample") {
  const TemporaryFolder dir;
  const std::string entries =
      "[('d/x',''),('d/a.x','1'),('d/a.Y','2'),('b.x','3'),('b.x','4'),('\xc3\xa4.x','5')]";
  for (const char* format : {"PAX_FORMAT", "GNU_FORMAT"}) {
    const std::string tar = python_tar(dir, format, entries);
    const IndexedReader reader(tar, TarOffsets::scan(tar, tar));
    REQUIRE(reader.samples() == 4);
    CHECK(*reader.read(0).find("y") == "2");
    CHECK(*reader.read(1).find("x") == "3");
    CHECK(*reader.read(2).find("x") == "4");
    CHECK(reader.read(3).key == "\xc3\xa4");
  }
  write_shard(dir / "a.tar", 30);
  const auto scan = [](const std::string& path) { return TarOffsets::scan(path, path); };
  CHECK(scan(dir / "a.tar").at == IndexedReader(dir / "a.tar").index().at);
  output_of("gzip -c " + (dir / "a.tar") + " >" + (dir / "a.tar.gz"));
  CHECK_THROWS_WITH(scan(dir / "a.tar.gz"), Contains("compressed"));
  io::write_file(dir / "empty.tar", std::string(1024, '\0'));
  CHECK_THROWS_WITH(scan(dir / "empty.tar"), Contains("no samples"));
}

TEST_CASE("damage is an error that names the file") {
  const TemporaryFolder dir;
  const std::string path = dir / "a.tar";
  write_shard(path, 50);
  const std::string whole = io::read_file(path);
  const std::string index = io::read_file(path + ".idx");

  SECTION("cut in the middle of a member's data") {
    io::write_file(path, whole.substr(0, whole.size() / 2 + 100));
    CHECK_THROWS_WITH(IndexedReader(path), Contains(path));
    CHECK_THROWS_WITH(list(StreamReader(path)), Contains(path));
    std::size_t seen = 0;
    CHECK_THROWS_AS(for_each_sample(path, [&](Sample&) { ++seen; }), Error);
    CHECK(seen > 10);
    // By an index that is made, the same samples, and why there are no more.
    const TarOffsets found = TarOffsets::scan(path, "name");
    CHECK(found.at.size() == seen + 1);
    CHECK_THAT(found.damage, Contains("name"));
    CHECK(IndexedReader(path, found).samples() == static_cast<std::int64_t>(seen));
  }
  SECTION("a flipped byte in a header") {
    std::string bad = whole;
    bad[IndexedReader(path).offset(7) + 3] ^= 1;
    io::write_file(path, bad);
    const IndexedReader reader(path);
    CHECK_NOTHROW(reader.read(6));
    CHECK_THROWS_WITH(reader.read(7), Contains("sample 7"));
    CHECK_NOTHROW(reader.read(8));
  }
  SECTION("the index of another tar") {
    write_shard(dir / "b.tar", 20);
    io::write_file(path + ".idx", io::read_file(dir / "b.tar.idx"));
    CHECK_THROWS_WITH(IndexedReader(path), Contains("does not fit"));
    std::size_t seen = 0;
    for_each_sample(path, [&](Sample&) { ++seen; });
    CHECK(seen == 50);
  }
  SECTION("an index with a byte that changed gives an error, and never another sample") {
    std::vector<Sample> all;
    for_each_sample(path, [&](const Sample& sample) { all.push_back(sample); });
    const auto texts = [](const Sample& sample) {
      std::string text;
      for (const Member& member : sample.members)
        text += member.extension + "=" + member.data + "\n";
      return text;
    };
    const auto read_all = [&]() -> std::vector<std::optional<Sample>> {
      std::vector<std::optional<Sample>> read(all.size());
      try {
        const IndexedReader reader(path);
        for (std::size_t i = 0; i < all.size(); ++i)
          try {
            read[i] = reader.read(static_cast<std::int64_t>(i));
          } catch (const Error& error) {
            CHECK_THAT(error.what(), Contains("does not fit"));
          }
      } catch (const Error& error) {
        CHECK_THAT(error.what(), Contains("does not fit"));
      }
      return read;
    };
    for (std::size_t at = 8; at < index.size(); ++at)  // the first number is 0 for everyone
      for (const int flip : {0x01, 0x02, 0x04, 0x08, 0x80}) {
        std::string bad = index;
        bad[at] = static_cast<char>(bad[at] ^ flip);
        io::write_file(path + ".idx", bad);
        const auto read = read_all();
        CHECK(std::any_of(read.begin(), read.end(), [](const auto& one) { return !one; }));
        for (std::size_t i = 0; i < read.size(); ++i) {
          if (!read[i]) continue;
          if (read[i]->key != all[i].key) FAIL("another sample at " << i);
          if (texts(*read[i]) != texts(all[i])) FAIL("not all of it at " << i);
        }
      }
  }
  SECTION("a tar that goes on behind the end of its index, or was cut before it") {
    io::write_file(path, whole + std::string(4096, '\0'));
    CHECK(IndexedReader(path).samples() == 50);
    io::write_file(path, whole + whole);
    CHECK_THROWS_WITH(IndexedReader(path), Contains("goes on behind its end"));
    const std::size_t end = IndexedReader(path, TarOffsets::scan(path, path)).index().at.back();
    const IndexedReader good(path, TarOffsets::scan(path, path));
    const auto begin = [&](std::int64_t i) { return static_cast<std::size_t>(good.offset(i)); };
    io::write_file(path, whole.substr(0, end));
    CHECK(IndexedReader(path).samples() == 50);  // without end blocks, as some programs write it
    CHECK(list(StreamReader(path)).size() == 50);
    // Between two members the tar alone does not tell that it was cut.
    for (const std::size_t size : {begin(40), begin(40) + 1024}) {
      io::write_file(path, whole.substr(0, size));
      std::vector<std::string> keys;
      StreamReader reader(path);
      const auto read_all = [&] {
        for (Sample sample; reader.next(sample);)
          keys.push_back(sample.key);
      };
      CHECK_THROWS_WITH(read_all(), Contains("breaks off") && Contains(path + ".idx"));
      CHECK(keys.size() == 40);
      const TarOffsets found = TarOffsets::scan(path, path);
      CHECK(IndexedReader(path, found).samples() == 40);
      CHECK_THAT(found.damage, Contains("breaks off"));
      std::filesystem::rename(path + ".idx", path + ".kept");
      CHECK(list(StreamReader(path)).size() == (size == begin(40) ? 40 : 41));
      std::filesystem::rename(path + ".kept", path + ".idx");
    }
    io::write_file(path, whole.substr(0, 1024));
    CHECK_THROWS_WITH(TarOffsets::scan(path, path), Contains("breaks off"));
    for (const std::size_t size : {end + 1, end - 1, end - 512, end / 2, std::size_t{0}}) {
      io::write_file(path, whole.substr(0, size));
      CHECK_THROWS_WITH(IndexedReader(path), Contains("does not fit") && Contains(path));
    }
  }
  SECTION("indexes of nonsense") {
    for (const std::string& bad : {std::string(), std::string(8, '\0'), index.substr(1),
                                   std::string(16, '\xff'), index + std::string(8, '\0')}) {
      io::write_file(path + ".idx", bad);
      CHECK_THROWS_AS(IndexedReader(path), Error);
    }
  }
  SECTION("not a tar") {
    io::write_file(path, std::string(5000, 'x'));
    CHECK_THROWS_WITH(list(StreamReader(path)), Contains("not a readable tar"));
    CHECK_THROWS_AS(list(StreamReader(dir / "missing.tar")), Error);
    CHECK_THROWS_AS(list(StreamReader(dir / ".")), Error);
  }
  SECTION("empty archives have no samples") {
    io::write_file(path, std::string(1024, '\0'));
    CHECK(list(StreamReader(path)).empty());
  }
}

TEST_CASE(
    "samples above the limit are passed over, by their headers, and while they are unpacked") {
  const TemporaryFolder dir;
  const std::string entries =
      "[('a.x','1'*900),('b.x','2'*600),('b.y','3'*600),('c.x','4'),('d.x','5'*1001),('e.x','6')]";
  const std::string tar = python_tar(dir, "GNU_FORMAT", entries);
  const ReadLimits limits{.member = 1000};
  output_of("gzip -c " + tar + " >" + tar + ".gz");
  for (const std::string& path : {tar, tar + ".gz"}) {
    StreamReader reader(path, limits);
    std::string keys;
    for (Sample sample; reader.next(sample);)
      keys += sample.key;
    CHECK(keys == "ace");
    REQUIRE(reader.refused().size() == 2);
    CHECK(reader.refused()[0].key == "b");
    CHECK_THAT(reader.refused()[1].why, Contains("'d.x'") && Contains("1001 bytes"));
  }
  const IndexedReader reader(tar, TarOffsets::scan(tar, tar), limits);
  CHECK(reader.read(0).key == "a");
  CHECK_THROWS_WITH(reader.read(1), Contains("too large"));
  CHECK(reader.read(2).key == "c");
  CHECK_THROWS_WITH(reader.read(3), Contains("too large"));

  const Unpacked unpacked = unpack(tar + ".gz", dir / "out.tar", limits);
  CHECK(unpacked.compressed);
  CHECK(unpacked.damage.empty());
  CHECK(unpacked.refused.size() == 2);
  CHECK(list(StreamReader(dir / "out.tar")).size() == 3);
  CHECK_FALSE(unpack(tar, dir / "none.tar", limits).compressed);
}

TEST_CASE("a hole of many bytes in a file of few is refused by its size") {
  const TemporaryFolder dir;
  // A member that is a hole, and a tar that is one after its first header.
  output_of(
      "cd " + (dir / ".") +
      " && truncate -s 3G h.x && tar -Scf sparse.tar h.x && "
      "tar -cf - h.x 2>/dev/null | head -c 512 >plain.tar && truncate -s 3221227008 plain.tar");
  for (const char* name : {"sparse.tar", "plain.tar"}) {
    StreamReader reader(dir / name);
    Sample sample;
    CHECK_FALSE(reader.next(sample));
    REQUIRE(reader.refused().size() == 1);
    CHECK_THAT(reader.refused()[0].why, Contains("'h.x'"));
    const IndexedReader reader_by_index(dir / name, TarOffsets::scan(dir / name, name));
    CHECK_THROWS_AS(reader_by_index.read(0), Error);
    CHECK_THROWS_AS(reader_by_index.read_piece(0, 0, std::uint64_t{3} << 30), Error);
  }
}

TEST_CASE("what is no regular file is not waited for") {
  const TemporaryFolder dir;
  output_of("mkfifo " + (dir / "f.tar"));
  CHECK_THROWS_WITH(StreamReader(dir / "f.tar"), Contains("pipe or a device"));
  CHECK_THROWS_WITH(IndexedReader(dir / "f.tar"), Contains("pipe or a device"));
  CHECK_THROWS_WITH(TarOffsets::scan(dir / "f.tar", "f"), Contains("pipe or a device"));
  CHECK_THROWS_WITH(StreamReader("gs://b/x.tar"), Contains("is an address"));
}

TEST_CASE("a size that the archive does not have allocates nothing and is an error") {
  const TemporaryFolder dir;
  write_shard(dir / "a.tar", 2);
  std::string tar = io::read_file(dir / "a.tar");
  tar.replace(124, 11, "77777777777");  // 8 GiB
  unsigned sum = 0;
  for (int i = 0; i < 512; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[static_cast<std::size_t>(i)]);
  tar.replace(148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
  CHECK_THROWS_AS(list(StreamReader(std::string_view(tar), "memory")), Error);
  io::write_file(dir / "a.tar", tar);
  CHECK_THROWS_AS(IndexedReader(dir / "a.tar").read(0), Error);
}

// Were each member looked for among all before it, the last would take long.
TEST_CASE("a sample of very many members is refused, and the next one is read") {
  const TemporaryFolder dir;
  for (const int members : {4096, 4097, 60'000}) {
    const std::string path = python_tar(
        dir, "USTAR_FORMAT",
        fmt::format("[('a.txt', 'x')] + [('k.e%d' % i, 'y') for i in range({})] + [('z.txt', 'z')]",
                    members));
    const std::size_t whole = members > 4096 ? 2 : 3;
    StreamReader reader(path);
    std::vector<std::string> keys;
    for (Sample sample; reader.next(sample);)
      keys.push_back(sample.key);
    CHECK(keys.size() == whole);
    CHECK(keys.back() == "z");
    CHECK(reader.refused().size() == 3 - whole);
    for (const Refused& refused : reader.refused())
      CHECK_THAT(refused.why, Contains("sample 'k' of '") && Contains("more than 4096 members"));
    const IndexedReader by_index(path, TarOffsets::scan(path, path));
    REQUIRE(by_index.samples() == 3);
    if (whole == 3)
      CHECK(by_index.read(1).members.size() == 4096);
    else
      CHECK_THROWS_WITH(by_index.read(1), Contains("more than 4096 members"));
    CHECK(by_index.read(2).key == "z");
  }
}
