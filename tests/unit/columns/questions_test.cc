// Further questions: their words, what decides their answers, and what is an answer.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/questions.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

FurtherQuestion schema_question(const char* schema) {
  return {"facts", "Which?",
          std::make_shared<const text::JsonSchema>(parse_json(schema, "it"), "it")};
}

}  // namespace

TEST_CASE("questions come in their order, with texts of files and with their schemas") {
  const TemporaryFolder folder;
  folder.write("prompt.txt", "One line.\nTwo.\n");
  folder.write("schema.json", R"({"type":"object"})");
  const std::vector<FurtherQuestion> questions =
      parse_questions({"b=In ten words? a=b", "a_9=@" + folder.path + "/prompt.txt",
                       std::string(40, 'x') + "=@@me"},
                      {"a_9=" + folder.path + "/schema.json"});
  REQUIRE(questions.size() == 3);
  CHECK(questions[0].name == "b");
  CHECK(questions[0].prompt == "In ten words? a=b");
  CHECK_FALSE(questions[0].schema);
  CHECK(questions[1].field() == "caption_a_9");
  CHECK(questions[1].prompt == "One line.\nTwo.");
  REQUIRE(questions[1].schema);
  CHECK(questions[1].schema->json() == Json{{"type", "object"}});
  CHECK(questions[2].prompt == "@me");
  CHECK_FALSE(questions[2].schema);
  CHECK(parse_questions({}, {}).empty());
}

TEST_CASE("questions and schemas that cannot be are refused before a file is opened") {
  const auto refused = [](const std::vector<std::string>& prompts,
                          const std::vector<std::string>& schemas = {}) {
    const std::string said = usage_error([&] { check_questions(prompts, schemas); });
    CHECK(usage_error([&] { parse_questions(prompts, schemas); }) == said);
    return said;
  };
  for (const char* form : {"short", "short=", "="})
    CHECK(refused({form}) == "--also '" + std::string(form) +
                                 "' is not NAME=TEXT, such as short='Say it in ten words.'");
  for (const std::string& name : {std::string("Short"), std::string("a b"), std::string(),
                                  std::string("a-b"), std::string(41, 'x')})
    CHECK(refused({name + "=x"}) ==
          "--also '" + name + "=x': a name has 1 to 40 of a to z, 0 to 9 and _");
  CHECK(refused({"a=x", "source=x"}) ==
        "--also source: \"caption_source\" names another field; take another name");
  CHECK_THAT(refused({"windows=x"}), Catch::Contains("names another field"));
  CHECK_THAT(refused({"also_cut=x"}), Catch::Contains("names another field"));
  CHECK(refused({"a=x", "b=y", "a=z"}) == "--also a is given twice");
  CHECK(refused({"a=x"}, {"b=none.json"}) ==
        "--schema b: no question has that name; ask it with --also b=TEXT");
  CHECK(refused({"a=x", "b=y"}, {"b=none.json", "b=other.json"}) == "--schema b is given twice");
  CHECK(refused({"a=x"}, {"a"}) == "--schema 'a' is not NAME=FILE");
  check_questions({"a=@none.txt", "b=x"}, {"b=none.json"});
  CHECK_THAT(usage_error([] { parse_questions({"a=x"}, {"a=none.json"}); }),
             Catch::Contains("none.json"));
  const TemporaryFolder folder;
  folder.write("bad.json", "{");
  CHECK_THAT(usage_error([&] { parse_questions({"a=x"}, {"a=" + folder.path + "/bad.json"}); }),
             Catch::Contains("bad.json"));
}

TEST_CASE("answers are decided by prompts and schemas, and by tries where something is drawn") {
  Questions questions;
  questions.list = {{"short", "In ten words?"}, schema_question(R"({"type":"object"})")};
  const std::string hash = hash_hex(R"({"type":"object"})");
  CHECK(questions.to_json(0) == Json{{"short", {{"prompt", "In ten words?"}}},
                                     {"facts", {{"prompt", "Which?"}, {"schema", hash}}}});
  CHECK(questions.to_json(0.5)["facts"] ==
        Json{{"prompt", "Which?"}, {"schema", hash}, {"tries", 3}});
  CHECK(questions.to_json(0.5)["short"] == Json{{"prompt", "In ten words?"}});
  questions.tries = 1;
  CHECK_FALSE(questions.to_json(0.5)["facts"].contains("tries"));
  questions.tries = 2;
  CHECK(questions.to_json(0.5)["facts"]["tries"] == 2);
  CHECK(questions.tries_of(questions.list[0], 1) == 1);
  CHECK(questions.tries_of(questions.list[1], 1) == 2);
  CHECK(questions.tries_of(questions.list[1], 0) == 1);
}

TEST_CASE("an answer is a line of text, or by a schema JSON that fits") {
  const FurtherQuestion text{"short", "In ten words?"};
  CHECK(value_of_answer(text, "a fox", false).value == Json("a fox"));
  CHECK(value_of_answer(text, "", true).value == Json(""));
  CHECK(value_of_answer(text, "", true).fault.empty());
  CHECK(value_of_answer(text, "", false).fault == "it is empty");
  CHECK(value_of_answer(text, "", false).value->is_null());
  const FurtherQuestion facts = schema_question(
      R"({"type":"object","properties":{"n":{"type":"integer","minimum":2}},"required":["n"]})");
  const AnswerValue good = value_of_answer(facts, "It is ```json {\"n\": 2}```", false);
  CHECK(good.value == Json{{"n", 2}});
  CHECK(good.fault.empty());
  for (const char* wrong : {"{\"n\": 1}", "{}", "a fox", "", "[2]"}) {
    INFO(wrong);
    const AnswerValue bad = value_of_answer(facts, wrong, true);
    CHECK_FALSE(bad.fault.empty());
    CHECK(bad.value->is_null());
  }
  CHECK_THAT(value_of_answer(facts, "{\"n\": 1}", false).fault, Catch::StartsWith("$.n"));
  CHECK(question_fault(text, "why", 1) == "no answer 'short': why");
  CHECK(question_fault(text, "why", 2) == "no answer 'short', asked 2 times: why");
}
