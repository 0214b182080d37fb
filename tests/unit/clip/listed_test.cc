// Parts of a list: units, their names and folders, and faults that fail a part.
// SPDX-License-Identifier: Apache-2.0
#include "clip/store/listed.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "clip/source.h"
#include "clip/store/joined.h"
#include "parts/clip_list.h"
#include "support/parts.h"
#include "unit/clip/clip_run.h"

using namespace vfm;
using namespace vfm::clip;
using clip_run::ClipRun;
using clip_run::Lines;

namespace {

namespace fs = std::filesystem;

std::string listed_line(const std::string& path, int place, int bucket = -1) {
  Json record = {{"kind", "video"}, {"path", path}, {"place", place}};
  if (bucket >= 0) record["bucket"] = bucket;
  return dump_json(record) + "\n";
}

/// Each item as its kind and the names of its sources.
Lines units(ClipItems& items) {
  const char* const kinds[] = {"video", "images", "passed", "duplicate", "bad", "joined"};
  Lines lines;
  while (const auto item = items.next()) {
    lines.emplace_back(kinds[static_cast<int>(item->kind)]);
    for (const ClipSource& source : item->sources)
      lines.back() += " " + io::base_name(source.path);
    if (item->kind == ClipItem::Kind::bad) lines.back() += " " + io::base_name(item->input);
  }
  return lines;
}

/// The work at one part. What it gave, and what is below the folder out/ apart from parts/.
struct OnePart {
  ListedPart part;
  std::vector<Json> records;
  std::vector<io::Fault> faults;

  OnePart(ClipRun& run, const std::string& list, const std::string& name, bool lost = false) {
    const std::string own = run.options.directory + "/parts/clip/" + name;
    io::make_directories(own + "/unfinished");
    run.folder.write(name + ".jsonl", list);
    part.unfinished = own + "/unfinished";
    part.lost = [lost] { return lost; };
    part.record = [this](const Json& record) { records.push_back(record); };
    part.fault = [this](const io::Fault& fault) { faults.push_back(fault); };
    run.options.part = &part;
    run.options.inputs = {run.folder / (name + ".jsonl")};
    run.run();
  }
};

/// The hash of each file of out/, apart from parts/.
std::map<std::string, std::string> whole_files(const ClipRun& run) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(run.options.directory)) {
    const std::string name = entry.path().string().substr(run.options.directory.size() + 1);
    if (entry.is_regular_file() && !name.starts_with("parts/"))
      found[name] = io::hash_file(entry.path().string());
  }
  return found;
}

}  // namespace

TEST_CASE("a bucket of a list is a batch of its videos and batches of its pictures") {
  const TemporaryFolder folder, scratch;
  folder.write("a.mp4", "large");
  folder.write("b.mp4", "small");
  folder.write("c.mp4", "small");
  folder.write("d.mp4", "large");
  for (const char* name : {"1.bmp", "2.jpg", "3.bmp"})
    folder.write(name, name);
  std::string list = listed_line(folder / "a.mp4", 0);
  int place = 0;
  for (const char* name : {"1.bmp", "b.mp4", "2.jpg", "c.mp4", "3.bmp", "none.mp4"})
    list += listed_line(folder / name, ++place, 7);
  list += listed_line(folder / "b.mp4", 7, 8) + listed_line(folder / "d.mp4", 8);
  folder.write("list.jsonl", list);
  ClipItems items({folder / "list.jsonl"}, 1, scratch.path);
  items.follow_list();
  // Contents that are the same in two units count in both.
  CHECK(units(items) == Lines{"video a.mp4", "joined b.mp4", "images 1.bmp 3.bmp", "images 2.jpg",
                              "duplicate c.mp4", "bad none.mp4", "joined b.mp4", "video d.mp4"});
}

TEST_CASE("a bucket of which a file may come back is not begun") {
  const TemporaryFolder folder, scratch;
  folder.write("a.mp4", "one");
  folder.write("list.jsonl", listed_line(folder / "a.mp4", 0, 3) +
                                 listed_line(folder / "not-mounted/b.mp4", 1, 3) +
                                 listed_line(folder / "a.mp4", 2, 4));
  ClipItems items({folder / "list.jsonl"}, 1, scratch.path);
  items.follow_list();
  CHECK(units(items) == Lines{"bad b.mp4", "joined a.mp4"});
}

TEST_CASE("a fault is of the machine, unless the file itself gives it") {
  const TemporaryFolder folder;
  folder.write("a.mp4", "x");
  const auto judge = [](const std::string& path, Cause cause) {
    return is_of_machine(settled({path, "", cause}));
  };
  for (const Cause cause : {Cause::memory, Cause::timeout, Cause::crash, Cause::disk, Cause::line})
    CHECK(judge(folder / "a.mp4", cause));
  for (const Cause cause : {Cause::decode, Cause::format, Cause::limit, Cause::empty, Cause::other,
                            Cause::open, Cause::refused, Cause::missing, Cause::rejected})
    CHECK_FALSE(judge(folder / "a.mp4", cause));
  CHECK_FALSE(judge(folder / "gone.mp4", Cause::open));
  CHECK(judge(folder / "no-folder/a.mp4", Cause::open));
  CHECK(judge("rtsp://a.b/c.mp4", Cause::open));
  CHECK_FALSE(judge("https://a.b/c.mp4", Cause::open));
}

TEST_CASE("the cause of a fault is settled once") {
  const TemporaryFolder folder;
  const io::Fault absent = settled({folder / "later/a.mp4", "", Cause::open});
  CHECK(absent.cause == Cause::disk);
  std::filesystem::create_directory(folder / "later");
  CHECK(is_of_machine(absent));
  const io::Fault gone = settled({folder / "later/a.mp4", "", Cause::open});
  CHECK(gone.cause == Cause::open);
  std::filesystem::remove(folder / "later");
  CHECK_FALSE(is_of_machine(gone));
}

TEST_CASE("the place of a store is known by settings, contents and paths") {
  ClipOptions options;
  options.directory = "out";
  const ListedPart part{.unfinished = "out/parts/clip/00003/unfinished-x", .digits = 3};
  ClipItem item{ClipItem::Kind::joined, {{"/a.mp4", "11"}, {"/b.mp4", "22"}}, {}, {}};
  CHECK(store_place(options, item, 1).directory == "out");
  CHECK(store_place(options, item, 1).name == store_name(item));
  options.part = &part;
  const StorePlace place = store_place(options, item, 1);
  const std::string digits = hash_hex("1\n11 /a.mp4\n22 /b.mp4").substr(0, 16);
  CHECK(place.directory == "out/" + digits.substr(0, 3));
  CHECK(place.name == "joined-" + digits);
  CHECK(place.unfinished == part.unfinished);
  CHECK(store_place(options, item, 2).name != place.name);
  item.sources[1].path = "/c.mp4";
  CHECK(store_place(options, item, 1).name != place.name);
  item.kind = ClipItem::Kind::images;
  CHECK(store_place(options, item, 1).name.size() == 16);
}

TEST_CASE("the number of digits of subfolders grows with the list") {
  CHECK(parts::subfolder_digits(
            {.parts = 9, .shard_bytes = 1 << 28, .buckets = 10, .videos = 1000}) == 2);
  // 4 million shards of 12 files.
  const std::uint64_t mebibytes = 256;
  CHECK(parts::subfolder_digits({.parts = 1,
                                 .shard_bytes = mebibytes << 20,
                                 .buckets = 0,
                                 .videos = 100'000,
                                 .bytes = (mebibytes << 20) * 2'000'000}) == 3);
  CHECK(parts::subfolder_digits({.parts = 1,
                                 .shard_bytes = mebibytes << 20,
                                 .buckets = 10'000'000,
                                 .videos = 100'000'000'000,
                                 .bytes = (mebibytes << 20) * 400'000'000}) == 6);
}

TEST_CASE("a bucket with a fault that may pass gets no shards, and its other clips are kept") {
  const TemporaryFolder folder;
  const ListedPart part{.unfinished = folder / "unfinished"};
  io::make_directories(part.unfinished);
  ClipOptions options;
  options.directory = folder / "out";
  options.part = &part;
  const ClipItem batch{ClipItem::Kind::joined,
                       {{"/one.mp4", std::string(32, '1')}, {"/two.mp4", std::string(32, '2')}},
                       {},
                       {}};
  const Json settings = {{"recipe", 1}};
  EarlierClips none(folder.path, settings);
  std::vector<std::size_t> made;
  const auto work = [&](Joined& joined, std::optional<Cause> cause) {
    made = joined.begin();
    for (const std::size_t place : made)
      joined.make(place, [&](ClipSink& sink) {
        if (place == 0 && cause) fail_as(*cause, "'/one.mp4' gives an error");
        sink.begin(false);
        sink.add({"clip" + std::to_string(place), {{"mp4", "bytes"}, {"json", "{}"}}});
        sink.finish({{"source_hash", joined.source(place).hash}, {"errors", Json::array()}});
      });
  };
  {
    Joined joined(batch, options, settings, none);
    work(joined, Cause::disk);
    REQUIRE(joined.faults_of_machine().size() == 1);
    CHECK(joined.faults_of_machine()[0].input == "/one.mp4");
  }
  {
    Joined joined(batch, options, settings, none);
    work(joined, Cause::decode);
    CHECK(made == std::vector<std::size_t>{0});
    CHECK(joined.faults_of_machine().empty());
    CHECK(joined.finish().at("clips") == 1);
    CHECK(fs::is_empty(part.unfinished));
  }
  // A result is not tried again.
  Joined joined(batch, options, settings, none);
  work(joined, std::nullopt);
  CHECK(made.empty());
  CHECK(joined.finish().at("clips") == 1);
}

TEST_CASE("a part that another process has taken is left") {
  ClipRun run;
  run.folder.write("a.y4m", clip_run::shots({4}));
  const OnePart part(run, listed_line(run.folder / "a.y4m", 0) + listed_line("/none/b.mp4", 1), "0",
                     true);
  CHECK(part.records.empty());
  CHECK(part.faults.empty());
  CHECK(whole_files(run).empty());
}

TEST_CASE("an output that cannot be written is a fault of the disk, and not of its source") {
  ClipRun run;
  run.folder.write("a.y4m", clip_run::shots({4}));
  const std::string list = listed_line(run.folder / "a.y4m", 0);
  const std::string tar = OnePart(run, list, "0").records.at(0).at("path");
  for (const std::string& blocked : {tar, tar.substr(0, tar.size() - 10) + ".json"}) {
    fs::remove_all(io::dir_name(tar));
    fs::create_directories(blocked + "/folder");
    const OnePart again(run, list, "0");
    CHECK(again.records.empty());
    REQUIRE(again.faults.size() == 1);
    CHECK(again.faults[0].input == run.folder / "a.y4m");
    CHECK(again.faults[0].cause == Cause::disk);
  }
}

TEST_CASE("a unit has the same files in whatever part it is, and equal units have files each") {
  ClipRun one, two;
  // The same paths in both, so that the clips tell the same sources.
  const TemporaryFolder sources;
  sources.write("a.y4m", clip_run::shots({6, 5}, 1));
  sources.write("b.y4m", clip_run::shots({7}, 2));
  sources.write("c.y4m", clip_run::shots({8}, 3));
  sources.write("twin.y4m", clip_run::shots({7}, 2));
  sources.write("d.bmp", clip_run::drawn_bitmap(1));
  sources.write("broken.mp4", "broken");
  const std::string large = listed_line(sources / "a.y4m", 0),
                    twin = listed_line(sources / "twin.y4m", 5),
                    bucket = listed_line(sources / "b.y4m", 1, 0) +
                             listed_line(sources / "broken.mp4", 2, 0) +
                             listed_line(sources / "c.y4m", 3, 0) +
                             listed_line(sources / "d.bmp", 4, 0);
  const OnePart all(one, large + bucket + twin, "0");
  const OnePart first(two, twin + bucket, "0"), second(two, large, "1");
  const auto files = whole_files(one);
  CHECK(files.size() == 16);  // four shards, each with two indexes and a list
  CHECK(files == whole_files(two));
  REQUIRE(all.records.size() == 4);
  CHECK(all.records[0].at("place") == 0);
  CHECK(all.records[1].at("places") == Json({1, 2, 3}));
  CHECK(all.records[2].at("places") == Json({4}));
  CHECK(all.records[3].at("place") == 5);
  CHECK(all.records[3].at("source_hash") == all.records[1].at("source_hashes")[0]);
  REQUIRE(all.faults.size() == 1);
  CHECK(all.faults[0].input == sources / "broken.mp4");
  CHECK_FALSE(is_of_machine(all.faults[0]));
  // Done again, nothing is written, and everything is told.
  const auto before = fs::last_write_time(one.options.directory + "/" + files.begin()->first);
  const OnePart again(one, large + bucket + twin, "0");
  CHECK(again.records == all.records);
  CHECK(again.faults.size() == 1);
  CHECK(fs::last_write_time(one.options.directory + "/" + files.begin()->first) == before);
  // A process that begins a unit again removes nothing that another one has finished.
  for (const auto& [name, hash] : files)
    if (name.ends_with(".json")) fs::remove(one.options.directory + "/" + name);
  const auto make = [&](ClipSink& sink) { sink.begin(false); };
  for (const Json& record : all.records) {
    const std::string path = record.at("path");
    make(*make_clip_store(ClipFormat::shards, io::dir_name(path),
                          io::stem(path).substr(0, io::stem(path).size() - 6), 0, 1000, true));
    CHECK(io::file_exists(path));
  }
  const OnePart repaired(one, large + bucket + twin, "0");
  CHECK(whole_files(one) == files);
}
