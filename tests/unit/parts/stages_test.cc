// How unlike nodes share out the stages of a work, and the notes from which they know.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/store.h"
#include "parts/part_notes.h"
#include "parts/part_run.h"
#include "parts/stage_choice.h"
#include "parts/stage_look.h"
#include "support/temporary_folder.h"
#include "support/unlike_nodes.h"

using namespace vfm;
using namespace vfm::parts;

namespace {

/// Three stages with so many parts that wait.
std::vector<ListStage> stages_with(int clips, int captions, int embeddings) {
  return {{"clip", 100, 0, 0, clips, {}},
          {"caption", 100, 0, 0, captions, {}},
          {"embed", 100, 0, 0, embeddings, {}}};
}

/// Nodes that work without time and processes: `now` is counted.
class MadeNodes {
 public:
  explicit MadeNodes(const unlike::Work& work) : work_(work) {
    for (std::size_t stage = 0; stage < unlike::kStages; ++stage)
      stages_.push_back({unlike::kTools[stage], work.parts, 0, 0, 0, {}});
    for (int part = 0; part < work.parts; ++part)
      waiting_[0].push_back(part);
  }

  /// Returns the time until all is done.
  double run() {
    std::vector<int> idle;
    for (int node = 0; node < unlike::kKinds * work_.nodes; ++node)
      idle.push_back(node);
    for (;;) {
      std::erase_if(idle, [&](int node) { return begin(node); });
      if (ends_.empty()) return now_;
      idle.push_back(end());
    }
  }
  int done(int kind, std::size_t stage) const { return done_.at({kind, stage}); }

 private:
  struct End {
    double time;
    int node, part;
    std::size_t stage;
    double seconds;
    bool operator>(const End& other) const { return time > other.time; }
  };
  int kind_of(int node) const { return node / work_.nodes; }
  KindWork& work_of(std::size_t stage, int node) {
    return stages_[stage].kinds[unlike::kKindNames[static_cast<std::size_t>(kind_of(node))]];
  }

  /// Returns false if the node has nothing to do.
  bool begin(int node) {
    for (std::size_t stage = 0; stage < unlike::kStages; ++stage)
      stages_[stage].ready = static_cast<int>(waiting_[stage].size());
    const auto stage =
        choose_stage(stages_, unlike::kKindNames[static_cast<std::size_t>(kind_of(node))]);
    if (!stage) return false;
    const int part = waiting_[*stage].front();
    waiting_[*stage].pop_front();
    const double seconds = unlike::part_seconds(work_, kind_of(node), static_cast<int>(*stage),
                                                part, begun_[*stage]++);
    ends_.push({now_ + seconds, node, part, *stage, seconds});
    ++work_of(*stage, node).working;
    return true;
  }

  /// Returns the node that is free next.
  int end() {
    const End end = ends_.top();
    ends_.pop();
    now_ = end.time;
    KindWork& work = work_of(end.stage, end.node);
    --work.working;
    std::deque<double>& recent = recent_[{kind_of(end.node), end.stage}];
    recent.push_back(end.seconds);
    if (recent.size() > kRecentParts) recent.pop_front();
    work.seconds =
        std::accumulate(recent.begin(), recent.end(), 0.0) / static_cast<double>(recent.size());
    ++done_[{kind_of(end.node), end.stage}];
    if (end.stage + 1 < unlike::kStages) waiting_[end.stage + 1].push_back(end.part);
    return end.node;
  }

  unlike::Work work_;
  double now_ = 0;
  std::vector<ListStage> stages_;
  std::array<std::deque<int>, unlike::kStages> waiting_;
  std::array<int, unlike::kStages> begun_{};
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::map<std::pair<int, std::size_t>, std::deque<double>> recent_;
  std::map<std::pair<int, std::size_t>, int> done_;
};

}  // namespace

TEST_CASE("a node takes the stage with the most work that waits, weighed by its kind's rate") {
  std::vector<ListStage> stages = stages_with(30, 20, 25);
  CHECK_FALSE(choose_stage(stages_with(0, 0, 0), "A"));
  CHECK(choose_stage(stages, "A") == 0);
  stages[0].kinds = {{"A", {1, 100}}, {"B", {3, 50}}};
  CHECK(choose_stage(stages, "A") == 2);  // 30 / 2 < 25
  CHECK(choose_stage(stages, "B") == 0);
  CHECK(choose_stage(stages, "C") == 0);  // It has not tried.
  stages[2].kinds = {{"B", {0, 7}}};
  CHECK(choose_stage(stages, "A") == 2);
  // One node of the kind tries, and the others wait to know.
  stages[2].kinds["A"].working = 1;
  CHECK(choose_stage(stages, "A") == 1);
  stages[0].ready = stages[1].ready = 0;
  CHECK(choose_stage(stages, "A") == 2);
  // If nobody has done a part yet, every kind may try.
  stages = stages_with(0, 20, 25);
  stages[2].kinds["A"].working = 1;
  CHECK(choose_stage(stages, "A") == 2);
}

TEST_CASE("a slow node leaves the last parts to nodes that do them sooner") {
  std::vector<ListStage> stages = stages_with(0, 0, 8);
  stages[2].kinds = {{"A", {0, 20}}, {"B", {4, 2}}};
  CHECK_FALSE(choose_stage(stages, "A"));  // B ends after 6 seconds.
  CHECK(choose_stage(stages, "B") == 2);
  stages[2].ready = 40;  // B ends after 22.
  CHECK(choose_stage(stages, "A") == 2);
  // The fast nodes may work at other stages, but not be gone.
  stages[2].ready = 8;
  stages[2].kinds["B"].working = 0;
  CHECK(choose_stage(stages, "A") == 2);
  stages[0].kinds["B"].working = 4;
  CHECK_FALSE(choose_stage(stages, "A"));
  // One that ends at the same time as they do may help.
  stages[2].ready = 36;  // B ends after 20.
  CHECK(choose_stage(stages, "A") == 2);
  stages[2].ready = 35;
  CHECK_FALSE(choose_stage(stages, "A"));
}

TEST_CASE(
    "of equal stages the first is taken, and of those that are tried the one with most work") {
  CHECK(choose_stage(stages_with(0, 20, 20), "A") == 1);
  std::vector<ListStage> stages = stages_with(10, 30, 20);
  for (ListStage& stage : stages)
    stage.kinds = {{"A", {1, 0}}, {"B", {0, 5}}};
  CHECK(choose_stage(stages, "A") == 1);
  stages[0].kinds["A"].working = 0;  // Nobody of the kind tries this one.
  CHECK(choose_stage(stages, "A") == 0);
  // A kind that has done a part tries no more.
  stages[2].kinds["A"].seconds = 5;
  CHECK(choose_stage(stages, "A") == 2);
}

TEST_CASE("unlike nodes come near the best split, also when a stage becomes slower") {
  unlike::Work work;
  MadeNodes nodes(work);
  const double best = unlike::best_split(work);
  CHECK(best == Approx(87'500).epsilon(0.01));
  const double seconds = nodes.run();
  CHECK(best / seconds >= 0.98);
  CHECK(nodes.done(0, 2) < work.parts / 100);
  CHECK(best / unlike::array_seconds(work) < 0.85);
  work.slower = 3;
  const double slow_best = unlike::best_split(work);
  CHECK(slow_best == Approx(137'500).epsilon(0.01));
  CHECK(slow_best / MadeNodes(work).run() >= 0.95);
}

TEST_CASE("each kind does what it is relatively best at, and equal kinds share all stages") {
  unlike::Work work;
  work.parts = 500;
  work.item_seconds = {{{1, 20, 3}, {6, 4, 2}}};
  CHECK(unlike::best_split(work) / MadeNodes(work).run() >= 0.9);
  work.item_seconds = {{{1, 4, 2}, {4, 16, 8}}};
  CHECK(unlike::best_split(work) / MadeNodes(work).run() >= 0.95);
}

namespace {

/// The parts of a made list, in a folder without clips.
class MadeParts {
 public:
  explicit MadeParts(int parts) {
    folder_.write("parts/list.json", dump_json({{"version", 1},
                                                {"parts", parts},
                                                {"shard_bytes", 1},
                                                {"buckets", 0},
                                                {"videos", parts},
                                                {"bytes", 0},
                                                {"digits", 2},
                                                {"appended", Json::array()}}));
  }
  const std::string& path() const { return folder_.path; }
  void done(const std::string& tool, int part, const PartNote& note) {
    store_.create(tool + "/" + part_name(part) + "/done.json", "{}");
    write_note(store_, tool, note);
  }
  void lease(const std::string& tool, int part, const std::string& kind, double patience) {
    store_.create(tool + "/" + part_name(part) + "/lease-1-0",
                  dump_json({{"host", "far"},
                             {"pid", 12},
                             {"machine", "another machine"},
                             {"node_kind", kind},
                             {"begun", "2026-01-01T00:00:00Z"},
                             {"beat_seconds", patience / 3},
                             {"patience", patience}}));
  }
  io::FileStore& store() { return store_; }

 private:
  TemporaryFolder folder_;
  io::FileStore store_{folder_ / "parts"};
};

}  // namespace

TEST_CASE("a look tells which parts of each stage wait, by notes, leases and what comes before") {
  MadeParts made(5);
  for (int part = 0; part < 3; ++part)
    made.done("clip", part, {part, 100 + part, 10.0 + part, "cpu"});
  made.done("clip", 4, {4, 90, 2, "gpu"});
  made.lease("clip", 3, "cpu", 60);
  made.done("caption", 1, {1, 100, 7, "gpu"});
  // A marker without a note, since its process was killed, and a part that was given up.
  made.store().create("caption/00002/done.json", "{}");
  made.store().create("caption/00000/failed.json", "{}");
  ListStages look(made.path(), {"clip", "caption", "embed"});
  const std::vector<ListStage> stages = look.look(false);
  REQUIRE(stages.size() == 3);
  CHECK(stages[0].parts == 5);
  CHECK(stages[0].done == 4);
  CHECK(stages[0].working == 1);
  CHECK(stages[0].ready == 0);
  CHECK(stages[0].kinds.at("cpu").seconds == Approx(11));
  CHECK(stages[0].kinds.at("cpu").working == 1);
  CHECK(stages[0].kinds.at("gpu").seconds == 2);
  CHECK(look.beat() == 20);
  CHECK(stages[1].done == 2);
  CHECK(stages[1].ready == 2);  // 0 and 4
  CHECK(stages[2].parts == 5);
  CHECK(stages[2].ready == 2);  // 1 and 2
  // What embeddings come after is what their run.json says, if there is one.
  made.store().create("embed/run.json", R"({"version":1,"parts":5,"shares":"clips","grows":true})");
  CHECK(look.look(false)[2].ready == 4);
  // A note without its marker counts until the markers are looked at.
  made.store().remove("caption/00001/done.json");
  CHECK(look.look(false)[1].done == 2);
  CHECK(look.look(true)[1].ready == 3);
  CHECK_THROWS_WITH(ListStages(made.path() + "/none", {"clip"}), Catch::Contains("vfm-clip list"));
}

TEST_CASE("a stage by names needs all clips, and one with fewer parts those of its own") {
  MadeParts made(4);
  for (const int part : {0, 2, 3})
    made.done("clip", part, {part, 100, 1, ""});
  for (const int part : {0, 2})
    made.done("caption", part, {part, 100, 1, ""});
  made.store().create("embed/run.json", R"({"parts":2,"shares":"clips","after":["caption"]})");
  ListStages look(made.path(), {"clip", "caption", "embed"});
  std::vector<ListStage> stages = look.look(false);
  CHECK(stages[1].ready == 1);  // 3
  CHECK(stages[2].parts == 2);
  CHECK(stages[2].ready == 1);  // Part 0 has the parts 0 and 2.
  made.done("clip", 1, {1, 100, 1, ""});
  CHECK(look.look(false)[2].ready == 1);
  made.done("caption", 1, {1, 100, 1, ""});
  CHECK(look.look(false)[2].ready == 1);
  made.done("caption", 3, {3, 100, 1, ""});
  CHECK(look.look(false)[2].ready == 2);
  made.store().write("embed/run.json", R"({"parts":3,"shares":"names"})");
  CHECK(look.look(false)[2].ready == 3);
  made.store().remove("clip/00003/done.json");
  CHECK(look.look(true)[2].ready == 0);
}

TEST_CASE("notes, folders and leases of parts that a stage does not have are passed over") {
  MadeParts made(2);
  for (const int part : {2, 3, 2'000'000'000})
    write_note(made.store(), "clip", {part, 100, 1, "gpu"});
  for (const char* name : {"clip/00001", "clip/notes/x", "clip/other/done.json"})
    made.store().create(name, "");
  for (const int part : {2, 4'000'000})
    made.lease("clip", part, "gpu", 60);
  made.lease("clip", 0, "cpu", 6);
  ListStages look(made.path(), {"clip"});
  const ListStage stage = look.look(false)[0];
  CHECK(stage.done == 0);
  CHECK(stage.working == 1);
  CHECK(stage.ready == 1);
  CHECK(stage.kinds.at("gpu").working == 0);
  CHECK(stage.kinds.at("cpu").working == 1);
  CHECK(look.beat() == 2);
}

TEST_CASE("a node waits for a stage until a silent process counts as dead, or all is done") {
  MadeParts made(2);
  made.done("clip", 0, {0, 100, 10, ""});
  made.lease("clip", 1, "", 0.5);
  CHECK(await_stage(made.path(), {"clip"}, "") == "clip");
  made.done("clip", 1, {1, 100, 10, ""});
  CHECK_FALSE(await_stage(made.path(), {"clip"}, ""));
  CHECK(await_stage(made.path(), {"clip", "caption"}, "") == "caption");
  // A marker that was removed by hand is missed before the end.
  made.store().remove("clip/00000/done.json");
  CHECK(await_stage(made.path(), {"clip"}, "") == "clip");
}

TEST_CASE("the last parts of a kind are those that ended last") {
  MadeParts made(40);
  for (int part = 0; part < 40; ++part)
    made.done("clip", part, {part, 1000 - part, part < 16 ? 3.0 : 100.0, "gpu"});
  CHECK(ListStages(made.path(), {"clip"}).look(false)[0].kinds.at("gpu").seconds == Approx(3));
}

TEST_CASE("a note tells of a part in its name") {
  const TemporaryFolder folder;
  io::FileStore store(folder.path);
  CHECK(read_notes(store, "embed").empty());
  write_note(store, "embed", {123456, 1764489750, 0.25, ""});
  write_note(store, "embed", {7, 1764489751, 12345.678, "a-100-b"});
  store.create("embed/notes/7-8", "");  // no note
  const std::vector<PartNote> notes = read_notes(store, "embed");
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].part == 7);
  CHECK(notes[0].ended == 1764489751);
  CHECK(notes[0].seconds == 12345.678);
  CHECK(notes[0].node_kind == "a-100-b");
  CHECK(notes[1].part == 123456);
  CHECK(notes[1].node_kind.empty());
  remove_notes(store, "embed", 12345);
  CHECK(read_notes(store, "embed").size() == 2);
  remove_notes(store, "embed", 7);
  REQUIRE(read_notes(store, "embed").size() == 1);
}
