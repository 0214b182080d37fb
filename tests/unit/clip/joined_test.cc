// Which small videos go together, and the file in which their clips wait.
// SPDX-License-Identifier: Apache-2.0
#include "clip/store/joined.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <future>
#include <list>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "clip/source.h"
#include "clip/store/parts.h"
#include "io/atomic_file.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

using Kind = ClipItem::Kind;

constexpr std::uint64_t kMost = 64000;  // bytes of a batch

std::vector<ClipItem> items_of(const TemporaryFolder& folder,
                               const std::vector<std::string>& inputs, std::uint64_t own = 0) {
  ClipItems items(inputs, kMost, folder.path);
  items.join(own);
  std::vector<ClipItem> all;
  while (auto item = items.next())
    all.push_back(*std::move(item));
  CHECK_FALSE(items.next());
  return all;
}

std::vector<std::string> files_of(const TemporaryFolder& folder, int count) {
  std::vector<std::string> paths;
  for (int i = 0; i < count; ++i) {
    paths.push_back(io::join_path(folder.path, "v" + std::to_string(i) + ".mp4"));
    folder.write("v" + std::to_string(i) + ".mp4",  // which waits for no disk
                 std::to_string(i) + std::string(200 + 13 * i % 700, 'x'));
  }
  return paths;
}

std::set<std::string> names_of(const std::vector<ClipItem>& items) {
  std::set<std::string> names;
  for (const ClipItem& item : items)
    names.insert(store_name(item));
  return names;
}

}  // namespace

TEST_CASE("small videos are joined in batches that are bounded, and change near a change alone") {
  const TemporaryFolder folder, scratch;
  std::vector<std::string> paths = files_of(folder, 1200);
  const std::vector<ClipItem> all = items_of(scratch, paths);
  std::vector<std::string> joined;
  for (const ClipItem& item : all) {
    REQUIRE(item.kind == Kind::joined);
    CHECK(store_name(item).starts_with("joined-"));
    std::uint64_t bytes = 0;
    for (const ClipSource& source : item.sources) {
      bytes += source.bytes;
      joined.push_back(source.path);
    }
    CHECK(bytes <= kMost);
    if (&item != &all.back()) CHECK(bytes > kMost / 5);
  }
  CHECK(joined == paths);
  CHECK(all.size() > 8);
  const std::set<std::string> names = names_of(all);
  CHECK(names.size() == all.size());
  const auto changed_without = [&](std::size_t which) {
    std::vector<std::string> fewer = paths;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(which));
    const std::set<std::string> now = names_of(items_of(scratch, fewer));
    std::set<std::string> fresh;
    std::set_difference(now.begin(), now.end(), names.begin(), names.end(),
                        std::inserter(fresh, fresh.end()));
    return fresh.size();
  };
  std::size_t changed = 0;
  constexpr std::size_t kCases[] = {0, 100, 300, 500, 700, 900, 1100};
  for (const std::size_t which : kCases) {
    const std::size_t here = changed_without(which);
    CHECK(here >= 1);
    changed += here;
  }
  CHECK(changed <= 3 * std::size(kCases));
}

TEST_CASE(
    "the first videos, large ones, addresses and records with more fields are by themselves") {
  const TemporaryFolder folder, scratch;
  std::vector<std::string> paths = files_of(folder, 6);
  io::write_file(paths[3], std::string(kMost / 16 + 1, 'y'));
  io::write_file(folder.path + "/more.jsonl",
                 "{\"kind\":\"video\",\"path\":\"" + paths[5] + "\",\"license\":\"mine\"}\n");
  paths[5] = folder.path + "/more.jsonl";
  paths.push_back("file:///a/a.mp4");
  const std::vector<ClipItem> items = items_of(scratch, paths, 1);
  std::vector<std::pair<Kind, std::size_t>> kinds;
  for (const ClipItem& item : items)
    kinds.emplace_back(item.kind, item.sources.size());
  const std::pair<Kind, std::size_t> own{Kind::video, 1}, three{Kind::joined, 3};
  CHECK(kinds == std::vector{own, own, own, own, three});
  CHECK(items[0].sources[0].path == paths[0]);
  CHECK(items[1].sources[0].path == paths[3]);
  CHECK(items.back().sources[2].path == paths[4]);
}

TEST_CASE("parts are there for the next run as far as they are whole") {
  const TemporaryFolder folder;
  const std::string path = ClipParts::path_of(folder.path, "joined-0123456789abcdef");
  const Json settings = {{"recipe", 1}};
  const shard::Sample one{"one", {{"mp4", std::string("a\0b", 3)}, {"json", "{}"}}};
  const shard::Sample two{"two", {{"mp4", std::string(100000, 'z')}, {"json", "{\"x\":1}"}}};
  const auto same = [](const shard::Sample& a, const shard::Sample& b) {
    return a.key == b.key && shard::hash_sample(a) == shard::hash_sample(b);
  };
  {
    ClipParts parts(path, settings, true);
    CHECK_FALSE(parts.find("h1"));
    // Two videos at once.
    const ClipParts::Place second = parts.add(two), first = parts.add(one);
    parts.end("h1", {{"clips", 1}}, {first});
    REQUIRE(parts.find("h1"));
    CHECK_FALSE(parts.find("h2"));
    parts.end("h2", {{"clips", 2}}, {second, parts.add(one)});
    parts.end("h3", {{"clips", 0}}, {});
    parts.add(two);  // of one that does not end
  }
  const std::string whole = io::read_file(path);
  const auto check_first = [&](const ClipParts& parts) {
    REQUIRE(parts.find("h1"));
    REQUIRE(parts.find("h1")->clips.size() == 1);
    CHECK(same(parts.read(parts.find("h1")->clips[0]), one));
    CHECK(parts.find("h1")->summary == "{\"clips\":1}");
  };
  {
    ClipParts parts(path, settings, true);
    check_first(parts);
    REQUIRE(parts.find("h2"));
    CHECK(same(parts.read(parts.find("h2")->clips[0]), two));
    CHECK(same(parts.read(parts.find("h2")->clips[1]), one));
    CHECK(parts.find("h3")->clips.empty());
  }
  // Cut anywhere, or with a byte that is another one: what stands before is there, and more can
  // come.
  const std::size_t end_of_first = whole.find("{\"clips\":1}") + 40;
  for (const bool cut : {true, false}) {
    for (std::size_t at = end_of_first; at < whole.size(); at += 9973) {
      std::string damaged = cut ? whole.substr(0, at) : whole;
      if (!cut) damaged[at] ^= 1;
      io::write_file(path, damaged);
      {
        ClipParts parts(path, settings, true);
        check_first(parts);
        if (const ClipParts::Part* part = parts.find("h2"))
          CHECK(same(parts.read(part->clips[0]), two));
        parts.end("h4", {{"clips", 1}}, {parts.add(two)});
      }
      const ClipParts parts(path, settings, true);
      check_first(parts);
      REQUIRE(parts.find("h4"));
      CHECK(same(parts.read(parts.find("h4")->clips[0]), two));
    }
  }
  io::write_file(path, whole);
  CHECK_FALSE(ClipParts(path, {{"recipe", 2}}, true).find("h1"));
  io::write_file(path, whole);
  CHECK_FALSE(ClipParts(path, settings, false).find("h1"));
  ClipParts(path, settings, true).remove();
  CHECK_FALSE(io::file_exists(path));
}

namespace {

/// Two videos of one batch, in a folder of their own; each gives one clip.
struct Pair {
  TemporaryFolder folder;
  ClipItem batch{Kind::joined,
                 {{"a/one.mp4", std::string(32, '1'), {}, 10}, {"b/two.mp4", std::string(32, '2')}},
                 {},
                 {}};
  Json settings = {{"recipe", 1}};
  ClipOptions options;
  std::list<EarlierClips> earlier;                 // of each run, which looks into the folder once
  std::vector<std::string> keys = {"one", "two"};  // of their clips; "": the video cannot be used

  Pair() {
    options.directory = folder.path;
    options.readable_names = true;
  }
  Joined joined() {
    return Joined(batch, options, settings, earlier.emplace_back(folder.path, settings));
  }
  void make(Joined& joined, std::size_t place) {
    joined.make(place, [&](ClipSink& sink) {
      if (keys[place].empty()) fail("video {} is broken", place);
      sink.begin(false);
      sink.add({keys[place], {{"mp4", "clip of " + std::to_string(place)}, {"json", "{}"}}});
      sink.finish({{"source", joined.source(place).path},
                   {"source_hash", joined.source(place).hash},
                   {"errors", Json::array()}});
    });
  }
  /// The places that were made, and the json.
  std::pair<std::vector<std::size_t>, Json> run() {
    Joined one = joined();
    std::vector<std::size_t> places = one.begin();
    for (const std::size_t place : places)
      make(one, place);
    return {places, one.finish()};
  }
};

using Places = std::vector<std::size_t>;

}  // namespace

TEST_CASE("a video that is left out for its key alone is not cut by each run") {
  Pair pair;
  pair.keys = {"same", "same"};
  const auto [made, first] = pair.run();
  CHECK(made == Places{0, 1});
  CHECK(first.at("clips") == 1);
  CHECK_THAT(first.at("sources")[1].at("failed").get<std::string>(),
             Catch::Contains("'same' has the key of another"));
  CHECK(pair.run() == std::pair(Places{}, first));
  // In another folder it has the same name, under another one another key.
  pair.batch.sources[1].path = "c/two.mp4";
  CHECK(pair.run() == std::pair(Places{}, first));
  pair.batch.sources[1].path = "c/other.mp4";
  CHECK(pair.run() == std::pair(Places{1}, first));  // which may be the same still
  pair.keys[1] = "other";
  const auto [again, second] = pair.run();
  CHECK(again == Places{1});
  CHECK(second.at("clips") == 2);
  CHECK(pair.run() == std::pair(Places{}, second));
}

TEST_CASE("beside a video that is tried again, one with another's key is as it was") {
  Pair pair;
  pair.batch.sources.push_back({"c/three.mp4", std::string(32, '3')});
  pair.keys = {"same", "same", ""};
  const auto [made, first] = pair.run();
  CHECK(made == Places{0, 1, 2});
  CHECK(first.at("clips") == 1);
  CHECK(pair.run() == std::pair(Places{1, 2}, first));
  pair.keys[2] = "three";
  const auto [again, second] = pair.run();
  CHECK(again == Places{1, 2});
  CHECK(second.at("clips") == 2);
  CHECK(second.at("sources")[1] == first.at("sources")[1]);
}

TEST_CASE("who waits for a program that tries a batch again takes what that one has made") {
  Pair pair;
  pair.keys = {"one", ""};
  const Json before = pair.run().second;
  CHECK(before.at("clips") == 1);
  std::future<Json> later;
  Joined first = pair.joined(), second = pair.joined();
  REQUIRE(first.begin() == Places{1});
  later = std::async(std::launch::async, [&] {
    Pair still;  // for this one the video is broken
    still.keys = {"one", ""};
    for (const std::size_t place : second.begin())
      still.make(second, place);
    return second.finish();
  });
  // Time enough to have seen what is there. Slower, it would see what is made now.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  pair.keys[1] = "two";
  pair.make(first, 1);
  const Json made = first.finish();
  CHECK(made.at("clips") == 2);
  CHECK(later.get() == made);
}
