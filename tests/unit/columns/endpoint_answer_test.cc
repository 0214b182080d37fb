// What servers answer, in whatever form.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/endpoint_answer.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

/// An answer with this message; its other fields are those of `more`.
std::string answer_body(const Json& message, const Json& more = Json::object(),
                        const Json& usage = nullptr) {
  Json choice = {{"message", message}};
  choice.update(more);
  Json body = {{"choices", Json::array({choice, {{"message", {{"content", "another"}}}}})}};
  if (!usage.is_null()) body["usage"] = usage;
  return dump_json(body);
}

EndpointAnswer answer_of(const Json& message, const Json& more = Json::object(),
                         const Json& usage = nullptr) {
  return read_answer(answer_body(message, more, usage), "");
}

std::string error_of(const std::string& body) {
  try {
    read_answer(body, "");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("an answer is the first choice's text on one line, with the server's counts") {
  const EndpointAnswer plain =
      answer_of({{"content", " a fox\n runs "}}, {{"finish_reason", "stop"}},
                {{"prompt_tokens", 100}, {"completion_tokens", 10}});
  CHECK(plain.text == "a fox runs");
  CHECK(plain.prompt_tokens == 100);
  CHECK(plain.completion_tokens == 10);
  CHECK_FALSE(plain.cut);
  CHECK(plain.why_empty.empty());
  const Json parts = {{{"type", "text"}, {"text", "in "}},
                      {{"text", "parts"}},
                      {{"text", 7}},
                      "no part",
                      {{"type", "image"}}};
  const EndpointAnswer joined = answer_of({{"content", parts}}, {{"finish_reason", "length"}});
  CHECK(joined.text == "in parts");
  CHECK(joined.cut);
  CHECK(joined.why_empty.empty());
  CHECK(answer_of({{"content", "<think>\nan owl?</think>\n a fox"}}).text == "a fox");
  CHECK(answer_of({{"content", "an owl?</think> a fox"}}).text == "a fox");
  // Counts that are none are unknown, and none overflows.
  for (const Json& wrong : {Json(-1), Json(1.5), Json("7"), Json()})
    CHECK(answer_of({{"content", "x"}}, Json::object(), {{"prompt_tokens", wrong}}).prompt_tokens ==
          0);
  const EndpointAnswer wild =
      answer_of({{"content", "x"}}, Json::object(), {{"completion_tokens", ~std::uint64_t{0}}});
  CHECK(wild.completion_tokens == std::int64_t{1} << 40);
  CHECK(wild.prompt_tokens == 0);
  CHECK(answer_of({{"content", "x"}}, Json::object(), Json::array({1})).prompt_tokens == 0);
}

TEST_CASE("an answer without a text says why, if the server does") {
  const auto why = [](const Json& message, const Json& reason) {
    const EndpointAnswer answer =
        answer_of(message, reason.is_null() ? Json::object() : Json{{"finish_reason", reason}},
                  {{"completion_tokens", 12}});
    CHECK(answer.text.empty());
    return answer.why_empty;
  };
  CHECK(why({{"content", nullptr}}, nullptr).empty());
  CHECK(why({{"role", "assistant"}}, "stop").empty());
  CHECK(why({{"content", " \n"}}, 7).empty());
  CHECK(why({{"content", Json::array()}}, "content_filter") == ": finish_reason is content_filter");
  CHECK(why({{"content", ""}}, "length") == ": finish_reason is length");
  CHECK(why({{"content", "<think>a fox?</think>"}}, "stop").empty());
  CHECK(why({{"content", "<think>a fox?"}}, "length") ==
        ": all of its 12 tokens are thoughts; allow more by \"tokens\", vfm-endpoint(5)");
  CHECK(why({{"content", nullptr}, {"refusal", "I will\nnot."}}, "stop") == ": I will not.");
  CHECK(why({{"content", ""}, {"refusal", nullptr}}, "length") == ": finish_reason is length");
  CHECK(read_answer(answer_body({{"refusal", "no, sk"}}), "sk").why_empty == ": no, [key]");
}

TEST_CASE("a body without a choice that has a message is no answer") {
  for (const char* wrong :
       {"[]", "7", "{}", R"({"choices":{}})", R"({"choices":[]})", R"({"choices":[7]})",
        R"({"choices":[{}]})", R"({"choices":[{"message":"a fox"}]})"}) {
    INFO(wrong);
    CHECK(error_of(wrong) == "the answer has no choices[0].message");
  }
  CHECK(error_of(answer_body({{"content", 7}})) == "the answer's content is not text");
  CHECK(error_of(answer_body({{"content", Json::object()}})) == "the answer's content is not text");
  CHECK_THAT(error_of("{\"choices\": ["), Catch::StartsWith("the answer"));
}

TEST_CASE("a key is taken out of a text where it is long enough to be one") {
  const std::string body = answer_body({{"content", "sk-12345 is sk-12345, or sk-1234"}});
  CHECK(read_answer(body, "sk-12345").text == "[key] is [key], or sk-1234");
  CHECK(read_answer(body, "sk-1234").text == "sk-12345 is sk-12345, or sk-1234");
  CHECK(read_answer(body, "").text == "sk-12345 is sk-12345, or sk-1234");
  // Whatever way JSON writes it; halves of characters become U+FFFD.
  CHECK(read_answer(R"({"choices":[{"message":{"content":"it is \u0073k-12345 \ud83d"}}]})",
                    "sk-12345")
            .text == "it is [key] \xef\xbf\xbd");
}

TEST_CASE("what a server says of an error is its message in one line, or all of it") {
  const std::string key = "sk-1";
  CHECK(server_message(R"({"error":{"message":"no,\n sk-1","code":5}})", key) == ": no, [key]");
  CHECK(server_message(R"({"error":"plain"})", key) == ": plain");
  CHECK(server_message(R"({"message":"bare","error_code":1})", key) == ": bare");
  CHECK(server_message(R"({"error":{"code":5}})", key) == R"(: {"code":5})");
  CHECK(server_message(R"({"error":{"message":["a","sk-1"]}})", key) == R"(: ["a","[key]"])");
  CHECK(server_message("[1, 2]", key) == ": [1,2]");
  CHECK(server_message("\"text\"", key) == ": text");
  CHECK(server_message("<html>\n bad sk-1", key) == ": <html> bad [key]");
  CHECK(server_message("", key).empty());
  CHECK(server_message(" \n ", key).empty());
  CHECK(server_message(R"({"error":{"message":"\u0073k-1"}})", key) == ": [key]");
  // Where the key may be escaped and what is meant is unknown, nothing is said.
  CHECK(server_message(R"({"error":"\u0073k-1)", key).empty());
  CHECK(server_message(R"({"error":"\u0073k-1)", "") == R"(: {"error":"\u0073k-1)");
  CHECK(server_message("{\"error\":\"a fox", key) == ": {\"error\":\"a fox");
  // Masked before it is cut.
  const std::string longest = std::string(297, 'a') + key;
  CHECK(server_message(dump_json({{"error", longest}}), key) == ": " + std::string(297, 'a') + "[");
  CHECK(server_message(std::string(5000, 'b'), key) == ": " + std::string(300, 'b'));
}

TEST_CASE("of a list of models the only one is taken") {
  const auto list = [](const char* data) { return "{\"data\":" + std::string(data) + "}"; };
  CHECK(only_model(list(R"([{"id":"m"}])"), "") == "m");
  CHECK(only_model(list(R"([{"id":7},7,{"name":"n"},{"id":"m"}])"), "") == "m");
  CHECK(usage_error([&] { only_model(list(R"([{"id":"one"},{"id":"two"}])"), "two"); }) ==
        "the server has 2 models; name one in a JSON file, vfm-endpoint(5): one, [key]");
  for (const std::string& none : {list("[]"), list("{}"), list("\"m\""), std::string("{}"),
                                  std::string("[{\"id\":\"m\"}]")}) {
    INFO(none);
    try {
      only_model(none, "");
      FAIL_CHECK("a model was found");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::runtime);
      CHECK(std::string(error.what()) ==
            "the server lists no model; name it in a JSON file, vfm-endpoint(5)");
    }
  }
}
