// SPDX-License-Identifier: Apache-2.0
#include "dist/flight_recorder.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "base/json.h"
#include "dist/threads.h"
#include "dist/world.h"

using namespace vfm;
using namespace vfm::dist;

namespace {

Json recorded(const FlightRecorder& recorder) {
  return parse_json(recorder.record(), "the record");
}

}  // namespace

TEST_CASE("flight recorder: the last thousand, with what is not ended") {
  FlightRecorder recorder;
  recorder.name(3, "b");
  recorder.section("step");
  CHECK(recorder.add_group("tp", {2, 3}) == 0);
  CHECK(recorder.add_group("dp", {1, 3}) == 1);
  const auto first = recorder.begin(0, 1, "all_gather of F32 elements [4 4]");
  for (int i = 1; i <= 1500; ++i)
    recorder.end(recorder.begin(1, i, "barrier"));
  recorder.end(first);  // which is no longer kept
  recorder.begin(0, 2, std::string(5000, 'a'));
  recorder.begin(1, 1501, std::string(4999, 'a') + "b");
  const Json record = recorded(recorder);
  CHECK(record["rank"] == 3);
  CHECK(record["host"] == "b");
  CHECK(record["section"] == "step");
  const Json& all = record["collectives"];
  REQUIRE(all.size() == FlightRecorder::kKept);
  CHECK(all[0]["number"] == 503);
  CHECK(all[997]["number"] == 1500);
  CHECK(all[997]["ended"].get<double>() >= all[997]["begun"].get<double>());
  CHECK_FALSE(all[998].contains("ended"));
  CHECK(record["groups"][0] ==
        Json({{"group", 0}, {"axis", "tp"}, {"ranks", {2, 3}}, {"begun", 2}, {"ended", 1}}));
  CHECK(record["groups"][1]["ended"] == 1500);
  // Long texts are cut, and still not equal.
  CHECK(all[998]["what"].get<std::string>().size() < 300);
  CHECK(all[998]["what"].get<std::string>().starts_with("aaa"));
  CHECK(all[998]["what"] != all[999]["what"]);
  const Json beat = parse_json(recorder.beat(), "the beat");
  CHECK(beat["section"] == "step");
  CHECK(beat["groups"][0]["begun"] == 2);
  CHECK(beat["groups"][0]["ended"] == 1);
  CHECK(beat["groups"][1]["first"] == 1);
  CHECK(recorder.beat().size() < 500);
  for (int i = 2; i < 2000; ++i)
    recorder.begin(recorder.add_group(std::string(50, 'a'), {1, 3}), 1, std::string(200, '\x01'));
  const std::string longest = recorder.beat();
  CHECK(longest.size() <= FlightRecorder::kMostBeat);
  CHECK(parse_json(longest, "the longest beat")["groups"].size() > 50);
}

TEST_CASE("flight recorder: messages are counted by the rank they go to and come from") {
  FlightRecorder recorder;
  recorder.add_group("pp", {0, 4, 8});
  recorder.end(recorder.begin_message(0, 4, -1, "send of F32"));
  recorder.end(recorder.begin_message(0, 8, 4, "exchange of F32"));
  recorder.begin_message(0, 4, -1, "send of F32");
  const Json all = recorded(recorder)["collectives"];
  CHECK(all[1]["to"] == 8);
  CHECK(all[1]["sent"] == 1);
  CHECK(all[1]["received"] == 1);
  CHECK(all[2]["sent"] == 2);
  CHECK_FALSE(all[2].contains("from"));
  CHECK_FALSE(all[2].contains("number"));
  // So that others know where along a pipeline it was last seen.
  const Json beat = parse_json(recorder.beat(), "the beat")["groups"][0];
  CHECK(beat["messages"] == 3);
  CHECK(beat["open"] == 1);
  CHECK(beat["last"] == "send of F32");
  CHECK(beat["begun"] == 0);
}

TEST_CASE("flight recorder: which start it is of, and whether the rank waits or the GPU does") {
  FlightRecorder recorder;
  recorder.add_group("tp", {0, 1});
  recorder.begin(0, 1, "barrier");
  recorder.begin(0, 2, "all_reduce of F32", true);
  CHECK_FALSE(recorded(recorder).contains("waits"));
  recorder.start("5d0c");
  for (const bool waits : {true, false}) {
    recorder.waits(waits);
    CHECK(recorded(recorder)["waits"] == waits);
  }
  const Json record = recorded(recorder);
  CHECK(record["start"] == "5d0c");
  CHECK_FALSE(record["collectives"][0].contains("gpu"));
  CHECK(record["collectives"][1]["gpu"] == true);
}

TEST_CASE("flight recorder: groups of a world record what they do, beside a thread that reads") {
  thread_worlds(2, [](World& world) {
    const auto group = world.group("tp", {0, 1});
    std::atomic<bool> done{false};
    std::jthread reader([&] {
      while (!done)
        (void)world.recorder().beat();
    });
    world.section("step", 0);
    Tensor values = Tensor::zeros({6});
    for (int i = 0; i < 200; ++i)
      group->all_reduce(values).wait();
    if (world.rank() == 0)
      group->send(1, values).wait();
    else
      group->receive(0, values).wait();
    const Json all = recorded(world.recorder())["collectives"];
    done = true;
    REQUIRE(all.size() >= 201);
    const Json &sum = all[all.size() - 2], &message = all.back();
    CHECK(sum["number"] == 200);
    CHECK(sum["what"] == "all_reduce of F32 elements [6]");
    CHECK(sum.contains("ended"));
    CHECK(message[world.rank() == 0 ? "to" : "from"] == 1 - world.rank());
    CHECK(message[world.rank() == 0 ? "sent" : "received"] == 1);
    CHECK(message.contains("ended"));
  });
}
