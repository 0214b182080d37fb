// What the view of a pipe says of made states of its programs.
// SPDX-License-Identifier: Apache-2.0
#include "share/pipe_look.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace vfm;
using namespace vfm::share;

namespace {

/// A program in ten seconds: the slots that it had, and the shares of the time that it waited.
struct Made {
  const char* name;
  double slots, input, output;
  int most = 16;
  double waiting = 0;
};

PipeLook look_of(const std::vector<Made>& programs, int slots) {
  std::vector<StageState> before, after;
  std::int64_t pid = 100;
  for (const Made& made : programs) {
    StageState state{.name = made.name, .unit = "items", .pid = ++pid, .alive = true};
    state.most = made.most;
    state.done = 7, state.busy_seconds = 3, state.input_seconds = 1;
    before.push_back(state);
    state.done += 25;
    state.busy_seconds += 10 * made.slots;
    state.input_seconds += 10 * made.input;
    state.output_seconds += 10 * made.output;
    state.slot_seconds += 10 * made.waiting;
    after.push_back(state);
  }
  return look_between(before, after, 10, slots);
}

std::string named(const std::vector<Made>& programs, int slots) {
  const PipeLook look = look_of(programs, slots);
  const Bottleneck found = find_bottleneck(look);
  return found.stage < 0 ? "" : look.stages[static_cast<std::size_t>(found.stage)].state.name;
}

}  // namespace

TEST_CASE("a look has rates and means of the time since the look before") {
  const PipeLook look = look_of({{"a", 2.5, .25, .5, 16, 3}}, 16);
  REQUIRE(look.stages.size() == 1);
  const StageLook& stage = look.stages[0];
  CHECK(stage.rate == Approx(2.5));
  CHECK(stage.slots == Approx(2.5));
  CHECK(stage.input == Approx(.25));
  CHECK(stage.output == Approx(.5));
  CHECK(stage.waiting == Approx(3));
  // A program that begins to count in another unit, or one that is new.
  StageState old{.name = "a", .unit = "videos", .pid = 1, .done = 100};
  StageState now{.name = "a", .unit = "clips", .pid = 1, .done = 4};
  CHECK(look_between({old}, {now}, 2, 1).stages[0].rate == Approx(2));
  CHECK(look_between({}, {now}, 2, 1).stages[0].rate == Approx(2));
  CHECK(look_between({old}, {now}, 0, 1).stages.empty());
}

TEST_CASE("the bottleneck is who has most slots, where all are in use") {
  CHECK(named({{"a", 3, 0, 0}, {"b", 11, .6, 0}, {"c", 2, .9, 0}}, 16) == "b");
  CHECK(named({{"a", 9, 0, 0}, {"b", 5, .6, 0}, {"c", 2, .9, 0}}, 16) == "a");
  // make's, of which there are none left.
  CHECK(named({{"a", 1, 0, 0, 16, 4}, {"b", 4, .5, 0, 16, 9}}, PipeBoard::kNone) == "b");
}

TEST_CASE("where slots are free, the bottleneck is who does not wait for the others") {
  // -j1 in the middle.
  CHECK(named({{"a", 1, 0, .9}, {"b", 1, 0, 0, 1}, {"c", .5, .9, 0}}, 16) == "b");
  // The second writes slowly what it made: the third has nothing to read.
  CHECK(named({{"a", 1, 0, .9}, {"b", 1, .1, .8}, {"c", .5, .9, 0}}, 16) == "b");
  // The third's reader, which is none of these, takes nothing.
  CHECK(named({{"a", 1, 0, .9}, {"b", 1, .1, .8}, {"c", .5, .1, .3}}, 16) == "c");
  const Bottleneck slow = find_bottleneck(look_of({{"a", 1, .9, 0}, {"b", 1, .9, 0}}, 16));
  CHECK(slow.stage == -1);
  CHECK(slow.why == "the input comes too slowly");
  CHECK(find_bottleneck({}).why.empty());
}

TEST_CASE("the block has a line a program and one for the bottleneck, as wide as the terminal") {
  PipeLook look = look_of({{"vfm-clip", 3, 0, 0}, {"bad\x1b[2J", 13, .1, 0}}, 16);
  look.stages[0].state.waiting = 2;
  look.stages[0].state.input_bytes = 2048;
  auto lines = pipe_lines(look, 0);
  REQUIRE(lines.size() == 3);
  CHECK_THAT(lines[0], Catch::Contains("vfm-clip") && Catch::Contains("32 items") &&
                           Catch::Contains("2.5/s") && Catch::Contains("3.0 slots") &&
                           Catch::Contains("2 waiting") && Catch::Contains("2.0 KiB in the pipe"));
  CHECK(lines[1].find('\x1b') == std::string::npos);
  CHECK_THAT(lines[2],
             Catch::Contains("bottleneck: bad") && Catch::Contains("13.0 of the 16 slots"));
  for (const std::string& line : pipe_lines(look, 30))
    CHECK(line.size() <= 30);
  PipeLook whole = look;
  whole.held_up = "vfm-clip 84 % of the time";
  CHECK(pipe_lines(whole, 0)[2] == "bottleneck: vfm-clip 84 % of the time");
  // One that is stopped holds the others up, whoever has most slots.
  look.stages[0].state.stopped = true;
  look.stages[0].state.pid = 4711;
  CHECK_THAT(pipe_lines(look, 0)[0], Catch::Contains("2.0 KiB in the pipe, stopped"));
  CHECK(pipe_lines(look, 0)[2] == "bottleneck: vfm-clip (process 4711) is stopped");
  look.stages[0].state.alive = look.stages[0].state.stopped = false;
  CHECK_THAT(pipe_lines(look, 0)[0], Catch::Contains("ended"));
}

TEST_CASE("GPUs are shown with each program, and who is short of them is the bottleneck") {
  PipeLook look = look_of({{"a", 1, 0, .9}, {"b", 8, 0, 0}, {"c", 7, .5, 0}}, 16);
  CHECK(find_bottleneck(look).stage == 1);
  GpuStates before, after;
  before.stages.resize(3);
  before.stages[0] = {.stage = "a", .kind = "decode", .pid = 101, .alive = true};
  before.stages[1] = {.stage = "b", .kind = "compute", .pid = 102, .alive = true};
  before.stages[2] = {.stage = "c", .kind = "compute", .pid = 103, .alive = true};
  before.stages[1].busy_seconds = 5;
  after = before;
  after.gpus.resize(9);
  after.stages[0].busy_seconds += 14;
  after.stages[1].busy_seconds += 19;
  after.stages[1].loaded = {"x", "y"};
  after.stages[1].waiting = 3;
  after.stages[1].short_seconds = 9;
  after.stages[2].busy_seconds += 58;
  after.stages[2].loaded = {"1", "2", "3", "4", "5", "6"};
  after.stages[2].loading = {"7"};
  after.stages[2].left_out = {"bad\x1b[2J"};
  add_gpus(look, before, after);
  CHECK(find_bottleneck(look).stage == 1);
  CHECK(find_bottleneck(look).why == "has 1.9 of the 9 GPUs, and items wait for more");
  after.stages[2].short_seconds = 9.5;  // that, too, and it has more of them
  add_gpus(look, before, after);
  CHECK(find_bottleneck(look).stage == 2);
  after.stages[2].busy_seconds = 20;  // its GPUs are not busy: loads take the time
  after.stages[1].short_seconds = 1;
  add_gpus(look, before, after);
  CHECK(find_bottleneck(look).why == "has 8.0 of the 16 slots");
  after.gpus.resize(4);  // but all GPUs are, together
  add_gpus(look, before, after);
  CHECK(find_bottleneck(look).why == "has 2.0 of the 4 GPUs, and items wait for more");
  const auto lines = pipe_lines(look, 0);
  CHECK_THAT(lines[0], Catch::Contains("1.4 decode sessions"));
  CHECK_THAT(lines[1], Catch::Contains("1.9 of 2 GPUs, 3 waiting"));
  CHECK_THAT(lines[2], Catch::Contains("2.0 of 6 GPUs, 1 changing, GPU 'bad"));
  look.stages[1].gpus.at(0).state.lacks_memory = true;
  CHECK_THAT(pipe_lines(look, 0)[1], Catch::Contains("3 waiting for memory"));
  CHECK(lines[2].find('\x1b') == std::string::npos);
  // For a page.
  after.gpus = {{"x", 2048, 1024}, {"7", 2048, 0}};
  const auto rows = gpu_rows(after);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == std::vector<std::string>{"x", "2.0 KiB", "1.0 KiB", "b", ""});
  CHECK(rows[1][3] == "c (changing)");
  CHECK(gpu_stage_row("b (2)", after.stages[1], 10)[3] == "2.40");
  CHECK(gpu_columns().size() == rows[0].size());
  CHECK(gpu_stage_columns().size() == gpu_stage_row("b", after.stages[1], 10).size());
}
