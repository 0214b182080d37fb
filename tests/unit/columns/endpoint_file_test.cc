// The file of an endpoint: what it may say, and all that is wrong with it at once.
// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/endpoint_file.h"

#include <catch2/catch.hpp>

#include "base/json.h"
#include "io/http.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

EndpointOptions endpoint_of(const TemporaryFolder& folder, const Json& json) {
  folder.write("endpoint.json", dump_json(json));
  return read_endpoint(folder / "endpoint.json");
}

/// What is wrong with it, without the file's name.
std::string wrong_with(const TemporaryFolder& folder, const std::string& json) {
  folder.write("endpoint.json", json);
  const std::string said = usage_error([&] { read_endpoint(folder / "endpoint.json"); });
  const std::string name = "'" + folder.path + "/endpoint.json'";
  CHECK_THAT(said, Catch::StartsWith(name));
  return said.substr(std::min(said.size(), name.size()));
}

}  // namespace

TEST_CASE("an address alone has the settings that vfm-endpoint(5) names") {
  const EndpointOptions options = read_endpoint("http://host:8000/v1");
  CHECK(options.url == "http://host:8000/v1");
  CHECK(options.model.empty());
  CHECK(options.frames == 8);
  CHECK(options.retries == 5);
  CHECK_FALSE(options.input_price);
  CHECK_FALSE(options.send_schema);
  CHECK_FALSE(usage_error([] { read_endpoint("ftp://host"); }).empty());
  CHECK_FALSE(usage_error([] { read_endpoint("http://user:word@host"); }).empty());
}

TEST_CASE("each key of the file of an endpoint sets its option, up to its limits") {
  const TemporaryFolder folder;
  const EndpointOptions least = endpoint_of(folder, {{"url", "https://host/v1"},
                                                     {"model", "m"},
                                                     {"key", "_KEY1"},
                                                     {"frames", 1},
                                                     {"side", 16},
                                                     {"parallel", 1},
                                                     {"retries", 0},
                                                     {"wait", 0},
                                                     {"timeout", 0.001},
                                                     {"tokens", 1},
                                                     {"temperature", 0},
                                                     {"schema", true},
                                                     {"price", {0, 0.5}}});
  CHECK(least.url == "https://host/v1");
  CHECK(least.model == "m");
  CHECK(least.key_variable == "_KEY1");
  CHECK(least.frames == 1);
  CHECK(least.side == 16);
  CHECK(least.parallel == 1);
  CHECK(least.retries == 0);
  CHECK(least.wait == 0);
  CHECK(least.seconds == 0.001);
  CHECK(least.most_tokens == 1);
  CHECK(least.temperature == 0);
  CHECK(least.send_schema);
  CHECK(least.input_price == 0);
  CHECK(least.output_price == 0.5);
  const EndpointOptions most = endpoint_of(folder, {{"url", "http://h"},
                                                    {"frames", 64},
                                                    {"side", 4096},
                                                    {"parallel", 256},
                                                    {"retries", 100},
                                                    {"wait", 300},
                                                    {"timeout", 86400},
                                                    {"tokens", 1'000'000},
                                                    {"temperature", 2},
                                                    {"schema", false}});
  CHECK(most.frames == 64);
  CHECK(most.side == 4096);
  CHECK(most.parallel == 256);
  CHECK(most.retries == 100);
  CHECK(most.wait == 300);
  CHECK(most.seconds == 86400);
  CHECK(most.most_tokens == 1'000'000);
  CHECK(most.temperature == 2);
  CHECK_FALSE(most.send_schema);
  const EndpointOptions bare = endpoint_of(folder, {{"url", "http://h"}});
  const EndpointOptions plain = read_endpoint("http://h");
  CHECK(endpoint_config(bare) == endpoint_config(plain));
  CHECK(bare.parallel == plain.parallel);
  CHECK(bare.key_variable.empty());
}

TEST_CASE("all that is wrong with the file of an endpoint is told at once, by key") {
  const TemporaryFolder folder;
  CHECK(wrong_with(folder, R"({"url": "http://x/v1", "frames": 0, "side": 512.5, "wait": "1s",
                               "schema": 1, "price": [1], "modle": "m", "x": 1})") ==
        ": \"frames\" must be a whole number from 1 to 64, but is 0; "
        "\"side\" must be a whole number from 16 to 4096, but is 512.5; "
        "\"wait\" must be a number from 0 to 300, but is \"1s\"; "
        "\"schema\" must be true or false, but is 1; "
        "\"price\" must be two numbers from 0 on, [IN, OUT], but is [1]; "
        "unknown: \"modle\", \"x\"; the keys are url, model, key, frames, side, parallel, retries, "
        "wait, timeout, tokens, temperature, schema, price");
  CHECK(wrong_with(folder, R"({"parallel": 257, "retries": -1, "timeout": 0, "tokens": 0,
                               "temperature": 2.1, "model": ""})") ==
        ": \"url\" is missing; \"model\" must be a text that is not empty, but is \"\"; "
        "\"parallel\" must be a whole number from 1 to 256, but is 257; "
        "\"retries\" must be a whole number from 0 to 100, but is -1; "
        "\"timeout\" must be a number from 0.001 to 86400, but is 0; "
        "\"tokens\" must be a whole number from 1 to 1000000, but is 0; "
        "\"temperature\" must be a number from 0 to 2, but is 2.1");
  for (const char* price : {"[1, -1]", "[-1, 1]", "[1, 2, 3]", "[\"1\", 2]", "3"})
    CHECK_THAT(wrong_with(folder, R"({"url": "http://x", "price": )" + std::string(price) + "}"),
               Catch::Contains("\"price\" must be two numbers from 0 on"));
  // Of a long value its begin is shown.
  CHECK(wrong_with(folder, R"({"url": "http://x", "wait": ")" + std::string(99, 'w') + "\"}") ==
        ": \"wait\" must be a number from 0 to 300, but is \"" + std::string(39, 'w'));
  CHECK_THAT(wrong_with(folder, "[\"http://x\"]"), Catch::Contains("is not a JSON object"));
  wrong_with(folder, "{\"url\"");
  CHECK_THAT(usage_error([&] { read_endpoint(folder / "none.json"); }),
             Catch::StartsWith("cannot open '" + folder.path + "/none.json'"));
}

TEST_CASE("a key in the place of its variable's name is refused, and not shown") {
  const TemporaryFolder folder;
  for (const char* key : {"sk-geheim", "geheim key", "9geheim", "geheim\xc3\xa9"}) {
    const std::string said = wrong_with(folder, dump_json({{"url", "http://x"}, {"key", key}}));
    CHECK(said == ": \"key\" must be the name of an environment variable, not the key itself");
  }
  CHECK(wrong_with(folder, R"({"url": "http://x", "key": ["geheim"]})") ==
        ": \"key\" must be a text that is not empty");
  const std::string said = wrong_with(folder, R"({"url": "http://u:geheim@x", "key": "A9_z"})");
  CHECK_THAT(said, Catch::Contains("an address with a user"));
  CHECK_THAT(said, !Catch::Contains("geheim"));
  CHECK(endpoint_of(folder, {{"url", "http://x"}, {"key", "aZ_09"}}).key_variable == "aZ_09");
}
