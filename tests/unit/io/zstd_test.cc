// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/line_reader.h"
#include "io/manifest.h"
#include "io/zstd_frames.h"
#include "io/zstd_reader.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;
using Catch::Contains;

namespace {

/// Each part is a frame of its own, if it is large enough.
std::string in_frames(const std::vector<std::string>& parts) {
  std::string packed;
  ZstdFrameWriter writer([&](std::string_view bytes) { packed += bytes; });
  for (const std::string& part : parts) {
    writer.add(part);
    writer.end_part();
  }
  writer.finish();
  return packed;
}

/// Text that does not compress to nothing.
std::string mixed_text(std::size_t bytes) {
  std::string text(bytes, '\0');
  std::uint32_t state = 1;
  for (char& c : text)
    c = static_cast<char>('a' + (state = state * 1664525 + 1013904223) / (1U << 28));
  return text;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  LineReader reader(File::open_read(path), "'" + path + "'");
  while (auto line = reader.next())
    lines.push_back(*std::move(line));
  return lines;
}

Cause cause_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.cause();
  }
  return Cause::other;
}

std::string read_at(const ZstdFrames& frames, std::uint64_t offset, std::size_t size) {
  std::string out(size, '\0');
  frames.pread_exact(out.data(), size, offset);
  return out;
}

}  // namespace

TEST_CASE("lines of a compressed file are those of the plain one, in any number of frames") {
  const TemporaryFolder dir;
  const std::string file = dir / "a.txt.zst", large = mixed_text(3 * ZstdFrameWriter::kLeast);
  const std::vector<std::string> want = {"one", "", large, "two", large, "last"};
  write_file(file, in_frames({"one\n\n" + large, "\ntwo\n"}) + in_frames({large + "\nlast"}));
  CHECK(lines_of(file) == want);
  write_file(file, in_frames({}));
  CHECK(lines_of(file).empty());
  if (std::system("command -v zstd >/dev/null") != 0) return;
  write_file(dir / "b", "one\n\n" + large + "\ntwo\n" + large + "\nlast");
  REQUIRE(std::system(("cd " + dir.path + " && zstd -q -19 --long=27 b -o b.zst").c_str()) == 0);
  CHECK(lines_of(dir / "b.zst") == want);
  REQUIRE(std::system(("cd " + dir.path + " && zstd -q --long=28 <b >c.zst").c_str()) == 0);
  CHECK_THROWS_WITH(lines_of(dir / "c.zst"),
                    Contains("c.zst' is damaged: zstd says 'Frame requires "
                             "too much memory for decoding'"));
}

TEST_CASE("a compressed file that is cut off or changed is an error, or has the same lines") {
  const TemporaryFolder dir;
  const std::string file = dir / "a.zst", packed = in_frames({"one\ntwo\n" + mixed_text(200)});
  write_file(file, packed);
  const std::vector<std::string> whole = lines_of(file);
  const std::size_t frame = packed.size() - 8 - 8 - 9;  // without the table
  for (std::size_t size = 0; size < packed.size(); ++size) {
    CAPTURE(size);
    write_file(file, packed.substr(0, size));
    if (size == frame)
      CHECK(lines_of(file) == whole);
    else
      CHECK_THROWS_WITH(lines_of(file), Contains("a.zst' is cut off"));
  }
  for (std::size_t at = 0; at < frame; ++at) {
    CAPTURE(at);
    std::string wrong = packed;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
    write_file(file, wrong);
    std::vector<std::string> lines = whole;
    if (cause_of([&] { lines = lines_of(file); }) != Cause::format) CHECK(lines == whole);
  }
}

TEST_CASE("a compressed file that unpacks to far more than its bytes is refused by name") {
  const TemporaryFolder dir;
  const std::string file = dir / "zeros.zst";
  write_file(file, in_frames({std::string(3 << 20, '\0')}));
  ZstdReader reader(File::open_read(file), 1 << 20);
  std::vector<char> out(1 << 16);
  const auto read_all = [&] {
    while (reader.read_some(out.data(), out.size()) > 0) {
    }
  };
  CHECK_THROWS_WITH(read_all(), Contains("zeros.zst' unpacks to more than"));
}

TEST_CASE("a compressed manifest is read as a plain one; a damaged one ends with an error") {
  const TemporaryFolder dir;
  const std::string file = dir / "m.jsonl.zst";
  CHECK(is_manifest_name("a.jsonl.zst"));
  CHECK(is_manifest_name("a.NDJSON"));
  CHECK_FALSE(is_manifest_name("a.tar.zst"));
  CHECK_FALSE(is_manifest_name(".zst"));
  const std::string packed = in_frames({"{\"kind\":\"video\",\"path\":\"1.mp4\"}\n2.mp4\n"});
  for (const bool cut : {false, true}) {
    write_file(file, cut ? packed + packed.substr(0, 8) : packed);
    std::vector<std::string> bad, paths;
    ManifestReader reader({file, "3.mp4"}, [&](const Fault& fault) {
      bad.push_back(fault.input + ": " + fault.message);
    });
    while (const auto record = reader.next())
      paths.push_back(record->path());
    CHECK(paths == std::vector<std::string>{"1.mp4", "2.mp4", "3.mp4"});
    REQUIRE(bad.size() == (cut ? 1 : 0));
    if (cut) CHECK_THAT(bad[0], Contains("m.jsonl.zst: ") && Contains("is cut off"));
  }
}

TEST_CASE("frames are read here and there, as they were added") {
  const TemporaryFolder dir;
  const std::string small(1000, 's'), medium = mixed_text(ZstdFrameWriter::kLeast + 5);
  const std::string large = mixed_text(2 * ZstdFrameWriter::kMost + 77);
  const std::string all = small + medium + small + large + small;
  const std::string packed = in_frames({small, medium, small, large, small});
  CHECK(packed == in_frames({small, medium, small, large, small}));
  write_file(dir / "f.zst", packed);
  CHECK(ZstdFrames::are_in(File::open_read(dir / "f.zst")));
  const ZstdFrames frames(File::open_read(dir / "f.zst"));
  REQUIRE(frames.size() == all.size());
  CHECK(read_at(frames, 0, all.size()) == all);
  for (const std::size_t size : {1U, 512U, 5000U, 300000U, 6000000U})
    for (std::size_t at = 0; at + size <= all.size(); at += 700001)
      REQUIRE(read_at(frames, at, size) == all.substr(at, size));
  // The begin of a large frame is read without the rest.
  const std::size_t second = small.size() + medium.size();
  for (const std::size_t at : {std::size_t{0}, second - 1, second, second + 100})
    REQUIRE(read_at(frames, at, 512) == all.substr(at, 512));
  CHECK(read_at(frames, all.size(), 0).empty());
  CHECK_THROWS_WITH(read_at(frames, all.size() - 1, 2), Contains("is truncated"));
  if (std::system("command -v zstd >/dev/null") != 0) return;
  REQUIRE(std::system(("zstd -qd " + (dir / "f.zst") + " -o " + (dir / "f")).c_str()) == 0);
  CHECK(read_file(dir / "f") == all);
}

TEST_CASE("a table of frames that does not fit is none, and what it promises has limits") {
  const TemporaryFolder dir;
  const std::string file = dir / "f.zst", part = mixed_text(ZstdFrameWriter::kLeast);
  const std::string packed = in_frames({part, part, part});
  const std::size_t table = packed.size() - 8 - 3 * 8 - 9;
  const auto opens = [&](const std::string& bytes) {
    write_file(file, bytes);
    return ZstdFrames::are_in(File::open_read(file));
  };
  const auto with_number = [&](std::size_t at, std::uint32_t number) {
    std::string wrong = packed;
    std::memcpy(&wrong[at], &number, sizeof number);
    return wrong;
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{16}, table, packed.size() - 1})
    CHECK_FALSE(opens(packed.substr(0, size)));
  CHECK_FALSE(opens(packed + packed));                             // joined by cat
  CHECK_FALSE(opens(with_number(table + 12, (64 << 20) + 1)));     // a huge frame
  CHECK_FALSE(opens(with_number(packed.size() - 9, 0xFFFFFFFF)));  // of so many frames
  CHECK_THROWS_WITH(ZstdFrames(File::open_read(file)), Contains("f.zst' has no table of frames"));

  // The second frame is smaller than the table says, and then larger.
  for (const std::uint32_t size : {300000U, 200U}) {
    CHECK(opens(with_number(table + 8 + 8 + 4, size)));
    const ZstdFrames frames(File::open_read(file));
    CHECK(read_at(frames, 0, part.size()) == part);
    CHECK(cause_of([&] { read_at(frames, part.size() + 10, 9000); }) == Cause::format);
    CHECK(read_at(frames, part.size() + size, part.size()) == part);
  }
  // A changed byte damages its frame alone.
  std::string wrong = packed;
  wrong[table / 2] = static_cast<char>(~wrong[table / 2]);
  CHECK(opens(wrong));
  const ZstdFrames frames(File::open_read(file));
  CHECK_THROWS_WITH(read_at(frames, part.size(), 9000), Contains("f.zst' is damaged: zstd says"));
  CHECK(read_at(frames, 2 * part.size(), part.size()) == part);
}

TEST_CASE("a table that promises far more than a file can hold is refused by name") {
  const TemporaryFolder dir;
  constexpr std::uint32_t kFrames = 100, kEach = 64 << 20;
  std::string bytes(kFrames, 'x'), table;
  const auto put = [&](std::uint32_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(0x184D2A5E);
  put(kFrames * 8 + 9);
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    put(1);
    put(kEach);
  }
  put(kFrames);
  bytes += '\0';
  put(0x8F92EAB1);
  write_file(dir / "bomb.zst", bytes);
  CHECK_THROWS_WITH(ZstdFrames(File::open_read(dir / "bomb.zst")),
                    Contains("bomb.zst' would unpack to 6.2 GiB"));
}
