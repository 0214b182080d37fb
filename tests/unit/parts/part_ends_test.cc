// How a part ends: done by another process, given up, in a run that winds up; and what its marker
// and its state then say.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "base/xxh3.h"
#include "io/file.h"
#include "io/store.h"
#include "parts/part_inputs.h"
#include "parts/part_lease.h"
#include "parts/part_notes.h"
#include "parts/part_run.h"
#include "parts/stage_look.h"
#include "parts/status.h"
#include "support/heard_log.h"
#include "support/list_of_parts.h"
#include "support/part_leases.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::parts;

namespace {

using Listing = std::vector<std::string>;

/// The parts of vfm-embed in a folder.
struct EmbedFolder {
  TemporaryFolder folder;
  io::FileStore store{folder / "parts"};

  /// A part that this process has.
  Part take(int part, int parts) const {
    PartRun run(folder.path, "embed", fixed_part(part, parts));
    std::optional<Part> mine = run.next(plain_digest);
    REQUIRE(mine);
    return *std::move(mine);
  }
  /// Another process completes the part.
  void mark(int part, const std::string& inputs) {
    PartMarker marker{"vfm-embed", part, 2, inputs, {}, "far"};
    create_marker(store, marker_name("embed", part), marker);
  }
  Listing files(int part) const { return store.list("embed/" + part_name(part)); }
};

std::string what_is_said(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Runs `work` in a process of its own, which is killed after ten seconds. Returns its status.
int status_in_child(const std::function<int()>& work) {
  return status_of(start([&] {
    ::alarm(10);
    return work();
  }));
}

/// Returns 0 if next() says that the run wound up, by Error{no_part} if `throws`, or else nothing.
int wound_up(PartRun& run, bool throws) {
  try {
    const std::optional<Part> part = run.next(plain_digest);
    return part ? 1 : throws ? 2 : 0;
  } catch (const Error& error) {
    return throws && error.kind() == ErrorKind::no_part ? 0 : 3;
  }
}

}  // namespace

TEST_CASE("a part that another process completes during the claim is not done again") {
  for (const bool fixed : {true, false}) {
    EmbedFolder of;
    PartRun run(of.folder.path, "embed", fixed ? fixed_part(0, 1) : any_part(1));
    const std::optional<Part> part = run.next([&](int number) {
      of.mark(number, plain_digest(number));  // The part is claimed by now.
      return plain_digest(number);
    });
    CHECK(part.has_value() == fixed);
    if (part) CHECK(part->done());
    CHECK(of.files(0) == Listing{"done.json"});
    CHECK_FALSE(run.next(plain_digest));
  }
}

TEST_CASE("a part that another process completed with other inputs is an error") {
  EmbedFolder of;
  Part part = of.take(0, 2);
  of.mark(0, "other");
  CHECK_THROWS_WITH(part.complete({}), Catch::Contains("completed part 0 with other inputs"));
  CHECK(read_notes(of.store, "embed").empty());
}

TEST_CASE("a part whose note cannot be written is done") {
  EmbedFolder of;
  of.folder.write("parts/embed/notes", "no folder");
  const HeardLog heard;
  of.take(1, 2).complete({});
  CHECK(HeardLog::text().find("cannot note that part 1 is done") != std::string::npos);
  CHECK(read_marker(of.store, "embed/00001/done.json"));
  CHECK(of.take(1, 2).done());
}

TEST_CASE("the crashes of an input are known to whoever has the part later, until it is done") {
  EmbedFolder of;
  const io::Fault crash{"/a.mp4", "it died", Cause::crash};
  for (int tries = 0; tries < 2; ++tries) {
    of.take(0, 1).fail("it died", {"/a.mp4"});
    of.take(0, 1);  // ends without a word, as a process that is killed
  }
  Part part = of.take(0, 1);
  CHECK(part.judged(crash).cause == Cause::decode);
  part.complete({});
  CHECK(of.files(0) == Listing{"done.json"});
  // A fault without a crash is forgotten with the next try.
  Part other = of.take(0, 1);
  CHECK(other.done());
  EmbedFolder plain;
  plain.take(0, 1).fail("no space left");
  CHECK(plain.files(0) == Listing{"failed.json"});
  plain.take(0, 1);
  CHECK(plain.files(0).empty());
}

TEST_CASE("a run begins with removing what killed processes left beside the parts") {
  EmbedFolder of;
  of.take(0, 2).complete({});
  for (const char* name : {".run.json.far-1.0.tmp", "notes/.00001-1-1-.far-1.0.tmp"})
    of.folder.write("parts/embed/" + std::string(name), "");
  PartRun(of.folder.path, "embed", any_part({}));
  CHECK_FALSE(io::file_exists(of.folder / "parts/embed/.run.json.far-1.0.tmp"));
  CHECK_FALSE(io::file_exists(of.folder / "parts/embed/notes/.00001-1-1-.far-1.0.tmp"));
}

TEST_CASE("parts that are forgotten have no markers and no notes, and are done again") {
  EmbedFolder of;
  of.take(0, 2).complete({});
  of.take(1, 2).complete({});
  PartRun(of.folder.path, "caption", fixed_part(0, 1)).next(plain_digest)->complete({});
  forget_parts(of.folder.path, "embed");
  CHECK(of.files(0).empty());
  CHECK(of.files(1).empty());
  CHECK(read_notes(of.store, "embed").empty());
  CHECK_FALSE(of.take(1, 2).done());
  CHECK(read_marker(of.store, marker_name("caption", 0)));
  CHECK(read_notes(of.store, "caption").size() == 1);
  forget_parts(of.folder.path, "film");  // has none
  CHECK_THROWS_WITH(need_marker(of.folder.path, "embed", 0),
                    Catch::Contains("embed/00000/done.json' has disappeared"));
}

TEST_CASE("next takes a part whose input is complete, and no note leads it astray") {
  const TemporaryFolder folder;
  folder.write("parts/list.json", list_of_parts(3));
  io::FileStore store(folder / "parts");
  for (const char* note : {"embed/notes/00003-1-1-", "embed/notes/4000000-1-1-"})
    store.create(note, "");
  PartChoice choice = any_part({});
  choice.kind = PartChoice::Kind::next;
  RunTerms terms;
  terms.clips = folder.path;
  const auto next = [&] {
    return PartRun(folder.path, "embed", choice, terms).next(plain_digest)->number();
  };
  try {
    next();
    FAIL();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::no_part);
  }
  create_marker(store, marker_name("clip", 1), {"vfm-clip", 1, 3});
  CHECK(next() == 1);
}

TEST_CASE("of many parts that others have, each is looked at in time") {
  constexpr int kParts = 17;  // one more than are watched at a time
  EmbedFolder of;
  PartChoice choice = any_part(kParts);
  choice.lease_seconds = 0.05;
  PartRun run(of.folder.path, "embed", choice);
  // The part where the search of this process ends is that of a silent process.
  const std::string self = io::ProcessName::self().name();
  const int silent =
      static_cast<int>((xxh3_64(self.data(), self.size()) + kParts - 1) % std::uint64_t{kParts});
  const auto beat = [&](int part, int number, double patience) {
    of.store.create(fmt::format("embed/{}/lease-1-{}", part_name(part), number),
                    lease_text(kFarProcess, patience));
  };
  for (int part = 0; part < kParts; ++part)
    beat(part, 0, part == silent ? 0.15 : 1);
  std::atomic<bool> ends{false};
  std::thread beats([&] {
    for (int number = 1; number < 200 && !ends; ++number) {
      for (int part = 0; part < kParts; ++part)
        if (part != silent) beat(part, number, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
  });
  const std::optional<Part> part = run.next(plain_digest);
  ends = true;
  beats.join();
  REQUIRE(part);
  CHECK(part->number() == silent);
}

TEST_CASE("a lease stays in a finished part while its process lives, and in one that is not done") {
  EmbedFolder of;
  of.take(0, 2).complete({});
  of.store.create("embed/00001/lease-3-0", lease_text(gone_process(), 60));
  of.store.create("embed/00000/lease-3-0", lease_text(kFarProcess, 60));
  std::thread beats([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    of.store.create("embed/00000/lease-3-1", lease_text(kFarProcess, 60));
  });
  tidy_parts(of.folder.path, "embed");
  beats.join();
  CHECK(of.files(0) == Listing{"done.json", "lease-3-0", "lease-3-1"});
  CHECK(of.files(1) == Listing{"lease-3-0"});
}

TEST_CASE("a run that winds up waits for no part, whoever has it and whatever it needs") {
  EmbedFolder of;
  of.store.create("embed/00000/lease-1-0", lease_text(kFarProcess, 60));
  const TemporaryFolder clips;
  clips.write("parts/list.json", list_of_parts(1));
  RunTerms terms;
  terms.clips = clips.path;
  const auto follows = [](PartChoice choice) {
    choice.follow = 60;
    return choice;
  };
  const std::string dir = of.folder.path;
  PartChoice next = any_part(1);
  next.kind = PartChoice::Kind::next;
  // What is asked for before, and while it waits.
  for (const int milliseconds : {0, 100}) {
    const auto status = [&](const std::string& tool, const PartChoice& choice,
                            const RunTerms& with) {
      return status_in_child([&] {
        PartRun run(dir, tool, choice, with);
        std::thread signal([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
          request_wind_up();
        });
        if (milliseconds == 0) signal.join();
        const int result = wound_up(run, choice.kind == PartChoice::Kind::fixed);
        if (signal.joinable()) signal.join();
        return result;
      });
    };
    CHECK(status("embed", fixed_part(0, 1), {}) == 0);
    CHECK(status("embed", any_part(1), {}) == 0);
    CHECK(status("embed", next, {}) == 0);
    CHECK(status("caption", follows(fixed_part(0, 1)), terms) == 0);
    CHECK(status("caption", follows(any_part(1)), terms) == 0);
  }
  CHECK(of.files(0) == Listing{"lease-1-0"});
}

TEST_CASE("a node whose stage has no input waits for it, until it comes or the node winds up") {
  const TemporaryFolder folder;
  folder.write("parts/list.json", list_of_parts(2));
  const auto await = [&] { return await_stage(folder.path, {"caption", "embed"}, ""); };
  CHECK(status_in_child([&] {
          std::thread signal([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            request_wind_up();
          });
          const bool none = !await();
          signal.join();
          return none ? 0 : 1;
        }) == 0);
  std::thread clips([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    io::FileStore store(folder / "parts");
    create_marker(store, marker_name("clip", 1), {"vfm-clip", 1, 2});
  });
  CHECK(await() == "caption");
  clips.join();
}

TEST_CASE("a marker that is being written does not count, and one that is damaged is named") {
  EmbedFolder of;
  Part part = of.take(1, 2);
  of.folder.write("parts/embed/00001/.done.json.far-12.0.tmp", "{\"version\":1,\"to");
  const PartsStatus status = look_at_parts(of.folder.path, "embed", false);
  CHECK(status.parts[1].kind == PartState::Kind::working);
  CHECK(status.to_do() == std::vector<int>{0});
  CHECK(part_inputs(of.folder.path, "embed")->missing == std::vector<int>{0, 1});
  const auto said = [&] {
    return what_is_said([&] { look_at_parts(of.folder.path, "embed", false); });
  };
  of.folder.write("parts/embed/00001/done.json", "{\"version\":1,\"to");
  CHECK_THAT(said(), Catch::Contains("the marker 'embed/00001/done.json'"));
  std::filesystem::remove(of.folder / "parts/embed/00001/done.json");
  of.folder.write("parts/embed/00000/failed.json", "{");
  CHECK_THAT(said(), Catch::Contains("'embed/00000/failed.json'"));
}

TEST_CASE("a table has twenty open parts, and the first line of why one failed") {
  EmbedFolder many;
  many.take(0, 22).complete({});
  const std::string long_table = status_table(look_at_parts(many.folder.path, "embed", false));
  CHECK_THAT(long_table, Catch::Contains("\n20 ") && !Catch::Contains("\n21 "));
  CHECK_THAT(long_table, Catch::Contains("and 1 more parts\n"));
  EmbedFolder of;
  of.take(0, 2).fail("the disk is full\nand slow");
  of.take(1, 2).complete({});
  const std::string table = status_table(look_at_parts(of.folder.path, "embed", false));
  CHECK_THAT(table, Catch::StartsWith("vfm-embed: 1 of 2 parts done, 1 failed\n"));
  CHECK_THAT(table, Catch::Contains(" the disk is full\n") && !Catch::Contains("slow"));
}

TEST_CASE("a message names five missing parts, and counts the others") {
  PartInputs inputs{9, {}, {}};
  CHECK(inputs.message("x").empty());
  inputs.missing = {7};
  CHECK(inputs.message("x") == "1 of the 9 parts of 'x' is not complete: 7");
  inputs.missing = {0, 1, 2, 3, 4};
  CHECK(inputs.message("x") == "5 of the 9 parts of 'x' are not complete: 0, 1, 2, 3, 4");
  inputs.missing = {0, 1, 2, 3, 4, 6, 8};
  CHECK(inputs.message("x") ==
        "7 of the 9 parts of 'x' are not complete: 0, 1, 2, 3, 4 and 2 more");
}

TEST_CASE("a marker of another version, or with counts below 0, is refused") {
  EmbedFolder of;
  PartMarker marker{"vfm-embed", 0, 1, "inputs"};
  marker.results.outputs = {{"a.tar", 5, "77"}};
  marker.results.errors = {{"decode", 2}};
  create_marker(of.store, "whole.json", marker);
  const Json whole = parse_json(of.store.read("whole.json")->contents, "");
  const auto said = [&](const Json& json) {
    of.store.write("marker.json", dump_json(json));
    return what_is_said([&] { read_marker(of.store, "marker.json"); });
  };
  CHECK(said(whole).empty());
  Json json = whole;
  json["version"] = 2;
  CHECK(said(json) == "the marker 'marker.json' has version 2; this vfm reads version 1");
  json = whole;
  json["records"] = -1;
  CHECK(said(json) == "'records' of the marker 'marker.json' is below 0");
  json = whole;
  json["errors"]["decode"] = -2;
  CHECK_THAT(said(json), Catch::Contains("'decode'"));
  json = whole;
  json["outputs"][0]["bytes"] = -5;
  CHECK_THAT(said(json), Catch::Contains("'bytes'"));
  for (const char* member : {"host", "begun", "ended", "node_kind", "seconds", "tool", "part"}) {
    json = whole;
    json.erase(member);
    CHECK_THAT(said(json), Catch::Contains(member));
  }
}

TEST_CASE("facts of a marker that are longer than others are read whole") {
  EmbedFolder of;
  PartMarker marker{"vfm-embed", 0, 1, "inputs"};
  marker.results.outputs = {{"a.tar", 5, "77"}};
  marker.results.versions = {{"long", std::string(20'000, 'x')}};
  create_marker(of.store, "long.json", marker);
  const std::optional<PartMarker> found = read_marker_facts(of.store, "long.json");
  REQUIRE(found);
  CHECK(found->results.versions == marker.results.versions);
  CHECK(found->results.outputs.empty());
}

TEST_CASE("times of one clock have seconds between them") {
  CHECK(seconds_between("2026-01-01T23:59:58Z", "2026-01-02T00:01:00Z") == 62);
  CHECK(seconds_between("2026-01-02T00:01:00Z", "2026-01-01T23:59:58Z") == -62);
  CHECK(seconds_between("soon", "2026-01-01T23:59:58Z") == 0);
  CHECK(seconds_between("2026-01-01T23:59:58Z", "soon") == 0);
  CHECK(seconds_between(utc_now(), utc_now()) <= 1);
}
