// Answers as JSON, and the part of JSON Schema that they may have to fit.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "support/usage_error.h"

using Catch::Contains;
using vfm::parse_json;
using vfm::text::JsonSchema;
using vfm::text::parse_answer;

namespace {

std::string misfit(const char* schema, const char* value) {
  return JsonSchema(parse_json(schema, "schema"), "'s.json'").misfit(parse_json(value, "value"));
}
bool fits(const char* schema, const char* value) {
  return misfit(schema, value).empty();
}

}  // namespace

TEST_CASE("values have the types that a schema names", "[json_schema]") {
  const char* values[] = {"null", "true", "7", "7.0", "7.5", "\"7\"", "[7]", "{\"a\":7}"};
  const std::pair<const char*, std::string> types[] = {
      {R"({"type":"null"})", "10000000"},    {R"({"type":"boolean"})", "01000000"},
      {R"({"type":"integer"})", "00110000"}, {R"({"type":"number"})", "00111000"},
      {R"({"type":"string"})", "00000100"},  {R"({"type":"array"})", "00000010"},
      {R"({"type":"object"})", "00000001"},  {R"({"type":["null","string"]})", "10000100"},
      {R"({"title":"any"})", "11111111"}};
  for (const auto& [schema, expected] : types) {
    std::string got;
    for (const char* value : values)
      got += fits(schema, value) ? '1' : '0';
    CAPTURE(schema);
    CHECK(got == expected);
  }
}

TEST_CASE("numbers, texts and lists have bounds", "[json_schema]") {
  CHECK(fits(R"({"minimum":2,"maximum":3})", "2"));
  CHECK(fits(R"({"minimum":2,"maximum":3})", "3.0"));
  CHECK_FALSE(fits(R"({"minimum":2})", "1.999"));
  CHECK_FALSE(fits(R"({"maximum":3})", "4"));
  CHECK_FALSE(fits(R"({"exclusiveMinimum":2})", "2"));
  CHECK_FALSE(fits(R"({"exclusiveMaximum":3})", "3"));
  CHECK(fits(R"({"minimum":2})", "\"a text has no minimum\""));
  // Two whole numbers that are one double.
  CHECK_FALSE(fits(R"({"maximum":9007199254740992})", "9007199254740993"));
  CHECK(fits(R"({"maxLength":2})", "\"\u00e9\u6771\""));
  CHECK_FALSE(fits(R"({"maxLength":1})", "\"\u00e9\u6771\""));
  CHECK_FALSE(fits(R"({"minLength":1})", "\"\""));
  CHECK(fits(R"({"minItems":1,"maxItems":2,"items":{"type":"integer"}})", "[1,2]"));
  CHECK_FALSE(fits(R"({"minItems":1})", "[]"));
  CHECK_FALSE(fits(R"({"maxItems":2})", "[1,2,3]"));
  CHECK(misfit(R"({"items":{"type":"integer"}})", "[1,\"two\"]") ==
        "$[1] is \"two\", not of the type \"integer\"");
}

TEST_CASE("members are those that a schema has", "[json_schema]") {
  const char* closed =
      R"({"properties":{"a":{"type":"integer"},"b":{}},"required":["a"],"additionalProperties":false})";
  CHECK(fits(closed, R"({"a":1,"b":[]})"));
  CHECK(misfit(closed, R"({"b":1})") == "$ has no 'a'");
  CHECK(misfit(closed, R"({"a":"x"})") == "$.a is \"x\", not of the type \"integer\"");
  CHECK(misfit(closed, R"({"a":1,"c":2})") == "$.c is none of its properties");
  CHECK(fits(R"({"properties":{"a":{}}})", R"({"c":2})"));
  const char* others = R"({"properties":{"a":{}},"additionalProperties":{"type":"string"}})";
  CHECK(fits(others, R"({"a":1,"c":"x"})"));
  CHECK_FALSE(fits(others, R"({"c":1})"));
  const char* deep = R"({"properties":{"a":{"items":{"required":["x"]}}}})";
  CHECK(misfit(deep, R"({"a":[{"x":1},{}]})") == "$.a[1] has no 'x'");
}

TEST_CASE("an enum's values are equal as JSON has it", "[json_schema]") {
  const char* schema = R"({"enum":[1,"a",null,{"x":[1,2],"y":0}]})";
  for (const char* value : {"1.0", "\"a\"", "null", R"({"y":0,"x":[1,2.0]})"})
    CHECK(fits(schema, value));
  for (const char* value : {"2", "\"A\"", "false", "\"1\"", R"({"x":[2,1],"y":0})",
                            R"({"x":[1,2]})", R"({"x":[1,2],"z":0})"})
    CHECK_FALSE(fits(schema, value));
}

TEST_CASE("what a schema may not have is refused with its place", "[json_schema]") {
  const auto refused = [](const char* schema) {
    return vfm::usage_error([&] { JsonSchema(parse_json(schema, "schema"), "'s.json'"); });
  };
  CHECK_THAT(refused(R"({"properties":{"a":{"pattern":"x"}}})"),
             Contains("'s.json': \"pattern\" at $.a is not supported"));
  for (const char* word : {"$ref", "anyOf", "oneOf", "not", "format", "prefixItems", "const",
                           "patternProperties", "uniqueItems", "multipleOf", "if"})
    CHECK_THAT(refused(fmt::format(R"({{"items":{{"{}":{{}}}}}})", word).c_str()),
               Contains("at $[] is not supported"));
  for (const char* schema :
       {R"("string")", R"(true)", R"({"type":"text"})", R"({"type":[]})", R"({"type":7})",
        R"({"enum":[]})", R"({"enum":"a"})", R"({"minimum":"2"})", R"({"maxItems":-1})",
        R"({"maxLength":1.5})", R"({"items":[{}]})", R"({"items":true})", R"({"properties":[]})",
        R"({"properties":{"a":1}})", R"({"required":"a"})", R"({"required":[1]})",
        R"({"additionalProperties":1})"})
    CHECK_THAT(refused(schema), Contains("'s.json': "));
}

TEST_CASE("an answer is JSON, or has it in its only fenced block", "[json_schema]") {
  const auto a = parse_json(R"({"a":1})", "a");
  for (const char* text :
       {R"({"a":1})", "  {\"a\" : 1}\n", "```json\n{\"a\":1}\n```", "```\n{\"a\":1}```",
        "``` {\"a\":1} ```", "```json {\"a\":1} ```", "```json{\"a\":1}```",
        "Here it is: \"the JSON\" {}\n```json\n{\"a\":1}\n```\nIs that right?"})
    CHECK(parse_answer(text) == a);
  CHECK(parse_answer("```true```") == true);
  CHECK(parse_answer(R"({"a":"```x```"})")["a"] == "```x```");
  for (const char* text : {"", "a red ball", "{\"a\":1", "{\"a\":1} and more", "```json\n{\"a\":1}",
                           "```{}``` or ```{}```", "``` ```", "```json a: 1 ```", "{\"a\":1e999}"})
    CHECK_THROWS_AS(parse_answer(text), vfm::Error);
}
