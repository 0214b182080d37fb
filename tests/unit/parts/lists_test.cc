// The list of vfm-clip list: units, balance, and what a second call changes.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/manifest.h"
#include "io/process_name.h"
#include "io/store.h"
#include "parts/clip_list.h"
#include "parts/part_run.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::parts;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

/// Files with the sizes that are named, without data on the disk.
class SizedFiles {
 public:
  std::string add(const std::string& name, std::uint64_t bytes) {
    folder_.write("raw/" + name, "");
    std::filesystem::resize_file(folder_ / ("raw/" + name), bytes);
    return folder_ / ("raw/" + name);
  }
  std::string directory() const { return folder_ / "clips"; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

struct Listed {
  std::vector<io::Fault> faults;
  ListFacts facts;
};

Listed list(const std::vector<std::string>& inputs, const std::string& directory, int parts,
            std::uint64_t shard_bytes = 64 * kMiB) {
  ListOptions options;
  options.inputs = inputs;
  options.directory = directory;
  options.parts = parts;
  options.shard_bytes = shard_bytes;
  options.is_picture = [](const std::string& path) { return path.ends_with(".png"); };
  Listed listed;
  listed.facts = write_list(
      options, [&](io::Fault fault) { listed.faults.push_back(std::move(fault)); }, no_progress());
  return listed;
}

/// The records of a part, read as vfm-clip reads them.
std::vector<Json> part_records(const std::string& directory, int part) {
  io::ManifestReader reader({list_path(directory, part)},
                            [](const io::Fault& fault) { FAIL(fault.message); });
  std::vector<Json> records;
  while (auto record = reader.next())
    records.push_back(*record->json);
  reader.streams().check_whole("");
  return records;
}

/// The units of a list: the paths of each, in order.
std::set<std::vector<std::string>> units_of(const std::string& directory) {
  std::map<std::int64_t, std::vector<std::string>> units;  // by bucket, or else below 0
  for (int part = 0; part < read_list(directory)->parts; ++part)
    for (const Json& record : part_records(directory, part))
      units[record.value("bucket", -1 - record.at("place").get<std::int64_t>())].push_back(
          record.at("path"));
  std::set<std::vector<std::string>> found;
  for (const auto& [key, paths] : units)
    found.insert(paths);
  return found;
}

/// Large videos, small ones and pictures.
std::vector<std::string> many_files(SizedFiles& files, int count = 300) {
  std::vector<std::string> paths;
  for (int i = 0; i < count; ++i)
    paths.push_back(i % 3 == 0   ? files.add(fmt::format("large{}.mp4", i), (5 + i) * kMiB)
                    : i % 3 == 1 ? files.add(fmt::format("small{}.mp4", i), kMiB / 2 + 1000 * i)
                                 : files.add(fmt::format("picture{}.png", i), 9 * kMiB));
  return paths;
}

}  // namespace

TEST_CASE("parts have nearly equal bytes, and every video is in one part, in order") {
  SizedFiles files;
  const std::vector<std::string> paths = many_files(files);
  const Listed listed = list(paths, files.directory(), 7);
  CHECK(listed.faults.empty());
  CHECK(listed.facts.parts == 7);
  CHECK(listed.facts.made.size() == 7);
  std::map<std::int64_t, std::string> places;
  std::uint64_t least = UINT64_MAX, most = 0, all = 0;
  for (int part = 0; part < 7; ++part) {
    std::uint64_t bytes = 0;
    std::int64_t last = -1, first_of_unit = -1, bucket = -1;
    for (const Json& record : part_records(files.directory(), part)) {
      CHECK(record.at("kind") == "video");
      const std::string path = record.at("path");
      const std::int64_t place = record.at("place");
      bytes += record.at("bytes").get<std::uint64_t>();
      CHECK(record.at("bytes") == std::filesystem::file_size(path));
      CHECK(record.contains("bucket") == (path.find("large") == std::string::npos));
      CHECK(places.emplace(place, path).second);
      const std::int64_t mine = record.value("bucket", std::int64_t{-1});
      if (mine < 0 || mine != bucket) {
        CHECK(place > first_of_unit);  // units in order of their first places
        first_of_unit = place;
      } else {
        CHECK(place > last);
      }
      bucket = mine;
      last = place;
    }
    CHECK(bytes == listed.facts.made[static_cast<std::size_t>(part)].bytes);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
    all += bytes;
  }
  REQUIRE(places.size() == paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i)
    CHECK(places.at(static_cast<std::int64_t>(i)) == paths[i]);
  // The largest unit is a bucket of some 32 MiB or a video of 302 MiB.
  CHECK(static_cast<double>(most - least) < 0.05 * static_cast<double>(all) / 7);
  const std::optional<ClipList> said = read_list(files.directory());
  REQUIRE(said);
  CHECK(said->videos == paths.size());
  CHECK(said->bytes == all);
  CHECK(said->shard_bytes == 64 * kMiB);
}

TEST_CASE("units do not depend on the number of parts") {
  SizedFiles files;
  const std::vector<std::string> paths = many_files(files);
  list(paths, files.directory(), 1);
  const auto units = units_of(files.directory());
  CHECK(units.size() > 110);
  CHECK(units.size() < 150);
  for (const int parts : {4, 7, 30}) {
    const std::string other = files.folder() / fmt::format("other{}", parts);
    list(paths, other, parts);
    CHECK(units_of(other) == units);
  }
}

TEST_CASE("a second call leaves the parts as they are, and makes parts of the new videos") {
  SizedFiles files;
  const std::vector<std::string> paths = many_files(files);
  const std::vector<std::string> some(paths.begin(), paths.begin() + 200);
  list(some, files.directory(), 4);
  std::vector<std::string> before;
  for (int part = 0; part < 4; ++part)
    before.push_back(io::read_file(list_path(files.directory(), part)));
  const ClipList first = *read_list(files.directory());

  // The same videos again: nothing changes.
  const std::string said = io::read_file(files.directory() + "/parts/list.json");
  Listed again = list(some, files.directory(), 3);
  CHECK(again.facts.parts == 4);
  CHECK(again.facts.made.empty());
  CHECK(again.facts.known == 200);
  CHECK(io::read_file(files.directory() + "/parts/list.json") == said);

  // Names that a command in another folder would write.
  std::vector<std::string> mixed(paths.rbegin(), paths.rend());
  for (std::size_t i = 0; i < mixed.size(); i += 2)
    mixed[i] = files.folder() / ("clips/../raw/./" + io::base_name(mixed[i]));
  again = list(mixed, files.directory(), 3);
  CHECK(again.facts.parts == 7);
  CHECK(again.facts.known == 200);
  for (int part = 0; part < 4; ++part)
    CHECK(io::read_file(list_path(files.directory(), part)) ==
          before[static_cast<std::size_t>(part)]);
  std::set<std::int64_t> places;
  for (int part = 4; part < 7; ++part)
    for (const Json& record : part_records(files.directory(), part)) {
      places.insert(record.at("place").get<std::int64_t>());
      if (record.contains("bucket")) CHECK(record.at("bucket") >= first.buckets);
    }
  CHECK(places.size() == 100);
  CHECK(*places.begin() == 200);
  CHECK(*places.rbegin() == 299);
  const ClipList both = *read_list(files.directory());
  CHECK(both.videos == 300);
  CHECK(both.buckets > first.buckets);
  const Json json = parse_json(io::read_file(files.directory() + "/parts/list.json"), "");
  CHECK(json.at("appended").size() == 2);
  CHECK(json.at("appended")[1].at("videos") == 100);
}

TEST_CASE("without a number, new parts are as large as the earlier ones") {
  SizedFiles files;
  std::vector<std::string> paths;
  for (int i = 0; i < 40; ++i)
    paths.push_back(files.add(fmt::format("{}.mp4", i), 10 * kMiB));
  list({paths.begin(), paths.begin() + 20}, files.directory(), 4);
  CHECK(list(paths, files.directory(), 0).facts.parts == 8);
  CHECK_THROWS_WITH(list(paths, files.folder() / "new", 0), Catch::Contains("-n N"));
  CHECK_FALSE(std::filesystem::exists(files.folder() / "new"));
}

TEST_CASE("fields of a record stay, and such a video is a unit alone") {
  SizedFiles files;
  const std::string plain = files.add("a.mp4", 1000), more = files.add("b.mp4", 1000);
  files.folder().write("in.jsonl",
                       dump_json({{"kind", "video"}, {"path", plain}}) + "\n" +
                           dump_json({{"kind", "video"}, {"path", more}, {"title", "B\n"}}) + "\n" +
                           R"({"kind":"video","path":"http://h/c.mp4","bytes":77})"
                           "\n"
                           R"({"kind":"video","path":"gone.mp4"})"
                           "\n"
                           R"({"kind":"shard","path":"x.tar"})"
                           "\n" +
                           "[1]\n" + plain + "\n");
  const Listed listed = list({files.folder() / "in.jsonl"}, files.directory(), 1);
  CHECK(listed.faults.size() == 2);
  CHECK(listed.facts.known == 1);
  const std::vector<Json> records = part_records(files.directory(), 0);
  REQUIRE(records.size() == 4);
  CHECK(records[0] ==
        Json{{"kind", "video"}, {"path", plain}, {"bytes", 1000}, {"place", 0}, {"bucket", 0}});
  CHECK(records[1] == Json{{"kind", "video"},
                           {"path", "http://h/c.mp4"},
                           {"bytes", 77},
                           {"place", 2},
                           {"bucket", 0}});
  CHECK(records[2] ==
        Json{{"kind", "video"}, {"path", more}, {"title", "B\n"}, {"bytes", 1000}, {"place", 1}});
  CHECK(records[3] == Json{{"kind", "video"}, {"path", "gone.mp4"}, {"place", 3}});
}

TEST_CASE("parts without a video are lists without a record") {
  SizedFiles files;
  const Listed listed = list({files.add("a.mp4", 10 * kMiB)}, files.directory(), 3);
  CHECK(listed.facts.parts == 3);
  CHECK(part_records(files.directory(), 0).size() == 1);
  CHECK(part_records(files.directory(), 2).empty());
}

TEST_CASE("what cannot be listed is said, and leaves no list") {
  SizedFiles files;
  const std::string video = files.add("a.mp4", 10);
  files.folder().write("none.jsonl", "\n");
  CHECK_THROWS_WITH(list({files.folder() / "none.jsonl"}, files.directory(), 3),
                    Catch::Contains("no videos"));
  CHECK_FALSE(read_list(files.directory()));
  files.folder().write("cut.jsonl", R"({"kind":"begin","tool":"find","id":"1"})"
                                    "\n" +
                                        video + "\n");
  CHECK_THROWS_WITH(list({files.folder() / "cut.jsonl"}, files.directory(), 3),
                    Catch::Contains("broke off"));
  CHECK_FALSE(read_list(files.directory()));
  list({video}, files.directory(), 1);
  try {
    list({video}, files.directory(), 1, 32 * kMiB);
    FAIL();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK_THAT(error.what(), Catch::Contains("--shard-size"));
  }
}

TEST_CASE("a call takes away what a killed one left") {
  SizedFiles files;
  const std::string one = files.add("a.mp4", 10), two = files.add("b.mp4", 10);
  list({one}, files.directory(), 2);
  const std::string folder = files.directory() + "/parts/";
  for (const char* left : {"list/00002.jsonl", "list/00007.jsonl", "list/.00003.jsonl.tmp",
                           ".list.json.next", ".list.json.host-1.0.tmp"})
    files.folder().write("clips/parts/" + std::string(left), "x");
  io::FileStore store(folder);
  io::ProcessName killed = io::ProcessName::self();
  killed.pid = 0x3ffffff;  // above the numbers of processes
  store.create("list/lease-1-0", dump_json({{"host", killed.host},
                                            {"pid", killed.pid},
                                            {"machine", killed.machine},
                                            {"begun", "2026-01-01T00:00:00Z"},
                                            {"beat_seconds", 20},
                                            {"patience", 65}}));
  list({one, two}, files.directory(), 1);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    names.insert(entry.path().filename());
  CHECK(names ==
        std::set<std::string>{"list", "list.json", "00000.jsonl", "00001.jsonl", "00002.jsonl"});
}

TEST_CASE("lists of many names take bounded memory and little time", "[long]") {
  const TemporaryFolder folder;
  constexpr int kNames = 50'000;
  std::string lines;
  for (int i = 0; i < kNames; ++i)
    lines += fmt::format(R"({{"kind":"video","path":"http://host/{}/{}.mp4","bytes":{}}})"
                         "\n",
                         i % 97, i, 1000 + i % 1000);
  folder.write("in.jsonl", lines);
  list({folder / "in.jsonl"}, folder / "clips", 50);
  const std::optional<ClipList> said = read_list(folder / "clips");
  REQUIRE(said);
  CHECK(said->videos == kNames);
  std::size_t counted = 0;
  for (int part = 0; part < 50; ++part)
    counted += part_records(folder / "clips", part).size();
  CHECK(counted == kNames);
}
