// Parts that follow those of earlier programs, and programs that wait for those that follow.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/stopwatch.h"
#include "io/store.h"
#include "parts/needed_parts.h"
#include "parts/part_run.h"
#include "parts/parts_ahead.h"
#include "support/list_of_parts.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::parts;

namespace {

/// A folder of clips whose parts the test completes by hand.
struct Followed {
  TemporaryFolder folder;
  explicit Followed(int parts) { folder.write("parts/list.json", list_of_parts(parts)); }
  void done(const std::string& tool, int part, std::uint64_t bytes = 5) const {
    io::FileStore store(folder / "parts");
    PartMarker marker{"vfm-" + tool, part, 1};
    marker.inputs = "digest";
    marker.results.outputs = {{"a.tar", bytes, "77"}};
    create_marker(store, tool + "/" + part_name(part) + "/done.json", marker);
  }
  void lease(int part, int beat) const {
    folder.write(fmt::format("parts/clip/{}/lease-1-{}", part_name(part), beat), "{}");
  }
  RunTerms terms(const std::vector<std::string>& reads = {}) const {
    RunTerms terms;
    terms.clips = folder.path;
    terms.reads = reads;
    return terms;
  }
};

PartChoice follow_choice(std::optional<int> part, std::optional<double> follow,
                         std::optional<int> parts = {}) {
  PartChoice choice;
  choice.kind = part ? PartChoice::Kind::fixed : PartChoice::Kind::automatic;
  choice.part = part;
  choice.parts = parts;
  choice.lease_seconds = 0.2;
  choice.follow = follow;
  return choice;
}

std::string same_digest(int) {
  return "digest";
}

/// Does all parts that a run gives.
std::set<int> do_all(PartRun& run) {
  std::set<int> numbers;
  while (std::optional<Part> part = run.next(same_digest)) {
    numbers.insert(part->number());
    if (!part->done()) part->complete({});
  }
  return numbers;
}

void pause_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

TEST_CASE("parts whose input is complete are done, and then the missing ones are named") {
  const Followed of(4);
  of.done("clip", 0);
  of.done("clip", 2);
  std::set<int> numbers;
  PartRun run(of.folder.path, "caption", follow_choice({}, {}), of.terms());
  const auto next = [&] {
    while (std::optional<Part> part = run.next(same_digest)) {
      numbers.insert(part->number());
      part->complete({});
    }
  };
  CHECK_THROWS_WITH(
      next(), "of vfm-clip, 2 of the 4 parts of '" + of.folder.path + "' are not complete: 1, 3");
  CHECK(numbers == std::set<int>{0, 2});
  PartRun one(of.folder.path, "caption", follow_choice(3, {}), of.terms());
  CHECK_THROWS_WITH(one.next(same_digest),
                    Catch::Contains("1 of the 4 parts") && Catch::Contains("complete: 3"));
  // A part that is done needs what it was made of.
  PartRun again(of.folder.path, "caption", follow_choice(2, {}), of.terms());
  CHECK(again.next(same_digest)->done());
  // The parts of another number have several of the list.
  PartRun two(of.folder.path, "embed", follow_choice({}, {}, 2), of.terms());
  CHECK(two.next(same_digest)->number() == 0);
  CHECK_THROWS_WITH(two.next(same_digest), Catch::Contains("complete: 1, 3"));
}

TEST_CASE("a run that follows begins parts as they come, also of a program that has none yet") {
  const Followed of(3);
  RunTerms terms = of.terms({"caption"});
  terms.awaits = {"caption"};
  std::thread before([&] {
    for (int part = 2; part >= 0; --part) {
      pause_for(0.1);
      of.done("clip", part);
    }
    PartRun captions(of.folder.path, "caption", follow_choice({}, {}), of.terms());
    CHECK(do_all(captions) == std::set<int>{0, 1, 2});
  });
  PartRun run(of.folder.path, "embed", follow_choice({}, 5.0), terms);
  CHECK(run.file().after == std::vector<std::string>{"caption"});
  CHECK(do_all(run) == std::set<int>{0, 1, 2});
  before.join();
}

TEST_CASE("a run that follows gives up when no needed part has moved") {
  const Followed of(2);
  of.lease(1, 0);
  of.done("clip", 0);
  std::thread beats([&] {
    for (int beat = 1; beat < 5; ++beat) {
      pause_for(0.2);
      of.lease(1, beat);
    }
  });
  const Stopwatch watch;
  PartRun run(of.folder.path, "caption", follow_choice({}, 0.6), of.terms());
  CHECK_THROWS_WITH(do_all(run), Catch::Contains("complete: 1; none of them has moved for 0.6s"));
  CHECK(watch.seconds() > 1.2);
  CHECK(watch.seconds() < 5);
  beats.join();
}

TEST_CASE("a program with a limit waits until those that follow have done its parts") {
  const Followed of(4);
  PartsAhead ahead(of.folder.path, "clip");
  for (int part = 0; part < 3; ++part)
    of.done("clip", part, 100);
  CHECK(ahead.bytes() == 0);  // nobody follows
  PartRun caption(of.folder.path, "caption", follow_choice({}, {}), of.terms());
  PartRun embed(of.folder.path, "embed", follow_choice({}, {}, 2), of.terms({"caption"}));
  CHECK(ahead.bytes() == 300);
  of.done("caption", 0, 7);
  of.done("caption", 1, 7);
  // Part 0 of embed has the parts 0 and 2. It cannot do its part 1, which has the parts 1 and 3.
  CHECK(ahead.bytes() == 200);
  PartsAhead captions(of.folder.path, "caption");
  CHECK(captions.bytes() == 0);
  of.done("embed", 0);
  CHECK(ahead.bytes() == 100);

  PartChoice choice = follow_choice({}, {});
  choice.waiting = 99;
  const Stopwatch watch;
  std::thread after([&] {
    pause_for(0.3);
    of.done("caption", 2, 7);
  });
  PartRun clip(of.folder.path, "clip", choice);
  const std::optional<Part> part = clip.next(same_digest);
  REQUIRE(part);
  CHECK(part->number() == 3);
  CHECK(watch.seconds() > 0.25);
  after.join();
}

TEST_CASE("a program with a limit begins a part at it, and waits for none that another one did") {
  const Followed of(2);
  of.done("clip", 0, 100);
  const PartRun caption(of.folder.path, "caption", follow_choice({}, {}), of.terms());
  PartChoice choice = follow_choice({}, {});
  choice.waiting = 100;
  CHECK(PartRun(of.folder.path, "clip", choice).next(same_digest)->number() == 1);
  choice.waiting = 99;
  std::thread other([&] {
    pause_for(0.1);
    of.done("clip", 1);
  });
  CHECK_FALSE(PartRun(of.folder.path, "clip", choice).next(same_digest));
  other.join();
}

TEST_CASE(
    "only programs that share out the same clips follow, and of columns those that read them") {
  const Followed of(2);
  io::FileStore store(of.folder / "parts");
  PartMarker marker{"vfm-clip", 0, 2};
  marker.results.outputs = {{"a.tar", 5, ""}, {"b.tar", 6, ""}};
  create_marker(store, marker_name("clip", 0), marker);
  PartsAhead clips(of.folder.path, "clip"), captions(of.folder.path, "caption");
  const PartRun by_names(of.folder.path, "embed", follow_choice({}, {}, 2));
  CHECK(clips.bytes() == 0);
  const PartRun caption(of.folder.path, "caption", follow_choice({}, {}), of.terms());
  CHECK(clips.bytes() == 11);
  of.done("caption", 0, 7);
  CHECK(clips.bytes() == 0);
  const PartRun other(of.folder.path, "other", follow_choice({}, {}), of.terms());
  CHECK(clips.bytes() == 11);
  CHECK(captions.bytes() == 0);
  const PartRun reader(of.folder.path, "score", follow_choice({}, {}), of.terms({"caption"}));
  CHECK(captions.bytes() == 7);
  of.done("score", 0);
  CHECK(captions.bytes() == 0);
}

TEST_CASE("of what a part needs it is known what is missing, and whether it moves") {
  const Followed of(3);
  const RunFile run{.parts = 3, .of_clips = true, .grows = true, .after = {"caption"}};
  NeededParts needs(of.folder.path, run, false);
  const std::string folder = "'" + of.folder.path + "'";
  const auto one = [&](const std::string& tool, int part) {
    return "of vfm-" + tool + ", 1 of the 3 parts of " + folder +
           " is not complete: " + std::to_string(part);
  };
  CHECK(needs.missing({0}) == "vfm-caption has no parts in " + folder + "; " + one("clip", 0));
  const auto moved = [&] {
    const bool first = needs.have_moved({0, 1});
    CHECK_FALSE(needs.have_moved({0, 1}));
    return first;
  };
  CHECK_FALSE(moved());
  of.lease(2, 0);  // of a part that nobody needs
  CHECK_FALSE(moved());
  of.lease(0, 0);
  CHECK(moved());
  of.lease(0, 1);
  CHECK(moved());
  io::FileStore store(of.folder / "parts");
  for (const char* name : {"lease-1-0", "lease-1-1"})
    store.remove("clip/00000/" + std::string(name));
  CHECK_FALSE(moved());  // The process has ended without having done the part.
  of.done("clip", 0);
  CHECK(moved());
  CHECK_FALSE(needs.are_done(0));
  const PartRun caption(of.folder.path, "caption", follow_choice({}, {}), of.terms());
  CHECK_FALSE(moved());
  CHECK_FALSE(needs.are_done(0));
  CHECK(needs.missing({0, 1}) == "of vfm-caption, 2 of the 3 parts of " + folder +
                                     " are not complete: 0, 1; " + one("clip", 1));
  of.done("caption", 0);
  CHECK(moved());
  CHECK(needs.are_done(0));
  CHECK_FALSE(needs.are_done(1));
  CHECK(needs.missing({0, 1}) == one("caption", 1) + "; " + one("clip", 1));
  of.done("clip", 1);
  CHECK_FALSE(needs.are_done(1));
  CHECK(needs.missing({0, 1}) == one("caption", 1));
}

TEST_CASE("a program that begins, and has done a part before it is looked at again, has moved") {
  const Followed of(2);
  of.done("clip", 0);
  of.done("clip", 1);
  const RunFile run{.parts = 2, .of_clips = true, .grows = true, .after = {"caption"}};
  NeededParts needs(of.folder.path, run, false);
  CHECK_FALSE(needs.have_moved({0, 1}));  // Nobody has begun.
  CHECK_FALSE(needs.have_moved({0, 1}));
  const PartRun caption(of.folder.path, "caption", follow_choice({}, {}), of.terms());
  of.done("caption", 0);
  CHECK(needs.have_moved({0, 1}));
  CHECK_FALSE(needs.have_moved({0, 1}));
}

TEST_CASE("a part needs its own clips, those of a list that grew since, or all") {
  const Followed of(3);
  of.done("clip", 0);
  const RunFile run{.parts = 2, .of_clips = true};
  RunFile before = run;  // of a list that had two parts
  before.grows = true;
  CHECK(NeededParts(of.folder.path, before, false).are_done(0));
  NeededParts own(of.folder.path, run, false), all(of.folder.path, run, true);
  CHECK_FALSE(own.are_done(0));
  CHECK_THAT(own.missing({0}), Catch::EndsWith("complete: 2"));
  CHECK_THAT(all.missing({0}), Catch::EndsWith("complete: 1, 2"));
  // The list with one part more belongs to a work that needs all.
  NeededParts all_of_before(of.folder.path, before, true);
  of.done("clip", 1);
  CHECK_FALSE(own.are_done(0));
  CHECK(own.are_done(1));
  CHECK_FALSE(all.are_done(1));
  CHECK_THAT(all.missing({0, 1}), Catch::EndsWith("complete: 2"));
  CHECK_FALSE(all_of_before.are_done(0));
  of.done("clip", 2);
  CHECK(own.are_done(0));
  CHECK(all.are_done(0));
  CHECK(all.are_done(1));
  CHECK(all_of_before.are_done(0));
  // Of programs before it, it needs the parts with its own clips.
  const PartRun caption(of.folder.path, "caption", follow_choice({}, {}), of.terms());
  RunFile reads = run;
  reads.after = {"caption"};
  NeededParts columns(of.folder.path, reads, true);
  of.done("caption", 0);
  CHECK_THAT(columns.missing({0}), Catch::EndsWith("complete: 2"));
  CHECK_THAT(columns.missing({1}), Catch::EndsWith("complete: 1"));
  of.done("caption", 2);
  CHECK(columns.are_done(0));
  CHECK_FALSE(columns.are_done(1));
}
