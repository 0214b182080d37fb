// A dataset that is scanned and written in parts: what one command makes, and what no part made.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "dataset/planned.h"
#include "dataset/planned_parts.h"
#include "dataset/scan_parts.h"
#include "dataset_run.h"
#include "io/store.h"
#include "parts/part_choice.h"
#include "parts/part_inputs.h"
#include "parts/part_marker.h"
#include "parts/part_notes.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

using Files = std::map<std::string, std::string>;

/// Samples of all fates, in shards, columns and lines that are no shards.
struct InParts : DatasetRun {
  InParts() {
    options.split = {{"train", 0.5}, {"val", 0.5}};
    options.shard_bytes = 1024 + 2 * 2048;
    options.where = "motion < 9";
    for (int shard = 0; shard < 5; ++shard) {
      std::vector<shard::Sample> samples;
      for (int i = 0; i < 4; ++i)
        samples.push_back(video(
            fmt::format("k{}", 4 * shard + i),
            fmt::format(R"({{"source":"s{}","motion":{}}})", (4 * shard + i) / 2, 2 * shard + i),
            i == 3 ? "twins" : ""));
      add(fmt::format("in{}", shard), samples);
    }
    folder.write("input.jsonl", list());
    folder.write("without", "k5\n");
    options.inputs = {folder / "input.jsonl"};
    options.without = folder / "without";
  }
  std::string list() const {
    std::string lines = "[1]\n";
    for (int shard = 0; shard < 5; ++shard) {
      lines += folder / fmt::format("in{}.tar", shard) + "\n";
      if (shard == 2) lines += "{\"kind\":\"video\",\"path\":\"raw.mp4\"}\n";
    }
    return lines;
  }

  static parts::PartChoice part_of(int part, int parts) {
    parts::PartChoice choice;
    choice.kind = parts::PartChoice::Kind::fixed;
    choice.part = part;
    choice.parts = parts;
    return choice;
  }
  /// What `act` writes to its manifest.
  template <class Act>
  std::vector<Json> written(Act act) const {
    const HeardLog heard;
    const std::string path = folder / "manifest";
    const io::File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), path);
    io::ManifestWriter manifest(file.fd());
    act(manifest);
    return lines("manifest");
  }
  void scan(int part, int parts) {
    written([&](io::ManifestWriter& out) {
      CHECK(scan_parts(options, part_of(part, parts), slots, no_progress(), out) == 0);
    });
  }
  void scan_all(int parts) {
    for (int part = parts - 1; part >= 0; --part)
      scan(part, parts);
  }
  void plan() {
    written([&](io::ManifestWriter& out) { make_plan(options, slots, no_progress(), out); });
  }
  std::vector<Json> write(int part, int parts) {
    return written([&](io::ManifestWriter& out) {
      CHECK(write_planned(plan_file(options.output), part_of(part, parts), slots, no_progress(),
                          out) == 0);
    });
  }
  void write_all(int parts) {
    for (int part = parts - 1; part >= 0; --part)
      write(part, parts);
  }
  std::vector<Json> join() {
    return written([&](io::ManifestWriter& out) { join_planned(options.output, &out); });
  }
  template <class Act>
  std::string refused(Act act) {
    try {
      act();
    } catch (const Error& error) {
      return plain(error.what());
    }
    return "";
  }
  std::string plan_refused() {
    return refused([&] { plan(); });
  }
  std::string join_refused() {
    return refused([&] { join(); });
  }

  /// The files of the dataset, without those of its parts and its plan.
  Files dataset() const {
    Files all;
    for (const std::string& name : files())
      if (!name.starts_with("parts/") && name != "plan.bin") all[name] = text("out/" + name);
    return all;
  }
  /// The files that tell what parts are done.
  int done(const std::string& tool) const {
    int count = 0;
    for (const std::string& name : files())
      count += name.starts_with("parts/" + tool + "/") && name.ends_with("/done.json");
    return count;
  }
  std::string out(const std::string& name) const { return options.output + "/" + name; }

  share::Slots slots{1};
};

}  // namespace

TEST_CASE("a dataset in any number of parts has the files of one command") {
  InParts one;
  CHECK(one.run() == 2);
  const Files whole = one.dataset();
  const std::vector<Json> records = one.records;
  REQUIRE(records.size() > 4);
  CHECK(one.json("out/dataset.json")["duplicates"]["exact"] == 2);
  CHECK(one.json("out/dataset.json")["left_out"]["without"] == 1);
  CHECK(one.json("out/dataset.json")["filtered"] > 0);
  for (const auto& [scans, shards] : {std::pair(1, 1), {3, 2}, {9, 11}}) {
    CAPTURE(scans, shards);
    one.remove_output();
    one.scan_all(scans);
    one.plan();
    one.write_all(shards);
    CHECK(one.join() == records);
    CHECK(one.dataset() == whole);
    // A second join writes nothing.
    const auto written = std::filesystem::last_write_time(one.out("dataset.json"));
    CHECK(one.join() == records);
    CHECK(std::filesystem::last_write_time(one.out("dataset.json")) == written);
  }
  // Without parts of a scan, the plan reads the input.
  one.remove_output();
  CHECK_FALSE(has_scan_parts(one.options.output));
  one.plan();
  CHECK_FALSE(has_scan_parts(one.options.output));
  one.write_all(1);
  CHECK(one.join() == records);
  CHECK(one.dataset() == whole);
}

TEST_CASE("a part writes the shards whose place is its own, and those that are done are printed") {
  InParts run;
  run.plan();
  const std::vector<Json> first = run.write(1, 3);
  const WritePlan plan = read_plan_file(plan_file(run.options.output));
  std::size_t place = 1;
  for (const Json& record : first) {
    CHECK(record["path"] == "out/" + plan.shards.at(place).path);
    place += 3;
  }
  CHECK(place >= plan.shards.size());
  CHECK(run.done("shard") == 1);
  CHECK(run.write(1, 3) == first);
  CHECK(run.join_refused() ==
        "of vfm-shard, 2 of the 3 parts of 'out' are not complete: 0, 2; nothing is joined");
}

TEST_CASE("a plan needs all parts of the scan, of the same input and options") {
  InParts run;
  run.scan(0, 3);
  CHECK(has_scan_parts(run.options.output));
  CHECK(run.plan_refused() ==
        "of vfm-shard plan --part, 2 of the 3 parts of 'out' are not complete: 1, 2; no plan is "
        "made");
  run.scan(1, 3);
  run.scan(2, 3);
  const auto again = [&] {
    const std::string said = run.plan_refused();
    return said.substr(0, said.find(';')).substr(said.find(' ', 5) + 1);
  };
  const std::string changed = "was scanned with other inputs or options";
  const ShardOptions options = run.options;
  const auto with = [&](const auto& change) {
    run.options = options;
    change(run.options);
    const std::string said = again();
    run.options = options;
    return said;
  };
  CHECK(with([](ShardOptions& now) { now.where = "motion < 8"; }) == changed);
  CHECK(with([](ShardOptions& now) { now.without.clear(); }) == changed);
  CHECK(with([](ShardOptions& now) { now.keep_duplicates = true; }) == changed);
  CHECK(with([](ShardOptions& now) { now.duplicate_threshold.reset(); }) == changed);
  CHECK(with([](ShardOptions& now) { now.near_member = "text.npy"; }) == changed);
  CHECK(with([](ShardOptions& now) { now.rekey = true; }) == changed);
  CHECK(with([](ShardOptions& now) { ++now.limits.member; }) == changed);
  CHECK(with([](ShardOptions& now) { now.balance.rules = {{"motion", 1}}; }) == changed);
  run.folder.write("without", "k5\nk6\n");
  CHECK(again() == changed);
  run.folder.write("without", "k5\n");
  // Another order, a line more, and one less.
  const std::string list = run.list();
  for (const std::string& other :
       {replaced(replaced(replaced(list, "in1", "new"), "in2", "in1"), "new", "in2"),
        list + "[2]\n", list.substr(4)}) {
    run.folder.write("input.jsonl", other);
    CHECK(again() == changed);
  }
  run.folder.write("input.jsonl", list);
  const auto markers = [&] {
    Files all;
    for (const int part : {0, 1, 2}) {
      const std::string name = fmt::format("out/parts/plan/{:05}/done.json", part);
      all[name] = run.text(name);
    }
    return all;
  };
  const Files before = markers();
  run.folder.write("in3.tar", io::read_file(run.folder / "in3.tar"));
  CHECK(again() == changed);
  // The part with what changed is scanned again, and no other.
  run.scan_all(3);
  int scanned = 0;
  for (const auto& [name, marker] : markers())
    scanned += marker != before.at(name);
  CHECK(scanned == 1);
  // A line before the others gives each shard another number. It is of the first part, as all lines
  // that are no shards.
  run.folder.write("input.jsonl", "[0]\n" + list);
  std::set<int> with_lines = {0};
  for (int shard = 0; shard < 5; ++shard)
    with_lines.insert(parts::part_of_shard(fmt::format("in{}.tar", shard), 3));
  CHECK(with_lines.size() > 1);
  const Files earlier = markers();
  run.scan_all(3);
  for (const int part : {0, 1, 2}) {
    const std::string of_part = fmt::format("out/parts/plan/{:05}/", part);
    CHECK((run.text(of_part + "done.json") != earlier.at(of_part + "done.json")) ==
          with_lines.contains(part));
    CHECK(count_of(run.text(of_part + "errors.jsonl"), "\n") == (part == 0 ? 3 : 0));
  }
  // What decides the plan alone does not matter.
  CHECK(with([](ShardOptions& now) { now.seed = 7; }).empty());
}

TEST_CASE("a file of a scan that is not as its part wrote it is refused") {
  InParts run;
  run.scan_all(2);
  const std::string path = run.out("parts/plan/00001/scan.bin"), bytes = io::read_file(path);
  const std::string damaged =
      "'out/parts/plan/00001/scan.bin' is not as its part wrote it; remove "
      "'out/parts/plan/00001', and do this part again";
  const auto with = [&](const std::string& text) {
    run.folder.write("out/parts/plan/00001/scan.bin", text);
    return run.plan_refused();
  };
  CHECK(with(bytes + "x") == damaged);
  std::string other = bytes;
  other.back() ^= 1;
  CHECK(with(other) == damaged);
  std::filesystem::remove(path);
  CHECK(run.plan_refused() == damaged);
  CHECK(with(bytes).empty());
}

TEST_CASE("a plan that replaces shards forgets the parts that wrote them, and no others") {
  InParts run;
  run.plan();
  run.write_all(2);
  const std::vector<Json> records = run.join();
  const Files whole = run.dataset();
  io::FileStore store(run.out("parts"));
  // The same plan again: all stays.
  run.plan();
  CHECK(run.done("shard") == 2);
  CHECK(parts::read_notes(store, "shard").size() == 2);
  CHECK(run.join() == records);
  // Forced: all shards go, although the plan is the same, so their markers must go.
  run.options.force = true;
  run.plan();
  run.options.force = false;
  CHECK(run.done("shard") == 0);
  CHECK(parts::read_notes(store, "shard").empty());
  CHECK(run.join_refused().starts_with("of vfm-shard, 2 of the 2 parts"));
  run.write_all(2);
  CHECK(run.join() == records);
  CHECK(run.dataset() == whole);
}

TEST_CASE("parts of another plan, and manifests that their parts did not write, are not joined") {
  InParts run;
  run.plan();
  run.write_all(2);
  const std::string manifest = "out/parts/shard/00001/manifest.jsonl";
  const std::string text = io::read_file(run.folder / manifest);
  const auto with = [&](const std::string& now) {
    run.folder.write(manifest, now);
    std::string said = run.join_refused();
    run.folder.write(manifest, text);
    return said;
  };
  const auto refusal = [](const std::string& why) {
    return "'out/parts/shard/00001/manifest.jsonl' is not as its part wrote it (" + why +
           "); remove 'out/parts/shard/00001/done.json', and do this part again";
  };
  const std::size_t end = text.find('\n') + 1;
  const std::string first = text.substr(0, end);
  CHECK(with(text + first) == refusal("it has too many lines"));
  CHECK_THAT(with(first + first + text.substr(end)), Catch::Contains("it does not name 'out/"));
  Json record = parse_json(first, "");
  record["bytes"] = 1;
  CHECK_THAT(with(dump_json(record) + "\n" + text.substr(end)), Catch::Contains(".tar'"));
  record = parse_json(first, "");
  record.erase("xxh3");
  CHECK_THAT(with(dump_json(record) + "\n" + text.substr(end)), Catch::Contains("'xxh3'"));
  CHECK_THAT(with(text.substr(end)), Catch::Contains("it does not name 'out/"));
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  CHECK_THAT(with(text.substr(0, last)), Catch::StartsWith("no part of 'out' wrote '") &&
                                             Catch::EndsWith("; write the parts again"));
  CHECK(with(text).empty());
  // A marker of other inputs.
  io::FileStore store(run.out("parts"));
  std::optional<parts::PartMarker> marker = parts::read_marker(store, "shard/00001/done.json");
  REQUIRE(marker);
  store.remove("shard/00001/done.json");
  marker->inputs = "other";
  parts::create_marker(store, "shard/00001/done.json", *marker);
  CHECK(run.join_refused() ==
        "part 1 is of another plan; give 'vfm-shard --plan out/plan.bin --part 1/2' again");
  // It is done again with the next command.
  run.write(1, 2);
  run.join();
}
