// Which small videos go together, and the file in which their clips wait.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "clip/parts.h"
#include "clip/source.h"
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
    io::write_file(paths.back(), std::to_string(i) + std::string(200 + 13 * i % 700, 'x'));
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
    CHECK(changed_without(which) >= 1);
    changed += changed_without(which);
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
  paths.push_back("https://localhost/a.mp4");
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
