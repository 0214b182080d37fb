// The shards of a folder that vfm-clip made in parts: their order, duplicates, and missing parts.
// SPDX-License-Identifier: Apache-2.0
#include "shard/listed_clips.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/json.h"
#include "io/file.h"
#include "io/manifest.h"
#include "parts/part_run.h"
#include "shard/part_shards.h"
#include "shard/shard_input.h"
#include "support/list_of_parts.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::shard;

namespace {

/// A folder with a list of parts, whose manifests the test writes.
struct ListedFolder {
  explicit ListedFolder(int parts) { folder.write("clips/parts/list.json", list_of_parts(parts)); }

  void part(int number, const std::vector<Json>& records, bool done = true) const {
    const std::string own = "clips/parts/clip/" + parts::part_name(number) + "/";
    std::string lines;
    Json outputs = Json::array();
    for (const Json& record : records) {
      lines += dump_json(record) + "\n";
      const std::string path = record.at("path");
      outputs.push_back({{"path", "ab/" + io::base_name(path)}, {"bytes", 1}, {"xxh3", "x"}});
    }
    folder.write(own + "manifest.jsonl", lines);
    if (!done) return;
    folder.write(own + "done.json", dump_json({{"version", 1},
                                               {"tool", "vfm-clip"},
                                               {"part", number},
                                               {"parts", 3},
                                               {"inputs", ""},
                                               {"records", records.size()},
                                               {"outputs", outputs},
                                               {"errors", Json::object()},
                                               {"versions", Json::object()},
                                               {"host", ""},
                                               {"node_kind", ""},
                                               {"begun", ""},
                                               {"ended", ""},
                                               {"seconds", 0}}));
  }
  std::string clips() const { return folder / "clips"; }
  Json large(const std::string& name, int place, const std::string& hash) const {
    return {{"kind", "shard"},     {"path", "/before/clips/ab/" + name},
            {"place", place},      {"source", "/raw/" + std::to_string(place)},
            {"source_hash", hash}, {"columns", {{"clip", "/before/clips/ab/" + name}}}};
  }
  Json joined(const std::string& name, const std::vector<int>& places,
              const std::vector<std::string>& hashes) const {
    Json sources = Json::array();
    for (const int place : places)
      sources.push_back("/raw/" + std::to_string(place));
    return {{"kind", "shard"},
            {"path", "/before/clips/ab/" + name},
            {"sources", sources},
            {"source_hashes", hashes},
            {"places", places}};
  }

  TemporaryFolder folder;
};

std::vector<std::string> names_of(ListedClips& listed) {
  std::vector<std::string> names;
  while (const auto record = listed.next()) {
    CHECK_FALSE(record->json->contains("columns"));
    std::string name = io::base_name(record->path());
    if (const auto found = record->json->find("duplicate_hashes"); found != record->json->end())
      name += " " + dump_json(*found);
    names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("shards of parts are in the order of the list, and the first of equal contents counts") {
  const ListedFolder of(3);
  of.part(0, {of.joined("j.tar", {0, 7, 4}, {"a", "b", "c"}), of.large("l5.tar", 5, "d")});
  of.part(1,
          {of.large("l6-0.tar", 6, "d"), of.large("l6-1.tar", 6, "d"), of.large("l8.tar", 8, "e")});
  // The source at place 3 comes before that at 7, although j.tar comes before k.tar.
  of.part(2, {of.joined("k.tar", {3, 9}, {"b", "e"}), of.large("l2-0.tar", 2, "f"),
              of.large("l2-1.tar", 2, "f")});
  CHECK(ListedClips::are_in(of.clips()));
  ListedClips listed(of.clips());
  std::vector<std::string> told;
  listed.on_duplicate([&](const DuplicateSource& one) {
    told.push_back(one.source + " " + one.first + " " + one.hash);
  });
  CHECK(names_of(listed) == std::vector<std::string>{"j.tar [\"b\"]", "l2-0.tar", "l2-1.tar",
                                                     "k.tar [\"e\"]", "l5.tar", "l8.tar"});
  CHECK(told == std::vector<std::string>{"/raw/7 /raw/3 b", "/raw/9 /raw/8 e", "/raw/6 /raw/5 d"});
  CHECK(listed.missing().empty());

  ShardInput input({of.clips()}, [](const io::Fault&) { FAIL(); });
  CHECK(input.next()->path() == of.clips() + "/ab/j.tar");
  CHECK(input.streams().broken_off().empty());
}

TEST_CASE("a part without a marker is missing, and its shards are not taken") {
  const ListedFolder of(2);
  of.part(0, {of.large("a.tar", 0, "a")}, false);
  of.part(1, {of.large("b.tar", 1, "a")});
  ShardInput input({of.clips()}, [](const io::Fault&) { FAIL(); });
  CHECK(input.next()->path() == of.clips() + "/ab/b.tar");
  CHECK_FALSE(input.next());
  CHECK(input.streams().broken_off() ==
        "1 of the 2 parts of '" + of.clips() + "' is not complete: 0");
  of.part(0, {of.large("a.tar", 0, "a")});
  of.folder.write("clips/parts/caption/run.json",
                  dump_json({{"version", 1}, {"tool", "vfm-caption"}, {"parts", 2}}));
  ShardInput later({of.clips()}, [](const io::Fault&) { FAIL(); }, {"caption", "embed"});
  CHECK(later.streams().broken_off() ==
        "of vfm-caption, 2 of the 2 parts of '" + of.clips() + "' are not complete: 0, 1");
  CHECK_THROWS_WITH(input.streams().check_whole("nothing is made"),
                    Catch::Contains("not complete: 0: nothing is made"));
  of.part(0, {of.large("a.tar", 0, "a"), of.large("c.tar", 2, "c")});
  of.folder.write("clips/parts/clip/00000/manifest.jsonl",
                  dump_json(of.large("a.tar", 0, "a")) + "\n");
  CHECK_THROWS_WITH(ListedClips(of.clips()), Catch::Contains("remove the latter, and do part 0"));
  of.part(0, {{{"kind", "shard"}, {"path", "c.tar"}}});
  CHECK_THROWS_WITH(ListedClips(of.clips()), Catch::Contains("neither 'source' nor 'sources'"));
}

TEST_CASE("a part of a work has the shards of its own parts, with later sources marked if asked") {
  const ListedFolder of(3);
  of.part(0, {of.joined("j.tar", {0, 7}, {"a", "b"})});
  of.part(1, {of.large("l6.tar", 6, "d"), of.large("l3.tar", 3, "b")});
  of.part(2, {of.large("l8.tar", 8, "d")});
  const auto names = [&](ShardInput input) {
    std::vector<std::string> all;
    while (const auto record = input.next())
      all.push_back(io::base_name(record->path()) + (counts(*record) ? "" : " is later"));
    return all;
  };
  const auto no_fault = [](const io::Fault&) { FAIL(); };
  PartShards shards{0, 2, of.clips(), {0, 2}, nullptr};
  using Names = std::vector<std::string>;
  CHECK(names({shards, {}, no_fault}) == Names{"j.tar", "l8.tar"});
  // A command without parts that makes columns has all shards, too.
  CHECK(names({{of.clips()}, no_fault, {}, ListedClips::Later::marked}) ==
        Names{"j.tar", "l3.tar", "l6.tar", "l8.tar is later"});
  const auto later = std::make_shared<LaterSources>(of.folder.path);
  later->add_all(of.clips());
  shards.later = later;
  CHECK(names({shards, {}, no_fault}) == Names{"j.tar"});
  ShardInput input(shards, {}, no_fault);
  CHECK(input.next()->json->at("duplicate_hashes") == Json::array({"b"}));
  // By names, the part is that of the file.
  PartShards named{0, 2, "", {}, nullptr};
  const Names paths{of.clips() + "/ab/l3.tar", of.clips() + "/ab/l6.tar", of.clips() + "/l8.tar"};
  Names both = names({named, paths, no_fault});
  named.part = 1;
  const Names others = names({named, paths, no_fault});
  both.insert(both.end(), others.begin(), others.end());
  CHECK(both.size() == 3);
}

TEST_CASE("the digest of a part tells of its shards, their columns and the settings") {
  const ListedFolder of(3);
  of.part(0, {of.large("a.tar", 0, "a")});
  of.part(1, {of.large("b.tar", 1, "b")});
  const PartShards shards{0, 3, of.clips(), {0}, nullptr};
  parts::RunFile run{.parts = 3, .of_clips = true};
  const auto digest = [&] { return digest_of(shards, run, {"caption"}); };
  const std::string first = digest();
  of.part(1, {of.large("c.tar", 1, "c")});
  CHECK(digest() == first);
  of.part(0, {of.large("d.tar", 0, "a")});
  const std::string other = digest();
  CHECK(other != first);
  run.digest = "of other settings";
  CHECK(digest() != other);
  run.digest = "";
  // A column that was made without parts: its json tells, and else the tar.
  const auto column = [&](const std::string& tar, const Json& record) {
    of.folder.write("clips/ab/d.caption.tar", tar);
    of.folder.write("clips/ab/d.caption.json", dump_json({{"record", record}}));
    return digest();
  };
  const std::string told = column("tar", {{"bytes", 3}, {"xxh3", "7"}});
  CHECK(told != other);
  CHECK(column("rat", {{"bytes", 3}, {"xxh3", "7"}}) == told);
  CHECK(column("rat", {{"bytes", 3}, {"xxh3", "8"}}) != told);
  CHECK(column("tar", {{"bytes", 4}, {"xxh3", "7"}}) != column("rat", {{"bytes", 4}}));
  // One of parts: their markers tell.
  of.folder.write("clips/parts/caption/run.json",
                  dump_json({{"parts", 2}, {"shares", "clips"}, {"grows", false}}));
  run.after = {"caption"};
  CHECK_THROWS_WITH(digest(), Catch::Contains("caption/00000/done.json' has disappeared"));
}

TEST_CASE("what parts wrote is awaited before the part that reads it begins") {
  const ListedFolder of(1);
  of.part(0, {of.large("a.tar", 0, "a"), of.large("b.tar", 1, "b")});
  const InputLimits before = input_limits();
  InputLimits limits = before;
  limits.timeout = 0.2;
  set_input_limits(limits);
  const PartShards shards{0, 1, of.clips(), {0}, nullptr};
  of.folder.write("clips/ab/a.tar", "x");  // the marker says one byte
  const std::vector<io::Fault> late = late_inputs(shards, parts::RunFile{1});
  REQUIRE(late.size() == 1);
  CHECK(late[0].input == of.clips() + "/ab/b.tar");
  CHECK(late[0].cause == Cause::disk);
  of.folder.write("clips/ab/b.tar", "x");
  CHECK(late_inputs(shards, parts::RunFile{1}).empty());
  set_input_limits(before);
}

TEST_CASE("samples of duplicates are told by the hash of their source") {
  const DuplicateHashes none(Json::object());
  CHECK(none.empty());
  CHECK_FALSE(none.has({{"source_hash", "a"}}));
  const DuplicateHashes some(Json{{"duplicate_hashes", {"a", "b"}}});
  CHECK(some.has({{"source_hash", "b"}}));
  CHECK_FALSE(some.has({{"source_hash", "c"}}));
  CHECK_FALSE(some.has(Json::array()));
  CHECK(some.has_text("{\"source_hash\":\"a\"}"));
  CHECK_FALSE(some.has_text("{\"source_hash\""));
}
