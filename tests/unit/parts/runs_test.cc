// Parts that one or several processes do: numbers, markers, leases, and what is left after kills.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/stopwatch.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/process_name.h"
#include "io/store.h"
#include "parts/part_inputs.h"
#include "parts/part_lease.h"
#include "parts/part_notes.h"
#include "parts/part_run.h"
#include "parts/status.h"
#include "support/part_leases.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::parts;

namespace {

/// Does one part, and returns it when it is complete.
void do_part(const std::string& directory, int part, int parts,
             const PartRun::DigestOf& digest = plain_digest) {
  PartRun run(directory, "embed", fixed_part(part, parts));
  std::optional<Part> mine = run.next(digest);
  REQUIRE(mine);
  REQUIRE_FALSE(mine->done());
  PartResults results;
  results.records = 7;
  results.outputs = {{"a.tar", 5, "77"}};
  results.errors = {{"decode", 2}};
  results.versions = {{"vfm", "0.1.0"}};
  mine->complete(results);
  CHECK_FALSE(run.next(digest));
}

/// The names of files and folders that only exist during work.
std::vector<std::string> leftovers(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.front() == '.' || name.ends_with(".tmp") || name.starts_with("lease") ||
        name == "temporary")
      names.push_back(entry.path());
  }
  return names;
}

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

TEST_CASE("the number of parts is said once, and another is refused with its own status") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(PartRun(folder.path, "embed", any_part({})), Catch::Contains("auto/16"));
  CHECK_FALSE(count_parts(folder.path, "embed"));
  CHECK(PartRun(folder.path, "embed", any_part(16)).parts() == 16);
  CHECK(count_parts(folder.path, "embed") == 16);
  CHECK(PartRun(folder.path, "embed", any_part({})).parts() == 16);
  CHECK(parse_json(io::read_file(folder / "parts/embed/run.json"), "") ==
        Json{{"version", 1}, {"tool", "vfm-embed"}, {"parts", 16}, {"shares", "names"}});
  try {
    PartRun(folder.path, "embed", fixed_part(0, 4));
    FAIL();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::conflict);
    CHECK_THAT(error.what(), Catch::Contains("16 parts, not 4"));
  }
  try {
    PartRun(folder.path, "embed", fixed_part(16, {}));
    FAIL();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
  }
  // Another tool has its own number.
  CHECK(PartRun(folder.path, "caption", any_part(4)).parts() == 4);
  CHECK_THROWS_WITH(PartRun(folder.path, "clip", any_part(4)), Catch::Contains("vfm-clip list"));
}

TEST_CASE("a part that is done is not done again, and its marker says what it made") {
  const TemporaryFolder folder;
  do_part(folder.path, 3, 5);
  const std::string marker = folder / "parts/embed/00003/done.json";
  const std::string text = io::read_file(marker);
  const Json json = parse_json(text, "");
  CHECK(json.at("tool") == "vfm-embed");
  CHECK(json.at("part") == 3);
  CHECK(json.at("parts") == 5);
  CHECK(json.at("inputs") == plain_digest(3));
  CHECK(json.at("records") == 7);
  CHECK(json.at("outputs") == Json::array({{{"path", "a.tar"}, {"bytes", 5}, {"xxh3", "77"}}}));
  CHECK(json.at("errors") == Json{{"decode", 2}});
  CHECK(json.at("host") == io::ProcessName::self().host);
  CHECK(json.at("begun").get<std::string>().size() == 20);
  CHECK(leftovers(folder.path).empty());

  PartRun again(folder.path, "embed", fixed_part(3, {}));
  const std::optional<Part> part = again.next(plain_digest);
  REQUIRE(part);
  CHECK(part->done());
  CHECK(part->path("manifest.jsonl") == folder / "parts/embed/00003/manifest.jsonl");
  CHECK(io::read_file(marker) == text);
}

TEST_CASE("a marker is never overwritten, and one of other inputs is removed before the work") {
  const TemporaryFolder folder;
  do_part(folder.path, 0, 1);
  const std::string marker = folder / "parts/embed/00000/done.json";
  const std::string text = io::read_file(marker);
  io::FileStore store(folder / "parts");
  std::optional<PartMarker> found = read_marker(store, "embed/00000/done.json");
  REQUIRE(found);
  found->results.records = 8;
  CHECK_FALSE(create_marker(store, "embed/00000/done.json", *found));
  CHECK(io::read_file(marker) == text);

  const auto changed = [](int) { return std::string("changed"); };
  PartRun run(folder.path, "embed", fixed_part(0, {}));
  std::optional<Part> part = run.next(changed);
  REQUIRE(part);
  CHECK_FALSE(part->done());
  CHECK_FALSE(io::file_exists(marker));
  CHECK(read_notes(store, "embed").empty());
  // Another process completes the part first, with the same inputs: its marker stays.
  found->inputs = "changed";
  CHECK(create_marker(store, "embed/00000/done.json", *found));
  part->complete({});
  CHECK(read_marker(store, "embed/00000/done.json")->results.records == 8);
}

TEST_CASE("the facts of a marker are read without its outputs") {
  const TemporaryFolder folder;
  io::FileStore store(folder / "parts");
  PartMarker marker{"vfm-embed", 3, 5, "in,\"outputs\":[puts", {}, "n1", "2026-01-01T00:00:00Z",
                    "z"};
  marker.results.records = 7;
  marker.results.errors = {{"decode", 2}};
  const int outputs = GENERATE(0, 3, 2000);
  for (int i = 0; i < outputs; ++i)
    marker.results.outputs.push_back({fmt::format("{}.tar", i), 5, "77"});
  REQUIRE(create_marker(store, "done.json", marker));
  // Of many outputs the end is not read.
  const std::string path = folder / "parts/done.json";
  if (outputs == 2000) std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  const std::optional<PartMarker> found = read_marker_facts(store, "done.json");
  REQUIRE(found);
  CHECK(found->part == 3);
  CHECK(found->inputs == marker.inputs);
  CHECK(found->results.records == 7);
  CHECK(found->results.errors == marker.results.errors);
  CHECK(found->host == "n1");
  CHECK(found->ended == "z");
  CHECK(found->results.outputs.empty());
  if (outputs == 2000)
    CHECK_THROWS_AS(read_marker(store, "done.json"), Error);
  else
    CHECK(std::ssize(read_marker(store, "done.json")->results.outputs) == outputs);
  CHECK_FALSE(read_marker_facts(store, "none.json"));
}

TEST_CASE("auto gives each part once, and no part that failed here") {
  const TemporaryFolder folder;
  do_part(folder.path, 2, 6);
  PartRun run(folder.path, "embed", any_part({}));
  std::set<int> numbers;
  while (std::optional<Part> part = run.next(plain_digest)) {
    CHECK_FALSE(part->done());
    CHECK(numbers.insert(part->number()).second);
    if (part->number() == 4)
      part->fail("no space left");
    else if (part->number() != 5)  // given back without a word
      part->complete({});
  }
  CHECK(numbers == std::set<int>{0, 1, 3, 4, 5});
  CHECK(leftovers(folder.path).empty());
  PartsStatus status = look_at_parts(folder.path, "embed", true);
  CHECK(status.to_do() == std::vector<int>{4, 5});
  CHECK(status.parts[4].why == "no space left");
  CHECK(status.count(PartState::Kind::done) == 4);
  CHECK(status.hosts.size() == 1);
  const PartInputs inputs = *part_inputs(folder.path, "embed");
  CHECK(inputs.missing == std::vector<int>{4, 5});
  CHECK(inputs.manifests.size() == 4);
  CHECK(inputs.manifests[2] == folder / "parts/embed/00002/manifest.jsonl");
  CHECK_THAT(inputs.message("x"),
             Catch::Contains("2 of the 6 parts of 'x' are not complete: 4, 5"));
  // Another run does what is left, and the reason is gone.
  PartRun later(folder.path, "embed", any_part({}));
  while (std::optional<Part> part = later.next(plain_digest))
    part->complete({});
  CHECK(look_at_parts(folder.path, "embed", false).to_do().empty());
  CHECK_FALSE(io::file_exists(folder / "parts/embed/00004/failed.json"));
}

TEST_CASE("an input that crashes three tries one after the other is a bad input") {
  const TemporaryFolder folder;
  const io::Fault crash{"/a.mp4", "the process that decoded '/a.mp4' has died", Cause::crash};
  const io::Fault other{"/b.mp4", "it died", Cause::crash};
  const auto next = [&] {
    PartRun run(folder.path, "embed", fixed_part(0, 1));
    return *run.next(plain_digest);
  };
  for (const std::set<std::string>& crashed : {std::set<std::string>{"/a.mp4"}, {}, {"/a.mp4"}}) {
    Part part = next();
    CHECK(part.judged(crash).cause == Cause::crash);
    part.fail("it died", crashed);
  }
  {
    Part part = next();
    const io::Fault bad = part.judged(crash);
    CHECK(bad.cause == Cause::decode);
    CHECK_THAT(bad.message, Catch::StartsWith(crash.message + "; it has crashed the decoder 3 "));
    CHECK(part.judged(other).cause == Cause::crash);
    for (const Cause cause : {Cause::memory, Cause::timeout, Cause::disk, Cause::format})
      CHECK(part.judged({"/a.mp4", "it failed", cause}).cause == cause);
    part.fail("it died", {"/b.mp4"});
  }
  // What is known of one input stays, while another one fails the part.
  Part part = next();
  CHECK(part.judged(crash).cause == Cause::decode);
  CHECK(part.judged(other).cause == Cause::crash);
  part.complete({});
}

TEST_CASE("next gives one part without a marker, and says with its own status that there is none") {
  const TemporaryFolder folder;
  do_part(folder.path, 2, 3);
  PartChoice choice = any_part({});
  choice.kind = PartChoice::Kind::next;
  choice.node_kind = "gpu";
  std::set<int> numbers;
  for (int i = 0; i < 2; ++i) {
    PartRun run(folder.path, "embed", choice);
    std::optional<Part> part = run.next(plain_digest);
    REQUIRE(part);
    CHECK_FALSE(part->done());
    numbers.insert(part->number());
    part->complete({});
    CHECK_FALSE(run.next(plain_digest));
  }
  CHECK(numbers == std::set<int>{0, 1});
  io::FileStore store(folder / "parts");
  CHECK(read_marker(store, "embed/00001/done.json")->node_kind == "gpu");
  CHECK(read_marker(store, "embed/00001/done.json")->seconds >= 0);
  const std::vector<PartNote> notes = read_notes(store, "embed");
  REQUIRE(notes.size() == 3);
  CHECK(notes[1].node_kind == "gpu");
  CHECK(notes[2].node_kind.empty());
  const auto none = [&] {
    try {
      PartRun(folder.path, "embed", choice).next(plain_digest);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::no_part;
    }
    return false;
  };
  CHECK(none());
  // Another input is no reason, but a marker that somebody removed is, although there is a note.
  CHECK_THROWS_AS(PartRun(folder.path, "embed", choice).next([](int) { return "changed"; }), Error);
  store.remove("embed/00001/done.json");
  // A part of a living process is not taken, and one of a silent process is.
  store.create("embed/00001/lease-1-0", lease_text(kFarProcess, 0.6));
  CHECK(PartRun(folder.path, "embed", choice).next(plain_digest)->number() == 1);
  store.create("embed/00001/lease-1-0", lease_text(kFarProcess, 60));
  const pid_t beats = start([&] {
    for (int beat = 1; beat < 40; ++beat) {
      sleep_seconds(0.05);
      store.create(fmt::format("embed/00001/lease-1-{}", beat), lease_text(kFarProcess, 60));
    }
    return 0;
  });
  CHECK(none());
  CHECK(status_of(beats) == 0);
}

TEST_CASE("outputs of a part have their temporary files in its folder") {
  const TemporaryFolder folder;
  PartRun run(folder.path, "embed", fixed_part(0, 2));
  std::optional<Part> part = run.next(plain_digest);
  REQUIRE(part);
  {
    io::AtomicFile inside(folder / "x.tar");
    CHECK_THAT(inside.temporary_path(), Catch::StartsWith(part->folder() + "/temporary/"));
    inside.write("x");
    inside.commit();
    const TemporaryFolder outside;
    io::AtomicFile elsewhere(outside / "x.tar");
    CHECK(elsewhere.temporary_path() == outside / ".x.tar.tmp");
  }
  CHECK(io::read_file(folder / "x.tar") == "x");
  part->complete({});
  CHECK(io::AtomicFile(folder / "y.tar").temporary_path() == folder / ".y.tar.tmp");
  CHECK(leftovers(folder.path).empty());
}

TEST_CASE("a part of a living process is not taken, one of a silent process is") {
  const TemporaryFolder folder;
  io::FileStore store(folder / "parts");
  PartRun run(folder.path, "embed", fixed_part(1, 2));
  constexpr double kPatience = 1.5;
  store.create("embed/00001/lease-4-0", lease_text(kFarProcess, kPatience));
  folder.write("parts/embed/00001/temporary/far-12-4/0.tmp", "");
  folder.write("parts/embed/00001/.done.json.far-12.0.tmp", "");
  SECTION("it beats") {
    std::thread beats([&] {
      sleep_seconds(kPatience / 3);
      store.create("embed/00001/lease-4-1", lease_text(kFarProcess, kPatience));
    });
    CHECK_THROWS_WITH(run.next(plain_digest), Catch::Contains("process 12 on far works at part 1"));
    beats.join();
    CHECK(look_at_parts(folder.path, "embed", false).parts[1].kind == PartState::Kind::working);
  }
  SECTION("it is silent") {
    const Stopwatch watch;
    std::optional<Part> part = run.next(plain_digest);
    CHECK(watch.seconds() > kPatience);
    REQUIRE(part);
    CHECK(find_lease(store, "embed/00001")->generation == 5);
    CHECK_FALSE(io::file_exists(folder / "parts/embed/00001/lease-4-0"));
    CHECK_FALSE(io::file_exists(folder / "parts/embed/00001/temporary/far-12-4"));
    part->complete({});
    CHECK(leftovers(folder.path).empty());
  }
  SECTION("the state of a silent process is known after its patience") {
    PartsStatus status = look_at_parts(folder.path, "embed", false);
    CHECK(status.parts[1].kind == PartState::Kind::working);
    CHECK(status.parts[1].host == "far");
    CHECK(status.to_do() == std::vector<int>{0});
    status = look_at_parts(folder.path, "embed", true);
    CHECK(status.to_do() == std::vector<int>{0, 1});
  }
}

TEST_CASE("auto takes all parts of silent processes, however many") {
  constexpr int kParts = 40;
  const TemporaryFolder folder;
  io::FileStore store(folder / "parts");
  PartRun run(folder.path, "embed", any_part(kParts));
  for (int part = 0; part < kParts; ++part)
    store.create("embed/" + part_name(part) + "/lease-1-0", lease_text(kFarProcess, 2 * kBeat));
  std::set<int> numbers;
  while (std::optional<Part> part = run.next(plain_digest)) {
    CHECK(numbers.insert(part->number()).second);
    part->complete({});
  }
  CHECK(numbers.size() == kParts);
  CHECK(look_at_parts(folder.path, "embed", false).count(PartState::Kind::done) == kParts);
}

TEST_CASE("a process whose lease was taken hears of it") {
  const TemporaryFolder folder;
  io::FileStore store(folder / "parts");
  PartRun run(folder.path, "embed", fixed_part(0, 1));
  std::optional<Part> part = run.next(plain_digest);
  REQUIRE(part);
  sleep_seconds(2.5 * kBeat);
  CHECK_FALSE(part->lost());
  CHECK(find_lease(store, "embed/00000")->beat > 0);
  store.create("embed/00000/lease-2-0", lease_text(kFarProcess, 1));
  for (int tries = 0; tries < 100 && !part->lost(); ++tries)
    sleep_seconds(kBeat / 4);
  CHECK(part->lost());
  CHECK_THROWS_WITH(part->check_lost(), Catch::Contains("process 12 on far"));
  part->fail("nobody hears of it");
  CHECK_FALSE(io::file_exists(folder / "parts/embed/00000/failed.json"));
  part.reset();
  // The lease of the other process stays.
  CHECK(store.list("embed/00000") ==
        std::vector<std::string>{"lease-1-0", "lease-2-0", "temporary/"});
}

TEST_CASE("one that saw an old state yields to who has the part") {
  const TemporaryFolder folder;
  io::FileStore store(folder / "parts");
  // The lease that was seen has ended, and another process has the part since.
  LeaseWatch watch;
  const LeaseTimes times{kBeat, 3 * kBeat};
  const io::ProcessName gone = gone_process();
  struct OldStore : io::FileStore {
    using io::FileStore::FileStore;
    mutable bool old = true;
    std::vector<std::string> list(const std::string& name) const override {
      return std::exchange(old, false) ? std::vector<std::string>{"lease-1-0"}
                                       : io::FileStore::list(name);
    }
  };
  OldStore late(folder / "parts");
  store.create("embed/00000/lease-1-0", lease_text(gone, 1));
  store.create("embed/00000/lease-3-0", lease_text(kFarProcess, 1));
  CHECK_FALSE(PartLease::claim(late, "embed/00000", times, watch, io::ProcessName::self()));
  CHECK(store.list("embed/00000") == std::vector<std::string>{"lease-1-0", "lease-3-0"});
}

TEST_CASE("a lease that was made counts, although the call that made it failed") {
  const TemporaryFolder folder;
  struct FailingStore : io::FileStore {
    using io::FileStore::FileStore;
    bool makes = true;
    bool create(const std::string& name, std::string_view contents) override {
      if (makes) io::FileStore::create(name, contents);
      fail("cannot write the folder");
    }
  };
  FailingStore store(folder / "parts");
  LeaseWatch watch;
  const LeaseTimes times{kBeat, 100 * kBeat};
  const auto lease = PartLease::claim(store, "embed/00000", times, watch, io::ProcessName::self());
  REQUIRE(lease);
  for (int tries = 0; tries < 100 && find_lease(store, "embed/00000")->beat < 2; ++tries)
    sleep_seconds(kBeat / 4);
  CHECK(find_lease(store, "embed/00000")->beat >= 2);
  CHECK_FALSE(lease->lost());
  FailingStore broken(folder / "parts");
  broken.makes = false;
  CHECK_THROWS_WITH(PartLease::claim(broken, "embed/00001", times, watch, io::ProcessName::self()),
                    Catch::Contains("cannot write the folder"));
}

TEST_CASE("a part of a process that ended is taken at once") {
  const TemporaryFolder folder;
  const pid_t child = start([&] {
    PartRun run(folder.path, "embed", fixed_part(0, 1));
    std::optional<Part> part = run.next(plain_digest);
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  CHECK(status_of(child) == 1000 + SIGKILL);
  CHECK_FALSE(leftovers(folder.path).empty());
  CHECK(look_at_parts(folder.path, "embed", false).to_do() == std::vector<int>{0});
  PartRun run(folder.path, "embed", any_part({}));
  const Stopwatch watch;
  std::optional<Part> part = run.next(plain_digest);
  REQUIRE(part);
  CHECK(watch.seconds() < 2 * kBeat);
  part->complete({});
  CHECK(leftovers(folder.path).empty());
}

namespace {

/// Several processes do parts, and are killed at random.
void kill_at_random(int kills, int parts) {
  const TemporaryFolder folder;
  constexpr int kWorkers = 3;
  const auto work = [&] {
    PartRun run(folder.path, "embed", any_part(parts));
    while (std::optional<Part> part = run.next(plain_digest)) {
      for (int file = 0; file < 3; ++file) {
        io::AtomicFile output(folder / fmt::format("{}-{}.tar", part->number(), file));
        output.write(fmt::format("file {} of {}", file, part->number()));
        sleep_seconds(0.004);
        output.commit();
      }
      if (part->lost()) continue;
      part->complete({});
      const std::string line = fmt::format("{}\n", part->number());
      std::ofstream(folder / "completed", std::ios::app) << line << std::flush;
    }
    return 0;
  };
  std::mt19937 random(17);  // NOLINT: the same kills each time
  std::vector<pid_t> workers;
  int killed = 0;
  for (int round = 0; killed < kills && round < 20 * kills; ++round) {
    while (workers.size() < kWorkers)
      workers.push_back(start(work));
    sleep_seconds(0.01 + 0.001 * static_cast<double>(random() % 40));
    const std::size_t which = random() % workers.size();
    ::kill(workers[which], SIGKILL);
    killed += status_of(workers[which]) == 1000 + SIGKILL;
    workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(which));
  }
  while (workers.size() < kWorkers)
    workers.push_back(start(work));
  for (const pid_t worker : workers)
    CHECK(status_of(worker) == 0);

  const PartsStatus status = look_at_parts(folder.path, "embed", false);
  CHECK(status.count(PartState::Kind::done) == parts);
  for (int part = 0; part < parts; ++part)
    for (int file = 0; file < 3; ++file)
      CHECK(io::read_file(folder / fmt::format("{}-{}.tar", part, file)) ==
            fmt::format("file {} of {}", file, part));
  // No part was completed twice.
  std::ifstream completed(folder / "completed");
  std::multiset<int> numbers;
  for (int number = 0; completed >> number;)
    numbers.insert(number);
  CHECK(std::set<int>(numbers.begin(), numbers.end()).size() == numbers.size());
  CHECK(numbers.size() > static_cast<std::size_t>(parts) / 4);
  CHECK(leftovers(folder.path) == std::vector<std::string>{});
}

}  // namespace

TEST_CASE("what a process left that was killed after its marker is taken away") {
  const TemporaryFolder folder;
  do_part(folder.path, 0, 2);
  do_part(folder.path, 1, 2);
  io::FileStore store(folder / "parts");
  const auto leave = [&](const io::ProcessName& process) {
    for (const std::string part : {"embed/00000", "embed/00001"}) {
      store.create(part + "/lease-2-0", lease_text(process, 0.5));
      store.create(part + "/lease-2-4", lease_text(process, 0.5));
      folder.write("parts/" + part + "/temporary/far-12-2/0.tmp", "");
      folder.write("parts/" + part + "/.lease-3-0.far-12.0.tmp", "");
    }
  };
  const io::ProcessName gone = gone_process();
  leave(gone);
  CHECK_FALSE(PartRun(folder.path, "embed", any_part({})).next(plain_digest));
  CHECK(leftovers(folder.path).empty());
  leave(gone);
  CHECK(PartRun(folder.path, "embed", fixed_part(0, {})).next(plain_digest)->done());
  CHECK(leftovers(folder.path).size() == 5);
  tidy_parts(folder.path, "embed");
  CHECK(leftovers(folder.path).empty());
  // Of another machine it can be told only after a while.
  leave(kFarProcess);
  CHECK_FALSE(PartRun(folder.path, "embed", any_part({})).next(plain_digest));
  CHECK(leftovers(folder.path).size() == 8);
  tidy_parts(folder.path, "embed");
  CHECK(leftovers(folder.path).empty());
}

TEST_CASE("processes that are killed at random do all parts, and leave nothing") {
  kill_at_random(20, 30);
}

TEST_CASE("processes that are killed very often do all parts, and leave nothing", "[nightly]") {
  kill_at_random(200, 60);
}

TEST_CASE("missing parts are windows of an array's numbers") {
  const auto windows = [](const std::vector<int>& parts, int most) {
    std::string text;
    for (const ArrayWindow& window : missing_expressions(parts, most))
      text += fmt::format("{}+{} ", window.expression, window.offset);
    return text;
  };
  CHECK(windows({}, 0) == "");
  CHECK(windows({0}, 0) == "0+0 ");
  CHECK(windows({0, 1, 2, 3, 7}, 0) == "0-3,7+0 ");
  CHECK(windows({0, 1, 2, 3, 7}, 1001) == "0-3,7+0 ");
  CHECK(windows({998, 999, 1000, 1001, 1002, 5000}, 1000) == "998-999+0 0-2+1000 0+5000 ");
  CHECK(windows({4, 5, 6, 7}, 1) == "0+4 0+5 0+6 0+7 ");
}

TEST_CASE("the shards of a tool go to parts by the names of their files") {
  for (const int parts : {1, 3, 16}) {
    CHECK(part_of_shard("a/b/x-00000.tar", parts) == part_of_shard("x-00000.tar", parts));
    std::set<int> used;
    for (int i = 0; i < 200; ++i)
      used.insert(part_of_shard(fmt::format("{}.tar", i), parts));
    CHECK(used.size() == static_cast<std::size_t>(parts));
    CHECK(*used.rbegin() == parts - 1);
  }
  // Another rule would give shards to other parts than those that did them.
  CHECK(part_of_shard("x-00000.tar", 1000) == 446);
}

TEST_CASE("a table says how far the parts are") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(look_at_parts(folder.path, "embed", false),
                    Catch::Contains("no parts of vfm-embed"));
  CHECK_FALSE(part_inputs(folder.path, "embed"));
  do_part(folder.path, 1, 40);
  io::FileStore store(folder / "parts");
  store.create("embed/00007/lease-1-0", lease_text(kFarProcess, 60));
  PartsStatus status = look_at_parts(folder.path, "embed", false);
  const std::string table = status_table(status);
  CHECK_THAT(table, Catch::StartsWith("vfm-embed: 1 of 40 parts done, 1 working, 38 missing"));
  CHECK_THAT(table, Catch::Contains("\n7     working  far   2026-01-01T00:00:00Z\n"));
  CHECK_THAT(table, Catch::Contains("and 19 more parts\n"));
  status.hosts.clear();
  status.hosts["far"] = {3, 2, 1800};
  status.hosts["near"] = {1, 0, 200};
  CHECK(status.rate() == Approx(3600.0 * 2 / 500));
  CHECK(status.seconds_left() == Approx(39 * 500 / 2.0));
  const Json record = parts_record(status);
  CHECK(record.at("done") == 1);
  CHECK(record.at("errors") == Json{{"decode", 2}});
  CHECK(record.at("hosts").at("far").at("seconds_a_part") == 600);
  CHECK(part_record(status, status.parts[1]).at("state") == "done");
}
