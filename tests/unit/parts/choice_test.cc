// What --part means, and where `env` looks.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <map>

#include "base/error.h"
#include "parts/part_choice.h"

using namespace vfm;
using namespace vfm::parts;
using Variables = std::map<std::string, std::string>;

namespace {

PartChoice choice_of(const std::string& text, const Variables& variables = {}) {
  return parse_part(text, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
}

}  // namespace

TEST_CASE("a part is named by its number and the number of parts") {
  const PartChoice choice = choice_of("3/16");
  CHECK(choice.kind == PartChoice::Kind::fixed);
  CHECK(choice.part == 3);
  CHECK(choice.parts == 16);
  CHECK(choice_of("0/1").part == 0);
  CHECK(choice_of("9999999/10000000").part == 9999999);
  CHECK(PartChoice{}.whole());
  CHECK_FALSE(choice.whole());
}

TEST_CASE("auto names no part, and may say the number of parts") {
  CHECK(choice_of("auto").kind == PartChoice::Kind::automatic);
  CHECK_FALSE(choice_of("auto").parts);
  CHECK(choice_of("auto/64").parts == 64);
  CHECK_FALSE(choice_of("auto/64").part);
}

TEST_CASE("next names no part, and the kind of node comes from its own variable") {
  CHECK(choice_of("next").kind == PartChoice::Kind::next);
  CHECK_FALSE(choice_of("next").part);
  CHECK(choice_of("next/64").parts == 64);
  CHECK(choice_of("next").node_kind.empty());
  CHECK(choice_of("auto", {{"VFM_NODE_KIND", "a100-80.x_y+2"}}).node_kind == "a100-80.x_y+2");
  CHECK(choice_of("auto", {{"VFM_NODE_KIND", std::string(64, 'a')}}).node_kind.size() == 64);
  for (const std::string& kind : {std::string("a/b"), std::string("a b"), std::string(65, 'a')})
    CHECK_THROWS_WITH(choice_of("3/16", {{"VFM_NODE_KIND", kind}}),
                      Catch::Contains("VFM_NODE_KIND is '" + kind));
}

TEST_CASE("env takes the number of the part from the first variable that is set") {
  Variables all{{"VFM_PART", "1"},
                {"SLURM_ARRAY_TASK_ID", "2"},
                {"SLURM_ARRAY_TASK_COUNT", "99"},
                {"JOB_COMPLETION_INDEX", "3"},
                {"HQ_TASK_ID", "4"}};
  CHECK(choice_of("env", all).part == 1);
  CHECK_FALSE(choice_of("env", all).parts);
  CHECK(choice_of("env/8", all).parts == 8);
  all.erase("VFM_PART");
  CHECK(choice_of("env", all).part == 2);
  all["VFM_PART_OFFSET"] = "1000";
  CHECK(choice_of("env", all).part == 1002);
  all.erase("SLURM_ARRAY_TASK_ID");
  CHECK(choice_of("env", all).part == 3);
  all.erase("JOB_COMPLETION_INDEX");
  CHECK(choice_of("env", all).part == 4);
  all.erase("HQ_TASK_ID");
  CHECK_THROWS_WITH(choice_of("env", all), Catch::Contains("SLURM_ARRAY_TASK_ID"));
}

TEST_CASE("a wrong --part is a usage error that says what is right") {
  for (const char* text : {"", "3", "3/", "/3", "a/3", "-1/3", "3/0", "3/3x", "3/16/2", "envy",
                           "auto/", "automatic", "1/10000001", "99999999999/3", " 1/3"})
    try {
      choice_of(text);
      FAIL(text);
    } catch (const Error& error) {
      CAPTURE(text);
      CHECK(error.kind() == ErrorKind::usage);
      CHECK_THAT(error.what(), Catch::Contains("--part"));
    }
  CHECK_THROWS_WITH(choice_of("16/16"), Catch::Contains("15/16"));
  CHECK_THROWS_WITH(choice_of("env/2", {{"VFM_PART", "2"}}), Catch::Contains("1/2"));
  CHECK_THROWS_WITH(choice_of("env", {{"VFM_PART", "one"}}), Catch::Contains("VFM_PART is 'one'"));
  CHECK_THROWS_AS(choice_of("env", {{"SLURM_ARRAY_TASK_ID", "1"}, {"VFM_PART_OFFSET", "-4"}}),
                  Error);
  CHECK(choice_of("env", {{"VFM_PART", "9999999"}}).part == 9999999);
  CHECK_THROWS_WITH(choice_of("env", {{"VFM_PART", "10000000"}}), Catch::Contains("VFM_PART"));
}
