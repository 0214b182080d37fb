// Where the clips of a source are kept: what is listed, taken up again and removed, as shards and
// as files.
// SPDX-License-Identifier: Apache-2.0
#include "clip/store/store.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "unit/clip/clip_run.h"

using namespace vfm;
using namespace vfm::clip;
using clip_run::Lines;

namespace {

const std::string kName = "0123456789abcdef";
const Json kSettings = {{"recipe", 1}};

shard::Sample clip_of(int number) {
  const std::string key = "clip" + std::to_string(number);
  return {key,
          {{"mp4", key + std::string(1500, 'x')},
           {"json", dump_json({{"pts_begin", 10 * number}, {"pts_end", 10 * number + 7}})}}};
}

/// What a folder holds: names and bytes.
std::map<std::string, std::string> contents(const TemporaryFolder& folder) {
  std::map<std::string, std::string> all;
  for (const auto& file : std::filesystem::directory_iterator(folder.path))
    if (file.is_regular_file())
      all[file.path().filename().string()] = io::read_file(file.path().string());
  return all;
}
Lines names_in(const TemporaryFolder& folder) {
  Lines names;
  for (const auto& [name, bytes] : contents(folder))
    names.push_back(name);
  return names;
}

/// Three clips, two in a shard.
struct Stored {
  ClipFormat format = ClipFormat::shards;
  TemporaryFolder folder;
  std::uint64_t most = 2 * (512 + 1536 + 512 + 512);

  std::unique_ptr<ClipStore> store(const Json& settings = kSettings) const {
    return make_clip_store(format, folder.path, kName, settings, most);
  }
  Json write(int count = 3) const {
    const auto made = store();
    CHECK(made->find_or_hold(false).is_null());
    CHECK(made->begin(false).empty());
    for (int i = 0; i < count; ++i)
      made->add(clip_of(i));
    return made->finish({{"kind", "clips"}, {"source", "a.mp4"}, {"errors", Json::array()}});
  }
};

Lines text_of(const KeptClips& kept) {
  Lines lines;
  for (const KeptClip& clip : kept)
    lines.push_back(vfm::format("{} {} {}", clip.key, clip.begin, clip.end));
  return lines;
}

}  // namespace

TEST_CASE("shards of a source are bounded, listed with their bytes, and found again") {
  Stored stored;
  const Json finished = stored.write();
  const auto shard = [&](int number, int samples) {
    const std::string name = kName + "-0000" + std::to_string(number) + ".tar";
    return Json{{"name", name},
                {"samples", samples},
                {"bytes", std::filesystem::file_size(stored.folder / name)},
                {"xxh3", io::hash_file(stored.folder / name)}};
  };
  CHECK(finished == Json{{"kind", "clips"},
                         {"source", "a.mp4"},
                         {"errors", Json::array()},
                         {"settings", kSettings},
                         {"clips", 3},
                         {"shards", {shard(0, 2), shard(1, 1)}}});
  CHECK(names_in(stored.folder) == Lines{kName + "-00000.idx", kName + "-00000.tar",
                                         kName + "-00000.tar.idx", kName + "-00001.idx",
                                         kName + "-00001.tar", kName + "-00001.tar.idx",
                                         kName + ".json"});
  // For people, if it is of one video.
  const std::string text = io::read_file(stored.folder / (kName + ".json"));
  CHECK(text == dump_json_pretty(finished));
  CHECK(stored.store()->find_or_hold(false) == finished);
  std::vector<Json> records = ClipStore::records(finished, "x");
  REQUIRE(records.size() == 2);
  Json wanted = {{"kind", "shard"}, {"path", "x/" + kName + "-00001.tar"}};
  wanted.update(shard(1, 1));
  wanted.erase("name");
  CHECK(records[1] == wanted);
  ClipStore::name_sources(records, {{"a.mp4", "h1"}, {"b.mp4", "h2"}});
  wanted.update({{"sources", {"a.mp4", "b.mp4"}}, {"source_hashes", {"h1", "h2"}}});
  CHECK(records[1] == wanted);
  // One byte less, and each clip has a shard.
  Stored smaller;
  --smaller.most;
  CHECK(smaller.write().at("shards").size() == 3);
}

TEST_CASE("files of a source are listed with their bytes, and found again") {
  Stored stored{ClipFormat::files};
  const Json finished = stored.write(2);
  const auto sample = [&](int number) {
    Json files = Json::array();
    for (const shard::Member& member : clip_of(number).members)
      files.push_back({{"extension", member.extension},
                       {"bytes", member.data.size()},
                       {"xxh3", hash_hex(member.data)}});
    return Json{{"key", clip_of(number).key}, {"files", files}};
  };
  CHECK(finished == Json{{"kind", "clips"},
                         {"source", "a.mp4"},
                         {"errors", Json::array()},
                         {"settings", kSettings},
                         {"clips", 2},
                         {"list", kName + ".files"},
                         {"samples", {sample(0), sample(1)}}});
  CHECK(names_in(stored.folder) ==
        Lines{kName + ".files", "clip0.json", "clip0.mp4", "clip1.json", "clip1.mp4"});
  CHECK(contents(stored.folder)["clip1.mp4"] == clip_of(1).members[0].data);
  CHECK(stored.store()->find_or_hold(false) == finished);
  const std::string list = stored.folder / (kName + ".files");
  CHECK(ClipStore::records(finished, stored.folder.path) ==
        std::vector<Json>{{{"kind", "shard"},
                           {"path", list},
                           {"samples", 2},
                           {"bytes", std::filesystem::file_size(list)},
                           {"xxh3", io::hash_file(list)}}});
  Json none = finished;
  none["samples"] = Json::array();
  CHECK(ClipStore::records(none, stored.folder.path).empty());
}

TEST_CASE("what is not as it was written, or of other settings, is made again") {
  for (const ClipFormat format : {ClipFormat::shards, ClipFormat::files}) {
    const bool shards = format == ClipFormat::shards;
    const std::string last = shards ? kName + "-00001.tar" : "clip2.mp4";
    Stored stored{format};
    const Json finished = stored.write();
    const auto whole = contents(stored.folder);
    CHECK(stored.store({{"recipe", 2}})->find_or_hold(false).is_null());
    CHECK(stored.store()->find_or_hold(true).is_null());
    CHECK(stored.store()->hold_and_find() == finished);
    // One whose bytes are not as many, or that is gone.
    stored.folder.write(last, whole.at(last) + "x");
    CHECK(stored.store()->find_or_hold(false).is_null());
    std::filesystem::remove(stored.folder / last);
    CHECK(stored.store()->find_or_hold(false).is_null());
    stored.folder.write(last, whole.at(last));
    CHECK(stored.store()->find_or_hold(false) == finished);
    if (shards) {
      const std::string idx = last + ".idx";
      std::filesystem::remove(stored.folder / idx);
      CHECK(stored.store()->find_or_hold(false).is_null());
      stored.folder.write(idx, whole.at(idx));
    }
    // A run that was killed right after it ended left its notes.
    const std::string notes = shards ? "." + kName + ".settings" : "." + kName + ".journal";
    stored.folder.write(notes, "{}");
    CHECK(stored.store()->find_or_hold(false) == finished);
    CHECK(contents(stored.folder) == whole);
    // A list without errors is none.
    Json other = finished;
    other.erase("errors");
    stored.folder.write(shards ? kName + ".json" : kName + ".files", dump_json(other));
    CHECK(stored.store()->find_or_hold(false).is_null());
  }
}

TEST_CASE("clips of a run that was killed are kept as far as they are whole") {
  for (const ClipFormat format : {ClipFormat::shards, ClipFormat::files}) {
    const bool shards = format == ClipFormat::shards;
    Stored stored{format}, unbroken{format};
    const Json finished = unbroken.write();
    {
      const auto store = stored.store();
      store->begin(false);
      for (int i = 0; i < 3; ++i)
        store->add(clip_of(i));
    }
    const auto killed = contents(stored.folder);
    CHECK(killed.contains("." + kName + (shards ? ".settings" : ".journal")));
    const auto end = [&](ClipStore& store, int from) {
      for (int i = from; i < 3; ++i)
        store.add(clip_of(i));
      CHECK(store.finish({{"kind", "clips"}, {"source", "a.mp4"}, {"errors", Json::array()}}) ==
            finished);
      CHECK(contents(stored.folder) == contents(unbroken.folder));
    };
    const auto restore = [&] {
      for (const auto& [name, bytes] : contents(stored.folder))
        std::filesystem::remove(stored.folder / name);
      for (const auto& [name, bytes] : killed)
        stored.folder.write(name, bytes);
    };
    const std::size_t all = shards ? 2 : 3;  // a shard that is open is lost
    const Lines kept = {"clip0 0 7", "clip1 10 17", "clip2 20 27"};
    {
      const auto store = stored.store();
      store->find_or_hold(false);
      CHECK(text_of(store->begin(true)) == Lines(kept.begin(), kept.begin() + all));
      for (std::size_t i = 0; i < all; ++i)
        store->add_kept();
      end(*store, static_cast<int>(all));
    }
    // Not kept: of other settings, or without being asked for.
    for (const bool keep : {true, false}) {
      restore();
      const auto store = stored.store(keep ? Json{{"recipe", 2}} : kSettings);
      store->find_or_hold(false);
      CHECK(store->begin(keep).empty());
      CHECK(names_in(stored.folder).size() == 2);  // the notes, and the lock
    }
    // Begun twice: what was kept was not of this run.
    restore();
    {
      const auto store = stored.store();
      store->find_or_hold(false);
      CHECK(store->begin(true).size() == all);
      CHECK(store->begin(false).empty());
      end(*store, 0);
    }
    // Damaged in the middle of the first.
    restore();
    const std::string first = shards ? kName + "-00000.tar" : "clip1.mp4";
    std::string bytes = killed.at(first);
    ++bytes[bytes.size() / 2];
    stored.folder.write(first, shards ? bytes.substr(0, bytes.size() / 2) : bytes);
    {
      const auto store = stored.store();
      store->find_or_hold(false);
      const KeptClips some = store->begin(true);
      CHECK(text_of(some) == (shards ? Lines{} : Lines{"clip0 0 7"}));
      for (std::size_t i = 0; i < some.size(); ++i)
        store->add_kept();
      end(*store, static_cast<int>(some.size()));
    }
  }
}

TEST_CASE("whole shards behind a gap, or that do not fit the notes, are removed") {
  Stored stored;
  stored.most = 1;
  stored.write();
  const auto whole = contents(stored.folder);
  std::filesystem::remove(stored.folder / (kName + ".json"));
  std::filesystem::remove(stored.folder / (kName + "-00001.tar"));
  stored.folder.write("." + kName + ".settings", dump_json(kSettings) + "\n");
  stored.folder.write("." + kName + "-00003.tar.tmp", "what a killed writer left");
  stored.folder.write(kName + "-00007.tar", "not of this one");
  {
    const auto store = stored.store();
    store->find_or_hold(false);
    CHECK(text_of(store->begin(true)) == Lines{"clip0 0 7"});
    CHECK(names_in(stored.folder) == Lines{"." + kName + ".json.tmp", "." + kName + ".settings",
                                           kName + "-00000.idx", kName + "-00000.tar",
                                           kName + "-00000.tar.idx", kName + "-00007.tar"});
  }
}

TEST_CASE("a torn journal counts as far as it is whole, and a file that was announced is removed") {
  Stored stored{ClipFormat::files};
  {
    const auto store = stored.store();
    store->begin(false);
    store->add(clip_of(0));
    store->add(clip_of(1));
  }
  const std::string journal = "." + kName + ".journal";
  std::string lines = contents(stored.folder).at(journal);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 5);
  const std::size_t last = lines.rfind('\n', lines.size() - 2) + 1;
  stored.folder.write(journal, lines.substr(0, last + 20));  // the second clip's last line is torn
  stored.folder.write(".clip1.mp4.tmp", "half");
  const auto store = stored.store();
  CHECK(text_of(store->begin(true)) == Lines{"clip0 0 7"});
  CHECK(names_in(stored.folder) == Lines{journal, "clip0.json", "clip0.mp4"});
  lines = contents(stored.folder).at(journal);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
}

TEST_CASE("errors of a source are listed as texts, or as faults of its pictures") {
  const auto of = [](const Json& errors) {
    Lines lines;
    for (const io::Fault& fault : ClipStore::faults({{"errors", errors}}, "a.mp4"))
      lines.push_back(
          vfm::format("{}: {} ({})", fault.input, fault.message, to_string(fault.cause)));
    return lines;
  };
  CHECK(of(Json::array()).empty());
  CHECK(of({"first", "second"}) == Lines{"a.mp4: first (decode)", "a.mp4: second (decode)"});
  CHECK(of(io::to_json({{"b.png", "bad", Cause::crash}})) == Lines{"b.png: bad (crash)"});
}

TEST_CASE("all of a source is removed, but what another one uses, and what is somebody else's") {
  for (const ClipFormat format : {ClipFormat::shards, ClipFormat::files}) {
    const bool shards = format == ClipFormat::shards;
    Stored stored{format};
    stored.write();
    stored.folder.write("notes.txt", "mine");
    if (shards) {
      stored.folder.write(kName + "-00000.caption.tar", "column");
      stored.folder.write(kName + "-00002.tar", "of a run before");
      stored.folder.write("." + kName + "-00003.tar.tmp", "left");
      stored.folder.write("." + kName + ".parts", "left");
    }
    const auto before = contents(stored.folder);
    // Of another size it may not be what was written.
    const std::string changed = shards ? kName + "-00001.tar" : "clip2.json";
    stored.folder.write(changed, before.at(changed) + "x");
    CHECK_THROWS_WITH(stored.store(nullptr)->remove([](const std::string&) { return false; }),
                      "'" + stored.folder / changed +
                          "' is not the file that vfm-clip wrote there; remove it by hand");
    stored.folder.write(changed, before.at(changed));
    CHECK(contents(stored.folder) == before);
    stored.store(nullptr)->remove([](const std::string& key) { return key == "clip1"; });
    CHECK(names_in(stored.folder) ==
          (shards ? Lines{"notes.txt"} : Lines{"clip1.json", "clip1.mp4", "notes.txt"}));
  }
}

TEST_CASE("a removal that was killed goes on, by what was noted") {
  for (const ClipFormat format : {ClipFormat::shards, ClipFormat::files}) {
    const bool shards = format == ClipFormat::shards;
    Stored stored{format};
    const Json finished = stored.write();
    // The list goes first.
    std::string notes = "{\"removed\":true}\n";
    if (!shards) {
      notes = "{\"settings\":null}\n";
      for (const Json& sample : finished.at("samples"))
        notes += dump_json(sample) + "\n";
    }
    stored.folder.write("." + kName + (shards ? ".settings" : ".journal"), notes);
    std::filesystem::remove(stored.folder / (kName + (shards ? ".json" : ".files")));
    {
      // No run takes what is half removed.
      const auto store = stored.store();
      CHECK(store->find_or_hold(false).is_null());
    }
    stored.store(nullptr)->remove([](const std::string&) { return false; });
    CHECK(names_in(stored.folder).empty());
  }
}
