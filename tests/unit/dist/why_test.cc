// SPDX-License-Identifier: Apache-2.0
#include "dist/why.h"

#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <vector>

#include "base/json.h"
#include "dist/flight_recorder.h"
#include "dist/pulse.h"

using namespace vfm;
using namespace vfm::dist;
using Catch::Matchers::Contains;

namespace {

/// Records of ranks on axes tp (0 1 | 2 3) and dp (0 2 | 1 3).
class MadeRecords {
 public:
  explicit MadeRecords(int size = 4) {
    for (int rank = 0; rank < size; ++rank) {
      FlightRecorder& one = recorders_.emplace_back();
      one.name(rank, rank < 2 ? "a" : "b");
      one.section("step");
      one.add_group("tp", rank < 2 ? std::vector{0, 1} : std::vector{2, 3});
      one.add_group("dp", rank % 2 == 0 ? std::vector{0, 2} : std::vector{1, 3});
    }
  }
  FlightRecorder& at(int rank) { return recorders_[static_cast<std::size_t>(rank)]; }
  /// All ranks have done collectives 1 to `number` of both groups.
  void done(int number) {
    for (FlightRecorder& one : recorders_)
      for (int group = 0; group < 2; ++group)
        for (int i = 1; i <= number; ++i)
          one.end(one.begin(group, i, "all_reduce of F32 elements [8]"));
  }
  std::vector<RecordFile> files() const {
    std::vector<RecordFile> files;
    for (std::size_t i = 0; i < recorders_.size(); ++i)
      files.push_back({"rank-" + std::to_string(i), recorders_[i].record()});
    return files;
  }
  Json why(const std::string& end = "", int without = -1) const {
    std::vector<RecordFile> some = files();
    if (without >= 0) some.erase(some.begin() + without);
    return why_of_records(some, {end.empty() ? "" : "run.json", end});
  }

 private:
  std::deque<FlightRecorder> recorders_;
};

std::string words_of(const Json& why) {
  std::string text;
  for (const Json& line : why["words"])
    text += line.get<std::string>() + "\n";
  return text;
}

constexpr const char* kGather = "all_gather of F32 elements [4 4]";

}  // namespace

TEST_CASE("why: a rank that did not come, and waits for nobody") {
  MadeRecords made;
  made.done(6);
  made.at(2).begin(0, 7, kGather);  // rank 3 is missing
  made.at(0).end(made.at(0).begin(0, 7, kGather));
  made.at(1).end(made.at(1).begin(0, 7, kGather));
  made.at(0).begin(1, 7, "all_reduce of F32 elements [8]");  // waits for 2
  made.at(1).begin(1, 7, "all_reduce of F32 elements [8]");  // waits for 3
  const Json why = made.why();
  const std::string words = words_of(why);
  INFO(words);
  CHECK_THAT(words,
             Contains("rank 3 did not come to all_gather of F32 elements [4 4] (7 of 'tp'), "
                      "where rank 2 waits\n") &&
                 Contains("ranks 0-1 wait in all_reduce of F32 elements [8] (7 of 'dp')\n") &&
                 Contains("rank 3 waits for no rank: it is in 'step' after all_reduce of F32 "
                          "elements [8] (6 of 'dp')"));
  // Rank 2 is not to blame.
  CHECK(words.find("rank 2 did not come") == std::string::npos);
  CHECK(why["collectives"][0]["missing"] == Json({3}));
  CHECK(why["collectives"][0]["wait"] == Json({2}));
  CHECK(why["collectives"][0]["axis"] == "tp");
}

TEST_CASE("why: a collective that a rank left out, so that all wait for each other") {
  MadeRecords made;
  made.done(2);
  made.at(2).begin(0, 3, kGather);  // rank 3 left it out, and went on
  for (const int rank : {0, 1, 3})
    made.at(rank).begin(1, 3, "barrier");
  const std::string words = words_of(made.why());
  INFO(words);
  CHECK_THAT(words,
             Contains("rank 3 did not come to all_gather of F32 elements [4 4] (3 of 'tp'), where "
                      "rank 2 waits") &&
                 Contains("rank 2 did not come to barrier (3 of 'dp'), where rank 0 waits") &&
                 Contains("these ranks wait for each other: one has left out a collective") &&
                 Contains("ranks 0-1 and 3 wait in barrier (3 of 'dp')"));
}

TEST_CASE("why: a collective with another size or operation") {
  MadeRecords made;
  made.done(4);
  made.at(2).begin(0, 5, "all_reduce of F32 elements [1000]");
  made.at(3).begin(0, 5, "all_reduce of F32 elements [2000]");
  const Json why = made.why();
  const std::string words = words_of(why);
  INFO(words);
  CHECK_THAT(words, Contains("collective 5 of 'tp' is not the same on all ranks: rank 2 with "
                             "all_reduce of F32 elements [1000], rank 3 with all_reduce of F32 "
                             "elements [2000]"));
  CHECK(why["collectives"][0]["calls"].size() == 2);
  CHECK(words.find("did not come") == std::string::npos);
}

TEST_CASE("why: a lost rank, an error, and what has no record") {
  MadeRecords made;
  made.done(3);
  made.at(2).begin(0, 4, kGather);
  SECTION("lost") {
    PulseEnd end{.kind = "silent", .rank = 3, .seconds = 8, .message = "rank 3 is silent"};
    Json run = parse_json(end.to_text(), "end");
    run["time"] = 1.7e9;
    for (int rank = 0; rank < 4; ++rank)
      run["all"].push_back({{"rank", rank}, {"host", "a"}, {"pid", 1}});
    const Json why = made.why(dump_json(run), 3);
    const std::string words = words_of(why);
    INFO(words);
    CHECK_THAT(words, Contains("the run ended at 2023-11-14 22:13:20 UTC: rank 3 is silent\n") &&
                          Contains("rank 3 did not come to all_gather") &&
                          Contains("no record of rank 3: "));
    CHECK(why["lost"] == Json({3}));
    CHECK(why["without_record"] == Json({3}));
    CHECK(why["reason"] == "silent");
  }
  SECTION("errors") {
    made.at(3).failed("cannot write 'x': No space left on device");
    made.at(1).failed("another");
    const Json why = made.why(
        PulseEnd{.kind = "error", .rank = 3, .message = "rank 3 on host b failed: cannot write"}
            .to_text());
    const std::string words = words_of(why);
    INFO(words);
    CHECK_THAT(words, Contains(": rank 3 on host b failed: cannot write\n") &&
                          Contains("rank 1 on host a failed, too: another\n"));
    CHECK(why["errors"].size() == 2);
  }
}

TEST_CASE("why: a message between two ranks that one did not send") {
  MadeRecords made;
  made.done(1);
  made.at(0).end(made.at(0).begin_message(1, 2, -1, "send of F32"));
  made.at(2).end(made.at(2).begin_message(1, -1, 0, "receive of F32"));
  made.at(2).begin_message(1, -1, 0, "receive of F32");
  const std::string words = words_of(made.why());
  INFO(words);
  CHECK_THAT(words,
             Contains("rank 0 did not come to receive of F32 of 'dp' (number 2 from rank 0), "
                      "where rank 2 waits"));
}

TEST_CASE("why: what a rank has begun beside its computing is not what it waits in") {
  MadeRecords made;
  made.done(6);
  made.at(2).begin(0, 7, kGather);  // rank 3 is missing
  for (const int rank : {0, 1, 2})
    made.at(rank).waits(true);
  SECTION("a sum of gradients to which the others come later") {
    made.at(3).begin(1, 7, "reduce_scatter of F32");  // rank 1 is missing
    made.at(3).waits(false);
    made.at(1).begin(0, 8, "barrier");  // waits for 0, which waits for 2
    made.at(0).begin(1, 7, "reduce_scatter of F32");
  }
  SECTION("a sum that all GPUs have queued") {
    for (int rank = 0; rank < 4; ++rank) {
      made.at(rank).begin(1, 7, "reduce_scatter of F32", true);
      made.at(rank).waits(false);
    }
    made.at(2).waits(true);
  }
  const std::string words = words_of(made.why());
  INFO(words);
  CHECK_THAT(words, Contains("rank 3 did not come to all_gather of F32 elements [4 4] (7 of 'tp'), "
                             "where rank 2 waits\n") &&
                        Contains("rank 3 waits for no rank: it is in 'step' after "
                                 "reduce_scatter of F32 (7 of 'dp')\n"));
  CHECK(words.find("wait for each other") == std::string::npos);
  CHECK(words.find("rank 1 did not come") == std::string::npos);
}

TEST_CASE("why: files that are no records are left out, and the others tell") {
  MadeRecords made;
  made.done(3);
  made.at(2).begin(0, 4, kGather);
  std::vector<RecordFile> files = made.files();
  files[0].text.resize(100);
  files[1] = {"rank-1", "", "cannot read 'rank-1': Input/output error"};
  const Json why = why_of_records(files, {"run.json", R"({"kind":"stuck","rank":-1)"});
  const std::string words = words_of(why);
  INFO(words);
  CHECK_THAT(words, Contains("rank 3 did not come to all_gather") &&
                        Contains("no record of ranks 0-1: ") &&
                        Contains("'rank-0' is left out: ") &&
                        Contains("'rank-1' is left out: cannot read 'rank-1'") &&
                        Contains("'run.json' is left out: "));
  CHECK(why["left_out"].size() == 3);
  const auto alone = [](const std::string& text) { return why_of_records({{"rank-0", text}}, {}); };
  CHECK_THROWS_WITH(alone("{}"), Contains("'rank-0' is no record: ") && Contains("no 'rank'"));
  CHECK_THROWS_WITH(alone(R"({"rank":0,"host":"","section":"","error":"","time":1,"groups":[]})"),
                    Contains("is not what vfm-train writes"));
  CHECK_THROWS_WITH(alone(R"({"rank":0,"host":"","section":"","error":"","time":1,)"
                          R"("groups":[{"group":0,"axis":"tp","ranks":[],"begun":0,"ended":0}]})"),
                    Contains("a group without ranks"));
  CHECK_THROWS_WITH(why_of_records({}, {"run.json", R"({"kind":"stuck","rank":0,"message":"",)"
                                                    R"("ranks":["a"]})"}),
                    Contains("'run.json' is no record: "));
}

TEST_CASE("why: a record that a rank of an earlier start has left is not this run's") {
  MadeRecords made, earlier;
  made.done(3);
  for (int rank = 0; rank < 4; ++rank) {
    earlier.at(rank).start("before");
    made.at(rank).start("now");
  }
  made.at(2).begin(0, 4, kGather);
  earlier.at(3).begin(0, 4, kGather);
  std::vector<RecordFile> files = made.files();
  const std::string late = earlier.files()[3].text;  // written after the others
  files[3].text = late;
  const Json why = why_of_records(
      files, {"run.json", R"({"kind":"ended","rank":3,"message":"","start":"now"})"});
  INFO(words_of(why));
  CHECK_THAT(words_of(why), Contains("'rank-3' is left out: it is of another start of the run") &&
                                Contains("rank 3 did not come to all_gather"));
  CHECK(why["without_record"] == Json({3}));
  // Without run.json the newest record says which start it is.
  CHECK(why_of_records(files, {})["without_record"] == Json({1, 2}));
}
