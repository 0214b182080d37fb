// Asking a server for captions: what is sent, what is tried again, and what ends the asking.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/endpoint.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "io/http.h"
#include "media/container/picture_file.h"
#include "media/decode/decoder.h"
#include "support/chat_server.h"
#include "support/heard_log.h"
#include "support/usage_error.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

EndpointOptions options_for(const ChatServer& server) {
  EndpointOptions options;
  options.url = server.url();
  options.model = "m";
  options.parallel = 1;
  options.wait = 0;
  return options;
}

/// What became of a request.
struct Outcome {
  std::string text, error;
  std::optional<Cause> cause;  // of the error
  bool down = false;           // EndpointDown
  int kept = 0;
};

Outcome ask_one(Endpoint& endpoint, const std::string& clip, const std::string& request = "{}") {
  Outcome out;
  std::future<EndpointAnswer> answer =
      endpoint.ask(request, clip, [&](const EndpointAnswer&) { ++out.kept; });
  try {
    out.text = answer.get().text;
  } catch (const EndpointDown& down) {
    out.error = down.what(), out.cause = down.cause(), out.down = true;
  } catch (const Error& error) {
    out.error = error.what(), out.cause = error.cause();
  }
  return out;
}

/// Of a JPEG in a data: URL.
std::pair<int, int> size_in_url(const std::string& url) {
  const std::string begin = "data:image/jpeg;base64,";
  REQUIRE(url.starts_with(begin));
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : url.substr(begin.size())) {
    const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = letters.find(c);
    if (value == letters.npos) break;
    bits = bits << 6 | static_cast<unsigned>(value), count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  const media::Decoder decoder(std::string_view(bytes), "the frame");
  return {decoder.info().width, decoder.info().height};
}

}  // namespace

TEST_CASE("what may pass is asked again, until the tries run out") {
  if (!io::have_http()) return;
  const ChatReply fine = chat_says("a fox");
  const ChatServer server({chat_fails(500),
                           chat_fails(599),
                           chat_fails(408),
                           chat_fails(409),
                           chat_fails(425),
                           chat_fails(429),
                           {.closed = true},
                           {200, fine.body, 5},
                           {200, "{\"choices\": ["},
                           {200, "{\"choices\": []}"},
                           fine,
                           chat_fails(503, "asleep")});
  EndpointOptions options = options_for(server);
  options.retries = 10;
  options.secret = "sk-12345";
  Endpoint endpoint(options);
  const Outcome good = ask_one(endpoint, "one", "{\"n\":1}");
  CHECK(good.text == "a fox");
  CHECK(good.kept == 1);
  CHECK(good.error.empty());
  CHECK(endpoint.tries() == 11);
  for (const ChatRequest& request : server.requests()) {
    CHECK(request.path == "/v1/chat/completions");
    CHECK(request.body == "{\"n\":1}");
    CHECK_THAT(request.headers, Catch::Contains("Authorization: Bearer sk-12345\r\n"));
  }
  const Outcome bad = ask_one(endpoint, "two");
  CHECK(bad.error ==
        "'" + server.url() +
            "/chat/completions' gave no answer in 11 tries, at last: status 503: asleep");
  CHECK(bad.cause == Cause::server);
  CHECK_FALSE(bad.down);
  CHECK(bad.kept == 0);
  CHECK(endpoint.tries() == 22);
  CHECK(server.asked() == 22);
}

TEST_CASE("without tries after the first, what a server says instead of an answer is told") {
  if (!io::have_http()) return;
  const ChatServer server({{200, R"({"error":{"message":"the model is asleep, sk-1"}})"},
                           {200, "{\"choices\": [{\"message\": 7"}});
  EndpointOptions options = options_for(server);
  options.retries = 0;
  options.secret = "sk-1";
  options.url += "/";
  Endpoint endpoint(options);
  const std::string begin =
      "'" + server.url() + "/chat/completions' gave no answer in 1 tries, at last: the answer";
  CHECK(ask_one(endpoint, "one").error ==
        begin + " has no choices[0].message: the model is asleep, [key]");
  const std::string broken = ask_one(endpoint, "two").error;
  CHECK_THAT(broken, Catch::StartsWith(begin));
  CHECK_THAT(broken, Catch::EndsWith(": {\"choices\": [{\"message\": 7"));
  CHECK_THAT(broken, !Catch::Contains("last read"));
}

TEST_CASE("each pause before another try is twice as long, give or take a quarter") {
  if (!io::have_http()) return;
  const ChatServer server({chat_fails(500), chat_fails(500), chat_fails(500), chat_says("a fox")});
  EndpointOptions options = options_for(server);
  options.wait = 0.03;
  Endpoint endpoint(options);
  CHECK(ask_one(endpoint, "one").text == "a fox");
  const std::vector<ChatRequest> requests = server.requests();
  REQUIRE(requests.size() == 4);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::chrono::duration<double>(requests[i + 1].at - requests[i].at).count() >
          0.75 * 0.03 * (1 << i));
}

TEST_CASE("so many requests are under way at once as are asked for") {
  if (!io::have_http()) return;
  std::atomic<bool> answers = false;
  const ChatServer server([&](const ChatRequest&, std::size_t) {
    while (!answers)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return chat_says("a fox");
  });
  EndpointOptions options = options_for(server);
  options.parallel = 2;
  Endpoint endpoint(options);
  std::vector<std::future<EndpointAnswer>> all;
  for (int i = 0; i < 5; ++i)
    all.push_back(endpoint.ask("{}", "one", [](const EndpointAnswer&) {}));
  for (int i = 0; i < 10'000 && endpoint.tries() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(endpoint.tries() == 2);
  answers = true;
  for (std::future<EndpointAnswer>& one : all)
    CHECK(one.get().text == "a fox");
  CHECK(endpoint.tries() == 5);
}

TEST_CASE("a server that refuses everyone is asked once, and a refused clip is its own") {
  if (!io::have_http()) return;
  for (const int status : {300, 307, 399, 401, 402, 403, 404, 405}) {
    INFO(status);
    const ChatServer server({chat_fails(status)});
    Endpoint endpoint(options_for(server));
    const Outcome first = ask_one(endpoint, "one"), second = ask_one(endpoint, "two");
    const std::string why =
        "'" + server.url() + "/chat/completions' answers status " + std::to_string(status) + ": no";
    CHECK(first.error == why);
    CHECK(second.error == why);
    CHECK((first.down && second.down));
    CHECK(first.cause == Cause::server);
    CHECK(server.asked() == 1);
  }
  for (const int status : {201, 299, 400, 406, 407, 424, 426, 428, 430, 499}) {
    INFO(status);
    const ChatServer server({chat_fails(status), chat_says("a fox")});
    Endpoint endpoint(options_for(server));
    const Outcome refused = ask_one(endpoint, "one");
    CHECK(refused.error == "'" + server.url() + "/chat/completions' refuses it with status " +
                               std::to_string(status) + ": no");
    CHECK(refused.cause == Cause::rejected);
    CHECK_FALSE(refused.down);
    CHECK(ask_one(endpoint, "two").text == "a fox");
    CHECK(server.asked() == 2);
  }
}

TEST_CASE("three clips that fail one after the other end the asking, and an answer begins anew") {
  if (!io::have_http()) return;
  const ChatReply bad = chat_fails(400), fine = chat_says("a fox");
  const ChatServer server({bad, bad, bad, bad, fine, bad, chat_fails(500, "late"), bad, fine});
  EndpointOptions options = options_for(server);
  options.retries = 0;
  Endpoint endpoint(options);
  // Of one clip all may fail.
  for (int i = 0; i < 3; ++i)
    CHECK(ask_one(endpoint, "one").cause == Cause::rejected);
  CHECK_FALSE(ask_one(endpoint, "two").down);
  CHECK(ask_one(endpoint, "two").text == "a fox");
  CHECK_FALSE(ask_one(endpoint, "one").down);
  CHECK_FALSE(ask_one(endpoint, "two").down);
  const Outcome last = ask_one(endpoint, "three");
  CHECK(last.down);
  CHECK(last.cause == Cause::server);
  CHECK(last.error == "3 clips failed one after the other, no more is asked: '" + server.url() +
                          "/chat/completions' refuses it with status 400: no");
  CHECK(ask_one(endpoint, "four").error == last.error);
  CHECK(server.asked() == 8);
}

TEST_CASE("an endpoint needs a model's name and an address, and a key is not sent openly unsaid") {
  if (!io::have_http()) return;
  const ChatServer server({chat_says("a fox")});
  EndpointOptions options = options_for(server);
  options.model = "";
  CHECK(usage_error([&] { Endpoint endpoint(options); }) == "the server's model has no name");
  options.model = "m";
  options.url = "ftp://host";
  CHECK_FALSE(usage_error([&] { Endpoint endpoint(options); }).empty());
  for (const char* end : {"/chat/completions", "/chat/completions//", "//"}) {
    options.url = server.url() + end;
    CHECK(Endpoint(options).options().url == server.url() + "/chat/completions");
  }
  const HeardLog lines;
  { const Endpoint quiet(options); }
  CHECK(lines.text().empty());
  options.secret = "sk";
  { const Endpoint open(options); }
  CHECK(lines.text() == "the key goes to '" + server.url() + "/chat/completions' unencrypted\n");
  options.url = "https://127.0.0.1:9/v1";
  const HeardLog others;
  { const Endpoint hidden(options); }
  CHECK(others.text().empty());
}

TEST_CASE("a request has the middle frames of a clip, no larger than asked for, and the prompt") {
  if (!io::have_http()) return;
  const ChatServer server({chat_says("a fox")});
  EndpointOptions options = options_for(server);
  options.frames = 3;
  options.side = 48;
  options.prompt = "What is it?";
  options.most_tokens = 77;
  options.temperature = 0.5;
  options.send_schema = true;
  const Json schema = {{"type", "object"}};
  options.also.list = {{"facts", "Which?", std::make_shared<text::JsonSchema>(schema, "it")},
                       {"short", "In ten words?"}};
  const shard::Member member{"mp4", make_video(8, kRed)};
  Json facts;
  const std::vector<std::string> bodies =
      Endpoint(options).requests(member, "k.mp4", {{"width", 64}, {"height", 48}}, nullptr, facts);
  CHECK(facts == Json{{"seconds", 1}, {"fps", 8}, {"frames", 8}});
  REQUIRE(bodies.size() == 3);
  const Json first = parse_json(bodies[0], "it");
  const Json content = first["messages"][0]["content"];
  REQUIRE(content.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(content[i]["type"] == "image_url");
    CHECK(size_in_url(content[i]["image_url"]["url"]) == std::pair(48, 36));
  }
  CHECK(content[0] != content[1]);
  CHECK(content[3] == Json{{"type", "text"}, {"text", "What is it?"}});
  CHECK(first == Json{{"model", "m"},
                      {"messages", Json::array({{{"role", "user"}, {"content", content}}})},
                      {"max_tokens", 77},
                      {"temperature", 0.5},
                      {"stream", false}});
  Json expected = first;
  expected["messages"][0]["content"][3]["text"] = "Which?";
  expected["response_format"] = {{"type", "json_schema"},
                                 {"json_schema", {{"name", "facts"}, {"schema", schema}}}};
  CHECK(parse_json(bodies[1], "it") == expected);
  expected["messages"][0]["content"][3]["text"] = "In ten words?";
  expected.erase("response_format");
  CHECK(parse_json(bodies[2], "it") == expected);
  // Smaller frames keep their size, and schemas are sent on demand alone.
  options.send_schema = false;
  options.side = 64;
  const auto plain = Endpoint(options).requests(member, "k.mp4", Json(), nullptr, facts);
  CHECK(facts["width"] == 64);
  CHECK(size_in_url(parse_json(plain[0], "it")["messages"][0]["content"][0]["image_url"]["url"]) ==
        std::pair(64, 48));
  CHECK_FALSE(parse_json(plain[1], "it").contains("response_format"));
  options.side = 16;
  const shard::Member line{"png", media::encode_png(plain_image(kBlue, 400, 4))};
  const auto thin = Endpoint(options).requests(line, "k.png", Json(), nullptr, facts);
  const Json shown = parse_json(thin[0], "it")["messages"][0]["content"];
  CHECK(shown.size() == 2);
  CHECK(size_in_url(shown[0]["image_url"]["url"]) == std::pair(16, 1));
  CHECK_THROWS_WITH(
      Endpoint(options).requests({"mp4", "no video"}, "k.mp4", Json(), nullptr, facts),
      Catch::Contains("k.mp4"));
}

TEST_CASE("an answer repeats a key that is long enough, however its JSON writes it") {
  if (!io::have_http()) return;
  EndpointOptions options;
  options.url = "http://127.0.0.1:9/v1";
  options.model = "m";
  options.secret = "sk\"2345\\";
  const Endpoint endpoint(options);
  CHECK(endpoint.has_secret({Json{{"says", {"a", "it is sk\"2345\\"}}}}));
  CHECK(endpoint.has_secret({Json{{"sk\"2345\\", 1}}}));
  CHECK(endpoint.has_secret({Json(), "not sk\"2345\\"}));
  CHECK(endpoint.has_secret({Json(), "not sk\\\"2345\\\\"}));
  CHECK_FALSE(endpoint.has_secret({Json("a fox"), "is none"}));
  options.secret = "sk-1234";
  CHECK_FALSE(Endpoint(options).has_secret({Json("sk-1234"), "sk-1234"}));
}

TEST_CASE("a server's only model is its name, after a failure that passes") {
  if (!io::have_http()) return;
  const ChatReply one{200, R"({"data":[{"id":"m"}]})"};
  const ChatServer server({chat_fails(503),
                           {200, one.body, 3},
                           one,
                           chat_fails(404, "sk-1"),
                           chat_fails(500),
                           chat_fails(500, "at last"),
                           {200, R"({"data":[{"id":"a"},{"id":"b"}]})"},
                           {200, "{}"}});
  EndpointOptions options = options_for(server);
  options.secret = "sk-1";
  CHECK(served_model(options) == "m");
  CHECK(server.asked() == 3);
  CHECK(server.requests()[0].path == "/v1/models");
  CHECK_THAT(server.requests()[0].headers, Catch::StartsWith("GET"));
  const std::string not_listed =
      "'" + server.url() + "/models' does not list the server's models: ";
  const std::string name_it = "; name the model in a JSON file, vfm-endpoint(5)";
  CHECK_THROWS_WITH(served_model(options), not_listed + "status 404: [key]" + name_it);
  CHECK(server.asked() == 4);
  options.retries = 1;
  CHECK_THROWS_WITH(served_model(options), not_listed + "status 500: at last" + name_it);
  CHECK(server.asked() == 6);
  CHECK(usage_error([&] { served_model(options); }) ==
        "the server has 2 models; name one in a JSON file, vfm-endpoint(5): a, b");
  CHECK_THROWS_WITH(served_model(options), Catch::StartsWith("the server lists no model"));
  CHECK(server.asked() == 8);
}

TEST_CASE("what decides the column is told of an endpoint, and not where it is") {
  EndpointOptions options;
  options.url = "http://host";
  options.model = "m";
  options.prompt = "What?";
  const Json plain = {{"model", "m"}, {"prompt", "What?"}, {"frames", 8},
                      {"side", 512},  {"tokens", 512},     {"temperature", 0.0}};
  CHECK(endpoint_config(options) == plain);
  options.also.list = {{"short", "In ten words?"}};
  options.send_schema = true;
  Json more = plain;
  more["also"] = {{"short", {{"prompt", "In ten words?"}}}};
  more["send_schema"] = true;
  CHECK(endpoint_config(options) == more);
  CHECK(parse_json(request_with_seed(R"({"a":[1,{}]})", 2), "it") ==
        Json{{"a", {1, Json::object()}}, {"seed", 2}});
}
