// SPDX-License-Identifier: Apache-2.0
#include "generate/prompts.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"

using namespace vfm;
using namespace vfm::generate;

namespace {

ClipOrder parse(const std::string& line) {
  ClipOrder defaults;
  defaults.request.seed = 7;
  defaults.request.negative = "rain";
  defaults.choice.steps = 9;
  return parse_prompt(line, defaults, "line 1 of standard input");
}

std::string error_of(const std::string& line) {
  try {
    parse(line);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a line of text is the prompt", "[prompts]") {
  const ClipOrder order = parse("  a red fox, \"crossing\" \r");
  CHECK(order.request.prompt == "a red fox, \"crossing\"");
  CHECK(order.request.seed == 7);
  CHECK(order.request.negative == "rain");
  CHECK(order.choice.steps == 9);
  CHECK_FALSE(order.own_seed);
  CHECK(parse("赤い狐が道を渡る").request.prompt == "赤い狐が道を渡る");
  CHECK(parse("ثعلب أحمر").request.prompt == "ثعلب أحمر");
  CHECK(parse(std::string(100000, 'x')).request.prompt.size() == 100000);
  CHECK(parse("").request.prompt.empty());
}

TEST_CASE("an object orders what it says and keeps the rest", "[prompts]") {
  const ClipOrder order = parse(
      R"({"prompt":"p","seed":18446744073709551615,"negative_prompt":"","name":"clip 1","frames":9,)"
      R"("width":32,"height":48,"fps":23.976,"sampler":"heun","steps":3,"guidance":1.5,)"
      R"("sigma_min":0.1,"sigma_max":10,"id":[1,2],"note":null})");
  CHECK(order.request.prompt == "p");
  CHECK(order.request.seed == 18446744073709551615u);
  CHECK(order.own_seed);
  CHECK(order.request.negative.empty());
  CHECK(order.name == "clip 1");
  CHECK(order.request.frames == 9);
  CHECK(order.request.width == 32);
  CHECK(order.request.height == 48);
  CHECK(order.request.fps == 23.976);
  CHECK(order.choice.sampler == generate::Sampler::heun);
  CHECK(order.choice.steps == 3);
  CHECK(order.choice.guidance == 1.5);
  CHECK(order.choice.sigma_min == 0.1);
  CHECK(order.choice.sigma_max == 10);
  CHECK(dump_json(order.extra) == R"({"id":[1,2],"note":null})");
  CHECK(parse(R"({"prompt":""})").request.prompt.empty());
}

TEST_CASE("what a record says of its model is kept apart, what was measured is dropped",
          "[prompts]") {
  const ClipOrder order =
      parse(R"({"prompt":"p","weights":"ema","model_hash":"0a","fp8":"all","fp8_error":0.01,)"
            R"("device":"cuda","decoded_on":"cpu","x":1})");
  CHECK(order.weights == "ema");
  CHECK(order.model_hash == "0a");
  CHECK(order.fp8 == "all");
  CHECK(dump_json(order.extra) == R"({"x":1})");
  CHECK_FALSE(parse(R"({"prompt":"p"})").fp8);
}

TEST_CASE("what is not an order is refused by name", "[prompts]") {
  CHECK(error_of("{").find("line 1 of standard input") != std::string::npos);
  CHECK(error_of("{}").find("'prompt'") != std::string::npos);
  CHECK(error_of(R"({"prompt":1})").find("prompt") != std::string::npos);
  CHECK(error_of(R"({"prompt":"p","seed":-1})").find("'seed'") != std::string::npos);
  CHECK(error_of(R"({"prompt":"p","seed":1.5})").find("'seed'") != std::string::npos);
  CHECK(error_of(R"({"prompt":"p","frames":-3})").find("'frames'") != std::string::npos);
  CHECK(error_of(R"({"prompt":"p","frames":99999999999})").find("'frames'") != std::string::npos);
  CHECK(error_of(R"({"prompt":"p","sampler":"magic"})").find("euler") != std::string::npos);
  CHECK(error_of(R"({"prompt":"p","steps":"many"})").find("steps") != std::string::npos);
}

TEST_CASE("a name is a plain file name", "[prompts]") {
  CHECK_NOTHROW(check_clip_name("clip 1 (日本)"));
  for (const std::string& name :
       {std::string(""), std::string("a/b"), std::string(".hidden"), std::string(".."),
        std::string("a\nb"), std::string("a\0b", 3), std::string(201, 'x')})
    CHECK_THROWS_AS(check_clip_name(name), Error);
}

TEST_CASE("a slug is made of the prompt's plain letters", "[prompts]") {
  CHECK(slug("A red fox, crossing!") == "a-red-fox-crossing");
  CHECK(slug("  --x--  ") == "x");
  CHECK(slug("赤い狐").empty());
  CHECK(slug("").empty());
  CHECK(slug(std::string(100, 'a')).size() == 48);
  CHECK(slug(std::string(47, 'a') + " b") == std::string(47, 'a'));
}
