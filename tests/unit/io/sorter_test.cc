// Sorting beyond memory: the order, whatever runs there are, the memory it takes, and that nothing
// is left on the disk.
// SPDX-License-Identifier: Apache-2.0
#include "io/sorter.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "io/packed.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

namespace {

std::vector<std::string> all_of(Sorter& sorter) {
  std::vector<std::string> records;
  Sorter::Stream stream = sorter.sorted();
  for (std::string_view record; stream.next(record);)
    records.emplace_back(record);
  std::string_view more;
  CHECK_FALSE(stream.next(more));
  return records;
}

/// Of lengths from 0 to 299, many that begin alike, some equal.
std::vector<std::string> drawn(std::size_t count) {
  const Random random(1, Purpose::test);
  std::vector<std::string> records;
  for (std::size_t i = 0; i < count; ++i) {
    std::string record(random.bits(3 * i) % 300, '\0');
    for (std::size_t at = 0; at < record.size(); ++at)
      record[at] = static_cast<char>(at < 8 ? random.bits(3 * i + 1) % 2 : (i + at) * 7);
    records.push_back(record);
  }
  return records;
}

}  // namespace

TEST_CASE(
    "records come in the order of their bytes: in memory, from many runs, from runs of runs") {
  const TemporaryFolder folder;
  std::vector<std::string> records = drawn(5000);
  const std::size_t kib = GENERATE(4096, 256, 64);
  Sorter sorter(folder.path, kib << 10);
  const std::uint64_t before = ScratchFile::disk_bytes();
  for (const std::string& record : records)
    sorter.add(record);
  CHECK(sorter.records() == records.size());
  std::ranges::sort(records);
  CHECK(all_of(sorter) == records);
  CHECK(all_of(sorter) == records);  // and once more
  CHECK((ScratchFile::disk_bytes() > before) == (kib < 4096));
  CHECK(std::filesystem::is_empty(folder.path));
  CHECK_THROWS_WITH(sorter.add("late"), Catch::Contains("records come after"));
  Sorter other(folder.path, 64 << 10);
  CHECK_THROWS_WITH(other.add(std::string(17 << 10, 'x')), Catch::Contains("too long"));
  CHECK(all_of(other).empty());
}

TEST_CASE("a parked sorter gives the same records, from the disk") {
  const TemporaryFolder folder;
  std::vector<std::string> records = drawn(5000);
  Sorter sorter(folder.path), none(folder.path);
  const std::uint64_t before = ScratchFile::disk_bytes();
  for (const std::string& record : records)
    sorter.add(record);
  CHECK(ScratchFile::disk_bytes() == before);
  sorter.park();
  CHECK(ScratchFile::disk_bytes() > before);
  std::ranges::sort(records);
  CHECK(all_of(sorter) == records);
  CHECK(all_of(sorter) == records);
  none.park();
  CHECK(all_of(none).empty());
}

TEST_CASE("runs get longer, so that records of many times the memory are once on the disk") {
  const TemporaryFolder folder;
  constexpr std::size_t kMemory = std::size_t{256} << 10, kRecords = 60'000, kSize = 100;
  Sorter sorter(folder.path, kMemory);
  const std::uint64_t before = ScratchFile::disk_bytes();
  const Random random(2, Purpose::test);
  std::string record(kSize, '\0');
  for (std::size_t i = 0; i < kRecords; ++i) {
    for (std::size_t at = 0; at < 4; ++at)
      record[at] = static_cast<char>(random.bits(i) >> 8 * at);
    sorter.add(record);
  }
  sorter.park();
  CHECK(ScratchFile::disk_bytes() - before < kRecords * (kSize + 4));
  // The most of the process: cases before this one have far less.
  CHECK(ScratchFile::most_disk_bytes() < 1.1 * kRecords * kSize);
  const std::vector<std::string> records = all_of(sorter);
  CHECK(records.size() == kRecords);
  CHECK(std::ranges::is_sorted(records));
}

TEST_CASE("what a sorter has on the disk is gone with it") {
  const TemporaryFolder folder;
  const std::uint64_t before = ScratchFile::disk_bytes();
  {
    Sorter sorter(folder.path, 64 << 10);
    for (const std::string& record : drawn(3000))
      sorter.add(record);
    CHECK(ScratchFile::disk_bytes() > before);
    CHECK(ScratchFile::most_disk_bytes() >= ScratchFile::disk_bytes());
  }
  CHECK(ScratchFile::disk_bytes() == before);
}

TEST_CASE("a scratch file gives back what was put, also what is in memory still") {
  const TemporaryFolder folder;
  ScratchFile file(folder.path);
  std::string all;
  for (std::size_t i = 0; i < 40; ++i) {
    const std::string piece(i * 1000 + (i == 20 ? 300'000 : 0), static_cast<char>('a' + i % 26));
    file.append(piece);
    all += piece;
  }
  REQUIRE(file.size() == all.size());
  for (const std::size_t at : {std::size_t{0}, all.size() / 2, all.size() - 50'000}) {
    std::string part(50'000, '\0');
    file.read(part.data(), part.size(), at);
    CHECK(part == all.substr(at, part.size()));
  }
  ScratchReader reader(file, 1000);
  std::string again;
  while (!reader.ended())
    again += reader.bytes(std::min<std::size_t>(1700, all.size() - again.size()));
  CHECK(again == all);
  char byte = 0;
  CHECK_THROWS_AS(file.read(&byte, 1, all.size()), Error);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a text that is longer than its file is refused, and takes no memory") {
  const TemporaryFolder folder;
  ScratchFile file(folder.path);
  std::string packed;
  put_text(packed, "whole");
  put_number(packed, std::uint64_t{1} << 60);
  file.append(packed + "little");
  ScratchReader reader(file, 4);
  std::string_view text;
  REQUIRE(reader.text(text));
  CHECK(text == "whole");
  CHECK_THROWS_WITH(reader.text(text), Catch::Contains("damaged"));
  // A reader of a range sees no more than the range.
  ScratchReader range(file, 1, 6, 4);
  CHECK(range.bytes(5) == "whole");
  CHECK(range.ended());
  CHECK_THROWS_AS(range.bytes(1), Error);
}

TEST_CASE("a scratch file that cannot be made says where") {
  ScratchFile file("/nowhere/at all");
  file.append("little");
  CHECK_THROWS_WITH(file.append(std::string(1 << 20, 'x')),
                    Catch::Contains("'/nowhere/at all': No such file or directory"));
}

TEST_CASE("fields come back, and those that are ordered are so as bytes") {
  std::string out;
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128},
                                    std::numeric_limits<std::uint64_t>::max()}) {
    out.clear();
    put_number(out, value);
    std::string_view rest = out;
    CHECK(take_number(rest) == value);
    CHECK(rest.empty());
  }
  const std::vector<double> reals = {-1e300, -2.5, -1, 0, 1e-300, 0.5, 3, 29.97, 1e9, 1e300};
  std::string last;
  for (const double value : reals) {
    out.clear();
    put_real(out, value);
    std::string_view rest = out;
    CHECK(take_real(rest) == value);
    out.clear();
    put_ordered_real(out, value);
    CHECK((last.empty() || last < out));
    last = out;
  }
  std::string zero, minus;
  put_ordered_real(zero, 0.0), put_ordered_real(minus, -0.0);
  CHECK(zero == minus);
  last.clear();
  using namespace std::string_literals;
  for (const std::string& text :
       {""s, "\0"s, "\0\0"s, "\0a"s, "a"s, "a\0"s, "a\0b"s, "ab"s, "\xff"s}) {
    out.clear();
    put_ordered_text(out, text);
    const std::string alone = out;
    out += "what follows";
    std::string_view rest = out;
    CHECK(take_ordered_text(rest) == text);
    CHECK(rest == "what follows");
    CHECK((text.empty() || last < alone + "\xff"));
    CHECK((text.empty() || last + "\xff" < alone));  // whatever follows the lesser one
    last = alone;
  }
  for (const char* text :
       {"0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789abcdef", "short", ""}) {
    out.clear();
    put_hash(out, text);
    std::string_view rest = out;
    CHECK(hash_text(take_hash(rest)) == text);
    CHECK(rest.empty());
  }
  CHECK(out.size() == 2);
  std::string_view broken("\x80", 1);
  CHECK_THROWS_AS(take_number(broken), Error);
  broken = "abc";
  CHECK_THROWS_AS(take_ordered_text(broken), Error);
  CHECK_THROWS_AS(take_bytes(broken, 4), Error);
}
