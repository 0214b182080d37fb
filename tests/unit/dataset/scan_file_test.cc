// What a part of a scan keeps of each line, and the numbers of lines.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "dataset/left_out.h"
#include "dataset/scan_lines.h"
#include "dataset/scanned.h"
#include "dataset_run.h"
#include "io/places.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

/// A line of which only the number, and as many items as wanted, matter.
Scanned numbered_line(const std::string& folder, std::uint64_t number, int items = 0) {
  Scanned line(folder);
  line.line = number;
  line.shard = true;
  line.input.name = fmt::format("line {}", number);
  Item item;
  for (int i = 0; i < items; ++i) {
    item.key = fmt::format("{}-{}", number, i);
    item.shape.media = i % 2 == 0 ? "mp4" : "jpg";
    line.items.add(item);
  }
  return line;
}

std::string refused_scan(const std::string& path) {
  try {
    const ScanFile file(path);
    file.for_each_line([&](std::uint64_t, std::uint64_t place) {
      file.give(place, [](LineFacts&, const Shapes&, io::ScratchReader, io::ScratchReader) {});
    });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a line of a scan comes back whole") {
  const MemoryFolder folder;
  const std::string path = folder / "scan.bin";
  Scanned line = numbered_line(folder.path, 7, 3);
  line.input = {"a", {"a.tar", "/b/a.embed.tar", "http://h/a.tar"}, {true, false, false}, 7};
  line.fields = {"x", "y"};
  line.inside = {"o.m"};
  line.vectors = {"video.npy", "text.npy"};
  line.compared = {{"x", "'1'", true, 3, 4}, {"y", "2", false, 5, 0}};
  line.numbers.add(11, "fps", 9);
  line.numbers.add(12, "motion", 8);
  line.encoders.add(13, R"({"name":"own"})");
  line.read = 6, line.filtered = 2;
  line.taken_out = {{0, 1}, {5, 2}};
  line.errors = {{"k of 'a.tar'", "it is bad", Cause::format}, {"z", "and this", Cause::disk}};
  const LeftOut gone{"k9", LeftOutReason::without, "key", "5", 0, 0};
  line.left_out.append_text(gone.pack());
  const std::string more(700'000, 'x');  // longer than what is copied at once
  line.left_out.append_text(more);
  {
    ScanFileWriter writer(path);
    writer.add(line);
    writer.add(numbered_line(folder.path, 3));
    writer.commit();
  }
  ScanFiles files(folder.path);
  files.add(path);
  CHECK(files.lines() == 2);
  std::vector<std::uint64_t> order;
  files.for_each([&](LineFacts& facts, const Shapes& shapes, io::ScratchReader items,
                     io::ScratchReader left_out) {
    order.push_back(facts.line);
    CHECK(facts.shard);
    if (facts.line != 7) {
      CHECK(facts.input.tars.empty());
      CHECK(facts.errors.empty());
      CHECK(items.ended());
      CHECK(left_out.ended());
      return;
    }
    CHECK(facts.input.name == "a");
    CHECK(facts.input.tars == line.input.tars);
    CHECK(facts.input.packed == line.input.packed);
    CHECK(facts.input.line == 7);
    CHECK(facts.fields == line.fields);
    CHECK(facts.inside == line.inside);
    CHECK(facts.vectors == line.vectors);
    REQUIRE(facts.compared.size() == 2);
    CHECK(facts.compared[0].field == "x");
    CHECK(facts.compared[0].constant == "'1'");
    CHECK(facts.compared[0].text);
    CHECK(facts.compared[0].fits == 3);
    CHECK(facts.compared[0].differs == 4);
    CHECK_FALSE(facts.compared[1].text);
    REQUIRE(facts.numbers.fields().size() == 2);
    CHECK(facts.numbers.fields().at(12).name == "motion");
    CHECK(facts.numbers.fields().at(12).samples == 8);
    CHECK(facts.encoders.names() == line.encoders.names());
    CHECK(facts.read == 6);
    CHECK(facts.filtered == 2);
    CHECK(facts.taken_out == line.taken_out);
    REQUIRE(facts.errors.size() == 2);
    CHECK(facts.errors[1].input == "z");
    CHECK(facts.errors[1].message == "and this");
    CHECK(facts.errors[1].cause == Cause::disk);
    CHECK(shapes.size() == 2);
    CHECK(shapes[1].media == "jpg");
    std::string_view packed;
    REQUIRE(left_out.text(packed));
    CHECK(LeftOut::unpack(packed).key == "k9");
    REQUIRE(left_out.text(packed));
    CHECK((packed == more));
    CHECK(left_out.ended());
    const std::string all(items.bytes(line.items.items().size()));
    CHECK(items.ended());
    std::string written(all.size(), '\0');
    line.items.items().read(written.data(), written.size(), 0);
    CHECK(all == written);
  });
  CHECK(order == std::vector<std::uint64_t>{3, 7});
}

TEST_CASE("lines of many files of a scan come in order, though not all files are open") {
  const MemoryFolder folder;
  constexpr int kFiles = 300, kLines = 3;
  ScanFiles files(folder.path);
  for (int number = kFiles - 1; number >= 0; --number) {
    const std::string path = folder / fmt::format("{}.bin", number);
    ScanFileWriter writer(path);
    for (int line = kLines - 1; line >= 0; --line)
      writer.add(numbered_line(folder.path, static_cast<std::uint64_t>(line * kFiles + number)));
    writer.commit();
    files.add(path);
  }
  CHECK(files.lines() == kFiles * kLines);
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_files();
  std::ptrdiff_t most = 0;
  std::uint64_t next = 0;
  files.for_each([&](LineFacts& facts, const Shapes&, io::ScratchReader, io::ScratchReader) {
    CHECK(facts.line == next);
    CHECK(facts.input.name == fmt::format("line {}", next));
    if (++next % 100 == 0) most = std::max(most, open_files() - before);
  });
  CHECK(next == kFiles * kLines);
  CHECK(most <= 258);
}

TEST_CASE("a damaged file of a scan is refused, wherever it ends") {
  const MemoryFolder folder;
  const std::string path = folder / "scan.bin";
  {
    ScanFileWriter writer(path);
    writer.add(numbered_line(folder.path, 1, 5));
    writer.commit();
  }
  CHECK(refused_scan(path).empty());
  const std::string bytes = io::read_file(path);
  // The head is a text, with its length, of two texts: the version, and the working folder.
  const std::string here = io::working_folder();
  const std::size_t version = bytes.find("vfm-shard scan "), at = bytes.find(here);
  REQUIRE(at != std::string::npos);
  for (std::size_t size = at + here.size() + 1; size < bytes.size(); size += 7) {
    folder.write("scan.bin", bytes.substr(0, size));
    CAPTURE(size);
    CHECK_FALSE(refused_scan(path).empty());
  }
  folder.write("scan.bin", "");
  CHECK_FALSE(refused_scan(path).empty());
  std::string other = bytes;
  other[version + 15] = '9';
  folder.write("scan.bin", other);
  CHECK_THAT(refused_scan(path), Catch::Contains("is of another version of vfm"));
  // A size that reaches behind the file.
  other = bytes;
  other[at + here.size() + 8] = '\x7f';
  folder.write("scan.bin", other);
  CHECK_FALSE(refused_scan(path).empty());
}

TEST_CASE("tars of a scan that was made in another folder are named from there") {
  const MemoryFolder folder;
  const std::string path = folder / "scan.bin", here = io::working_folder();
  Scanned line = numbered_line(folder.path, 1);
  line.input.tars = {"a.tar", "/b.tar"};
  line.input.packed = {false, false};
  {
    ScanFileWriter writer(path);
    writer.add(line);
    writer.commit();
  }
  std::string there = here;
  there.back() = there.back() == 'x' ? 'y' : 'x';
  folder.write("scan.bin", replaced(io::read_file(path), here, there));
  const ScanFile file(path);
  std::vector<std::string> tars;
  file.for_each_line([&](std::uint64_t, std::uint64_t place) {
    file.give(place, [&](LineFacts& facts, const Shapes&, io::ScratchReader, io::ScratchReader) {
      tars = facts.input.tars;
    });
  });
  CHECK(tars == std::vector<std::string>{there + "/a.tar", "/b.tar"});
}

TEST_CASE("lines are counted from 0, and bad lines come before the record after them") {
  DatasetRun run;
  run.add("a", {video("k1", "{}")});
  run.add("b", {video("k2", "{}")});
  const std::string a = run.folder / "a.tar", b = run.folder / "b.tar";
  run.folder.write("in.jsonl", "[1]\n{\"kind\"\n" + a + "\nraw.mp4\n" + b + "\n[2]\n");
  ScanLines lines({run.folder / "in.jsonl"});
  std::vector<std::string> found;
  while (const std::optional<ScanLine> line = lines.next()) {
    CHECK(line->number == found.size());
    found.push_back(line->error.empty() ? line->record.kind + " " + line->record.path() : "bad");
  }
  CHECK(found ==
        std::vector<std::string>{"bad", "bad", "shard " + a, "video raw.mp4", "shard " + b, "bad"});
  CHECK_FALSE(lines.next());
}
