// SPDX-License-Identifier: Apache-2.0
#include "generate/request/prompts.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"
#include "generate/part_clips.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::generate;
using models::Process;
using models::SampledAs;
using models::Sampler;

namespace {

Prompt parse(const std::string& line) {
  Prompt defaults;
  defaults.seed = 7;
  defaults.negative = "rain";
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
  const Prompt prompt = parse("  a red fox, \"crossing\" \r");
  CHECK(prompt.text == "a red fox, \"crossing\"");
  CHECK(prompt.seed == 7);
  CHECK(prompt.negative == "rain");
  CHECK(prompt.choice.steps == 9);
  CHECK_FALSE(prompt.own_seed);
  CHECK(parse("赤い狐が道を渡る").text == "赤い狐が道を渡る");
  CHECK(parse("ثعلب أحمر").text == "ثعلب أحمر");
  CHECK(parse(std::string(100000, 'x')).text.size() == 100000);
  CHECK(parse("").text.empty());
}

TEST_CASE("an object asks for what it says and keeps the rest", "[prompts]") {
  const Prompt prompt = parse(
      R"({"prompt":"p","seed":18446744073709551615,"negative_prompt":"","name":"clip 1","frames":9,)"
      R"("width":32,"height":48,"fps":23.976,"sampler":"heun","steps":3,"guidance":1.5,"guidance_low":0.5,)"
      R"("sigma_min":0.1,"sigma_max":10,"id":[1,2],"note":null})");
  CHECK(prompt.text == "p");
  CHECK(prompt.seed == 18446744073709551615u);
  CHECK(prompt.own_seed);
  CHECK(prompt.negative.empty());
  CHECK(prompt.name == "clip 1");
  CHECK(prompt.frames == 9);
  CHECK(prompt.width == 32);
  CHECK(prompt.height == 48);
  CHECK(prompt.fps == 23.976);
  CHECK(prompt.choice.sampler == Sampler::heun);
  CHECK(prompt.choice.steps == 3);
  CHECK(prompt.choice.guidance == 1.5);
  CHECK(prompt.choice.guidance_low == 0.5);
  CHECK(prompt.choice.sigma_min == 0.1);
  CHECK(prompt.choice.sigma_max == 10);
  CHECK(dump_json(prompt.extra) == R"({"id":[1,2],"note":null})");
  CHECK(parse(R"({"prompt":""})").text.empty());
}

TEST_CASE("a line's noise levels go before those of the command line, however they are said",
          "[prompts]") {
  const SampleChoice levels = parse(R"({"prompt":"p","sigmas":[1,0.5]})").choice;
  CHECK(levels.sigmas == std::vector<double>{1, 0.5});
  CHECK_FALSE(levels.steps);  // the defaults have 9
  CHECK(levels.over({}).steps == 2);
  Prompt defaults;
  defaults.choice.sigmas = {3, 2};
  const auto choice = [&](const char* line) { return parse_prompt(line, defaults, "x").choice; };
  CHECK(choice(R"({"prompt":"p","guidance":0})").sigmas == std::vector<double>{3.0, 2.0});
  for (const char* member : {"steps", "sigma_min", "sigma_max", "shift"})
    CHECK(choice((R"({"prompt":"p",")" + std::string(member) + "\":1}").c_str()).sigmas.empty());
  for (const char* wrong : {"[]", "1", "\"1\"", "[\"1\"]", "{\"a\":1}"})
    CHECK(error_of(R"({"prompt":"p","sigmas":)" + std::string(wrong) + "}").find("'sigmas'") !=
          std::string::npos);
}

TEST_CASE("a line's guidance goes before both of the command line", "[prompts]") {
  Prompt defaults;
  defaults.choice.guidance = 3, defaults.choice.guidance_low = 2;
  const auto choice = [&](const char* line) { return parse_prompt(line, defaults, "x").choice; };
  CHECK(choice(R"({"prompt":"p"})").guidance_low == 2);
  CHECK(choice(R"({"prompt":"p","guidance_low":1})").guidance == 3);
  // So the record of a clip with one guidance makes it again.
  CHECK_FALSE(choice(R"({"prompt":"p","guidance":4})").guidance_low);
  CHECK(choice(R"({"prompt":"p","guidance":4,"guidance_low":1})").guidance_low == 1);
}

TEST_CASE("what a record says of its model is kept apart, what was measured is dropped",
          "[prompts]") {
  const Prompt prompt =
      parse(R"({"prompt":"p","weights":"ema","model_hash":"0a","fp8":"all","fp8_error":0.01,)"
            R"("quantize":"int8","quantize_error":0.01,)"
            R"("device":"cuda","decoded_on":"cpu","x":1})");
  CHECK(prompt.made_by.weights == "ema");
  CHECK(prompt.made_by.model_hash == "0a");
  CHECK(prompt.made_by.fp8 == "all");
  CHECK(prompt.made_by.quantize == "int8");
  CHECK(dump_json(prompt.extra) == R"({"x":1})");
  CHECK_FALSE(parse(R"({"prompt":"p"})").made_by.fp8);
}

TEST_CASE("what is no request is refused by name", "[prompts]") {
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

TEST_CASE("what a prompt leaves out is as the model's clips usually are", "[prompts]") {
  Prompt prompt;
  prompt.text = "p", prompt.negative = "n", prompt.seed = 5;
  const ClipRequest usual = request_of(prompt, {9, 32, 48}, 12);
  CHECK(usual.prompt == "p");
  CHECK(usual.negative == "n");
  CHECK(usual.seed == 5);
  CHECK((usual.frames == 9 && usual.height == 32 && usual.width == 48));
  CHECK(usual.fps == 12);
  CHECK(request_of(prompt, {9, 32, 48}, 0).fps == 24);
  prompt.frames = 1, prompt.height = 2, prompt.width = 3, prompt.fps = 30;
  const ClipRequest own = request_of(prompt, {9, 32, 48}, 12);
  CHECK((own.frames == 1 && own.height == 2 && own.width == 3));
  CHECK(own.fps == 30);
}

TEST_CASE("a way to sample fits the kind of model", "[prompts]") {
  const auto refused = [](const SampleChoice& choice, bool autoregressive, Process own) {
    return usage_error([&] { choice.check_for(autoregressive, own, 1); });
  };
  using Catch::Contains;
  CHECK_NOTHROW(SampleChoice().check_for(true, Process::edm, 1));
  CHECK_NOTHROW(SampleChoice().check_for(false, Process::flow, 1));
  CHECK_NOTHROW(SampleChoice{.steps = 3, .sigma_max = 2}.check_for(false, Process::edm, 1));
  CHECK_NOTHROW(SampleChoice{.shift = 3}.check_for(false, Process::flow, 1));
  CHECK_NOTHROW(SampleChoice{.temperature = 1, .top_p = 1}.check_for(true, Process::edm, 1));
  CHECK_THAT(refused({.temperature = 1}, false, Process::edm),
             Contains("'temperature' is for autoregressive models"));
  CHECK_THAT(refused({.top_p = 1}, false, Process::edm), Contains("'top_p'"));
  CHECK_THAT(refused({.shift = 1}, false, Process::edm), Contains("'shift'"));
  CHECK_THAT(refused({.sigma_min = 1}, false, Process::flow), Contains("sigma_min and sigma_max"));
  CHECK_THAT(refused({.sigma_max = 1}, false, Process::flow), Contains("sigma_min and sigma_max"));
  CHECK_THAT(refused({.sampler = Sampler::heun}, true, Process::edm),
             Contains("'sampler' is for diffusion models"));
  CHECK_THAT(refused({.steps = 1}, true, Process::edm), Contains("'steps'"));
  CHECK_THAT(refused({.as = SampledAs::diffusers}, true, Process::edm), Contains("'as'"));
  CHECK_THAT(refused({.guidance = 1}, true, Process::edm), Contains("'guidance'"));
  CHECK_THAT(refused({.guidance_low = 1}, true, Process::edm), Contains("'guidance_low'"));
  CHECK_THAT(refused({.guidance_low = 1}, false, Process::flow), Contains("has one network"));
  CHECK_NOTHROW(SampleChoice{.guidance_low = 1}.check_for(false, Process::flow, 2));
  for (const Process own : {Process::flow, Process::edm})
    CHECK_NOTHROW(SampleChoice{.sampler = Sampler::lcm, .sigmas = {1}}.check_for(false, own, 1));
  for (const SampleChoice& choice :
       {SampleChoice{.steps = 1, .sigmas = {1}}, SampleChoice{.shift = 1, .sigmas = {1}},
        SampleChoice{.sigma_min = 1, .sigmas = {1}}, SampleChoice{.sigma_max = 1, .sigmas = {1}}})
    CHECK_THAT(refused(choice, false, choice.shift ? Process::flow : Process::edm),
               Contains("leave out steps"));
  for (const SampleChoice& choice :
       {SampleChoice{.sigma_min = 1}, SampleChoice{.sigma_max = 1}, SampleChoice{.shift = 1},
        SampleChoice{.augment_sigma = 1}, SampleChoice{.sigmas = {1}}})
    CHECK_THAT(refused(choice, true, Process::edm), Contains("'noise levels'"));
}

TEST_CASE("what is chosen of sampling goes before the model's own, and must go with it",
          "[prompts]") {
  SampleOptions own;
  own.steps = 30, own.guidance = 7, own.sigma_min = 0.01, own.sigma_max = 80;
  const SampleOptions all = SampleChoice().over(own);
  CHECK((all.steps == 30 && all.guidance == 7 && all.sigma_min == 0.01 && all.sigma_max == 80));
  const SampleOptions some =
      SampleChoice{.steps = 3, .sigma_min = 0.5, .sigma_max = 0.6, .guidance = 0}.over(own);
  CHECK((some.steps == 3 && some.guidance == 0 && some.sigma_min == 0.5 && some.sigma_max == 0.6));
  // A guidance for low levels is not kept beside a new one that is said alone.
  own.guidance_low = 5;
  const auto guidances = [&](const SampleChoice& choice) {
    const SampleOptions options = choice.over(own);
    return std::pair(options.guidance_of(0), options.guidance_of(1));
  };
  CHECK(guidances({}) == std::pair(7.0, 5.0));
  CHECK(guidances({.guidance = 2}) == std::pair(2.0, 2.0));
  CHECK(guidances({.guidance_low = 2}) == std::pair(7.0, 2.0));
  CHECK(guidances({.guidance = 3, .guidance_low = 2}) == std::pair(3.0, 2.0));
  using Catch::Contains;
  CHECK_THAT(usage_error([&] { (SampleChoice{.sigma_max = 0.01}.over(own)); }),
             Contains("sigma_max 0.01 does not go with the model's own sigma_min 0.01"));
  CHECK_THAT(usage_error([&] { (SampleChoice{.sigma_min = 80}.over(own)); }),
             Contains("sigma_min 80 does not go with the model's own sigma_max 80"));
  CHECK_NOTHROW(SampleChoice{.sigma_min = 79}.over(own));
}

TEST_CASE("a model with two ways to sample has the chosen one", "[prompts]") {
  const SampleChoice diffusers{.as = SampledAs::diffusers}, reference{.as = SampledAs::reference};
  for (const SampleChoice& choice : {diffusers, reference})
    CHECK_THAT(usage_error([&] { choice.over({}); }), Catch::Contains("'as' is for models"));
  models::SamplingFacts facts;
  facts.process = Process::flow;
  facts.sampler = Sampler::unipc;
  facts.steps = 40;
  facts.guidance = 3, facts.guidance_low = 2;
  facts.shift = 12;
  CHECK_FALSE(SampleOptions::of(facts, "x").diffusers);
  facts.diffusers = {.steps = 50, .guidance = 4, .shift = 3};
  const SampleOptions own = SampleOptions::of(facts, "x");
  const auto is = [](const SampleOptions& options, SampledAs as, double shift) {
    const bool diffused = as == SampledAs::diffusers;
    return options.as == as && options.shift == shift && options.steps == (diffused ? 50 : 40) &&
           options.guidance_of(0) == (diffused ? 4 : 3) &&
           options.guidance_of(1) == (diffused ? 4 : 2) && options.rounds_embedding() == diffused;
  };
  CHECK(is(own, SampledAs::reference, 12));
  CHECK(is(SampleChoice().over(own), SampledAs::reference, 12));
  CHECK(is(reference.over(own), SampledAs::reference, 12));
  CHECK(is(diffusers.over(own), SampledAs::diffusers, 3));
  CHECK(
      is(SampleChoice{.shift = 7, .as = SampledAs::diffusers}.over(own), SampledAs::diffusers, 7));
  const SampleOptions mine =
      SampleChoice{.steps = 7, .guidance = 1, .guidance_low = 0, .as = SampledAs::diffusers}.over(
          own);
  CHECK((mine.steps == 7 && mine.guidance_of(0) == 1 && mine.guidance_of(1) == 0));
  CHECK(is(parse(R"({"prompt":"p","as":"diffusers","steps":50})").choice.over(own),
           SampledAs::diffusers, 3));
  CHECK(error_of(R"({"prompt":"p","as":"comfy"})").find("choose reference or diffusers") !=
        std::string::npos);
}

TEST_CASE("a prompt of the command line is a text, or what stands in a file, in UTF-8",
          "[prompts]") {
  const TemporaryFolder folder;
  folder.write("no.txt", "\xef\xbb\xbf rain,\nfog\n");
  folder.write("blank.txt", "\n");
  CHECK(given_text(" rain \xff") == " rain \xef\xbf\xbd");
  CHECK(given_text("@" + folder.path + "/no.txt") == " rain,\nfog");
  CHECK(given_text("@@home") == "@home");
  for (const char* wrong : {"/blank.txt", "/none.txt"})
    CHECK_THAT(usage_error([&] { given_text("@" + folder.path + wrong); }), Catch::Contains(wrong));
}

TEST_CASE("prompts that may ask for a clip of one name are of one part", "[prompts]") {
  const auto part_of = [](const std::string& line, int parts) {
    return part_of_prompt({parse(line), 3, "line 4", ""}, parts);
  };
  // Another rule would give prompts to other parts than those that did them.
  CHECK(part_of("a red circle", 1000) == 979);
  CHECK(part_of(R"({"prompt": "a red circle", "name": "bar"})", 1000) == 466);
  CHECK(part_of(R"({"prompt": "x", "name": "bar"})", 1000) == 466);
  // With other seeds and sizes, or the name that vfm gave: a repeated text gets the next seed.
  CHECK(part_of(R"({"prompt": "a red circle", "seed": 1, "frames": 5})", 1000) == 979);
  const std::string named =
      R"({"prompt": "a red circle", "name": "a-red-circle-0123456789abcdef"})";
  CHECK(part_of(named, 1000) == 979);
  CHECK(part_of(R"({"prompt": "a red circle", "name": "a-red-circle-0123456789abcdeg"})", 1000) !=
        979);
  CHECK(part_of(R"({"prompt": "", "name": "0123456789abcdef"})", 1000) == part_of("", 1000));
  // A line that is no prompt has its own part.
  CHECK(part_of_prompt({{}, 3, "line 4", "why"}, 1000) == part_of("line 4", 1000));
}
