// Qwen2.5-VL against transformers', from the folders that it writes (scripts/golden/qwen.py).
// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/vlm/answer_score.h"
#include "models/vlm/qwen_input.h"
#include "models/vlm/token_choice.h"
#include "support/noise_picture.h"
#include "support/one_answer.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using models::QwenPicture;

namespace {

const std::string kQwen = std::string(VFM_GOLDEN) + "/qwen";

struct OpenedQwen {
  models::HfComponent folder;
  models::Qwen model;
  models::QwenInput input;
  explicit OpenedQwen(const std::string& name, DType compute = DType::f32)
      : folder(kQwen + "/" + name),
        model(folder, compute),
        input(models::QwenInput::from_folder(folder.folder(), model.config().vision)) {}

  QwenPicture still() const {
    const NoisePicture picture(40, 30, 0);
    const std::vector<std::vector<std::uint8_t>> frames{input.prepare(picture.view, 0)};
    return input.patches(frames, input.size({30, 40}, 0), true, 0);
  }
  /// The script resizes the frames of its videos as if they were still pictures.
  QwenPicture video(int width, int height, int count, std::uint32_t seed, double seconds) const {
    std::vector<std::vector<std::uint8_t>> frames;
    for (int i = 0; i < count; ++i)
      frames.push_back(
          input.prepare(NoisePicture(width, height, seed + static_cast<std::uint32_t>(i)).view, 0));
    return input.patches(frames, input.size({height, width}, 0), false, seconds);
  }
  std::vector<QwenPicture> pictures(const std::string& prompt) const {
    const auto clip = [&] { return video(33, 21, 5, 10, 0.7); };
    if (prompt == "image") return {still()};
    if (prompt == "video") return {clip()};
    if (prompt == "turns") return {video(9, 60, 2, 20, 1), still(), clip()};
    if (prompt == "long") return {video(16, 16, 8, 30, 1.5)};
    return {};
  }
};

}  // namespace

TEST_CASE("the patches of pictures and videos are those of transformers' processor") {
  const io::SafetensorsSet golden(kQwen, "outputs");
  const OpenedQwen opened("tied");
  const Tensor picture = models::read_floats(*golden.find("picture"));
  CHECK(farthest(opened.still().patches.floats(), picture.floats()) < 1e-6);
  const Tensor clip = models::read_floats(*golden.find("clip"));
  CHECK(farthest(opened.video(33, 21, 5, 10, 1).patches.floats(), clip.floats()) < 1e-6);
}

TEST_CASE("Qwen2.5-VL computes the logits of transformers, of images, videos, turns and text") {
  const io::SafetensorsSet golden(kQwen, "outputs");
  for (const std::string name : {"tied", "untied"}) {
    const OpenedQwen opened(name);
    const OpenedQwen low(name, DType::bf16);
    for (const std::string prompt : {"image", "video", "turns", "text", "long"}) {
      INFO(name << " " << prompt);
      const std::vector<std::int32_t> ids = ids_of(golden, name + "." + prompt + ".ids");
      const Tensor expected = models::read_floats(*golden.find(name + "." + prompt + ".logits"));
      const auto last = [&](const OpenedQwen& one) {
        return last_logits(one.model, ids, one.pictures(prompt), expected.size(0));
      };
      CHECK(farthest(last(opened).floats(), expected.floats()) < 1e-4);
      CHECK(farthest(last(low).floats(), expected.floats()) < 2);
    }
  }
}

TEST_CASE("a text is as likely as an answer as transformers has it") {
  const io::SafetensorsSet outputs(kQwen, "outputs");
  const std::string path = std::string(VFM_GOLDEN) + "/answer_scores.json";
  const Json golden = parse_json(io::read_file(path), path);
  for (const std::string name : {"tied", "untied"}) {
    const OpenedQwen opened(name);
    for (const std::string prompt : {"image", "video", "text"}) {
      INFO(name << " " << prompt);
      const Json& expected = golden.at(name + "." + prompt);
      std::vector<std::int32_t> ids = ids_of(outputs, name + "." + prompt + ".ids");
      const auto answer = expected["answer"].get<std::vector<std::int32_t>>();
      ids.insert(ids.end(), answer.begin(), answer.end());
      const std::vector<QwenPicture> pictures = opened.pictures(prompt);
      const std::vector<double> found =
          models::answer_log_probabilities(opened.model, ids, pictures, answer.size());
      REQUIRE(found.size() == expected["log_probabilities"].size());
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK(found[i] == Approx(expected["log_probabilities"][i].get<double>()).margin(1e-4));
      CHECK_THROWS_AS(models::answer_log_probabilities(opened.model, ids, pictures, ids.size()),
                      Error);
    }
  }
}

TEST_CASE("a probability is of numbers alone, however large they are") {
  const std::vector<float> large{1000, 1000, 0};
  CHECK(models::log_probability(large, 1) == Approx(-std::log(2.0)));
  CHECK(models::log_probability(large, 2) == Approx(-1000 - std::log(2.0)));
  CHECK_THROWS_WITH(models::log_probability(large, 3), Catch::Contains("not in a vocabulary"));
  CHECK_THROWS_WITH(models::log_probability(std::vector<float>{0, NAN}, 0),
                    Catch::Contains("damaged"));
}

TEST_CASE("what it writes greedily is what transformers' generate() writes") {
  const io::SafetensorsSet golden(kQwen, "outputs");
  for (const std::string name : {"tied", "untied"}) {
    const OpenedQwen opened(name);
    for (const std::string prompt : {"image", "video", "turns", "text"})
      for (const double penalty : {1.0, 1.3}) {
        INFO(name << " " << prompt << " " << penalty);
        const std::string key = fmt::format("{}.{}.greedy{:.1f}", name, prompt, penalty);
        const std::vector<std::int32_t> expected = ids_of(golden, key);
        const std::vector<std::int32_t> ids = ids_of(golden, name + "." + prompt + ".ids");
        CHECK(greedy_tokens({opened.model, ids, opened.pictures(prompt), 12}, ids, penalty,
                            expected.size()) == expected);
      }
  }
}

TEST_CASE("fields that a Qwen2.5-VL's config.json leaves out are transformers'") {
  const Json golden = parse_json(io::read_file(kQwen + "/defaults.json"), "defaults");
  Json given = Json::parse(R"({"hidden_size": 8192, "vision_config": {"out_hidden_size": 8192}})");
  const auto of = [&] { return models::QwenConfig::from_json(given, "'config.json'"); };
  const models::QwenConfig config = of();
  const Json &text = golden["text"], &vision = golden["vision"];
  const auto& t = config.text;
  CHECK(t.width == text["hidden_size"]);
  CHECK(t.heads == text["num_attention_heads"]);
  CHECK(t.vocabulary == text["vocab_size"]);
  CHECK(t.feed_forward == text["intermediate_size"]);
  CHECK(t.layers == text["num_hidden_layers"]);
  CHECK(t.key_heads == text["num_key_value_heads"].get<int>());
  CHECK(t.epsilon == text["rms_norm_eps"].get<float>());
  CHECK(t.positions == text["max_position_embeddings"]);
  CHECK(t.theta == text["rope_parameters"]["rope_theta"]);
  CHECK_FALSE(t.tied);
  CHECK(config.ends == std::vector<std::int32_t>{text["eos_token_id"].get<std::int32_t>()});
  const auto& v = config.vision;
  CHECK(v.depth == vision["depth"]);
  CHECK(v.width == vision["hidden_size"]);
  CHECK(v.feed_forward == vision["intermediate_size"]);
  CHECK(v.heads == vision["num_heads"]);
  CHECK(v.patch == vision["patch_size"]);
  CHECK(v.merge == vision["spatial_merge_size"]);
  CHECK(v.temporal_patch == vision["temporal_patch_size"]);
  CHECK(v.tokens_per_second == vision["tokens_per_second"]);
  CHECK(v.window == vision["window_size"]);
  CHECK(v.full_blocks == vision["fullatt_block_indexes"].get<std::vector<int>>());
  CHECK(config.image_token == golden["image_token_id"]);
  CHECK(config.video_token == golden["video_token_id"]);

  given =
      Json::parse(R"({"hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4})");
  CHECK(of().vision.out_width == vision["out_hidden_size"]);
  const auto refused = [&](const char* field, const Json& value) {
    const Json before = given;
    given[Json::json_pointer(field)] = value;
    const std::string message = usage_error([&] { of(); });
    given = before;
    return message;
  };
  CHECK_THAT(refused("/hidden_act", "gelu"), Catch::Contains("'gelu' is not supported"));
  CHECK_THAT(refused("/num_key_value_heads", 5), Catch::Contains("do not share 5 key heads"));
  CHECK_THAT(refused("/hidden_size", 3585), Catch::Contains("has no 28 heads"));
  CHECK_THAT(refused("/vocab_size", -1), Catch::Contains("\"vocab_size\" is -1"));
  CHECK_THAT(refused("/video_token_id", Json::array()), Catch::Contains("[] is not one token"));
  CHECK_THAT(refused("/vocab_size", 1000), Catch::Contains("is not in the vocabulary"));
  CHECK_THAT(refused("/rope_scaling", {{"type", "yarn"}}), Catch::Contains("'yarn'"));
  CHECK_THAT(refused("/rope_scaling", {{"type", "mrope"}, {"mrope_section", {16, 24, 25}}}),
             Catch::Contains("are not the 64 pairs"));
  CHECK_THAT(refused("/vision_config", {{"out_hidden_size", 2048}}), Catch::Contains("2048"));
  CHECK_THAT(refused("/vision_config", {{"in_chans", 4}}), Catch::Contains("3 channels"));
  CHECK_THAT(refused("/vision_config", 7), Catch::Contains("is not an object"));
  CHECK_THAT(refused("/vision_config", {{"patch_size", 40}, {"window_size", 160}}),
             Catch::Contains("impossible sizes"));
  given["use_sliding_window"] = true;
  CHECK_THAT(refused("/max_window_layers", 28), Catch::Contains("sliding windows"));
}

TEST_CASE("frames have sizes of the processor's rule, and are taken evenly") {
  const Json golden = parse_json(io::read_file(kQwen + "/defaults.json"), "defaults");
  for (const Json& s : golden["sizes"]) {
    INFO(dump_json(s));
    CHECK(models::smart_resize({s[0], s[1]}, 28, s[2], s[3]) == models::PictureSize{s[4], s[5]});
  }
  CHECK_THROWS_WITH(models::smart_resize({1, 201}, 28, 784, 7840), Catch::Contains("200 times"));

  using Frames = std::vector<std::int64_t>;
  CHECK(models::qwen_frames(1, 25, 2, 2) == Frames{0});
  CHECK(models::qwen_frames(3, 25, 2, 2) == Frames{0, 2});
  CHECK(models::qwen_frames(10, 30, 2, 2) == Frames{0, 3, 6, 9});
  CHECK(models::qwen_frames(72, 24, 2, 2) == Frames{0, 14, 28, 43, 57, 71});
  CHECK(models::qwen_frames(256, 24, 2, 2).size() == 20);
  CHECK(models::qwen_frames(2000, 1, 2, 2).size() == 768);
  CHECK(models::qwen_frames(256, 24, 2, 2).back() == 255);

  models::QwenInput input;
  CHECK(input.size({1080, 1920}, 20) ==
        models::smart_resize({1080, 1920}, 28, 128 * 784, 768 * 784));
  // 115,200 tokens in all: 300 for each of 384 pairs.
  CHECK(input.size({1080, 1920}, 768) ==
        models::smart_resize({1080, 1920}, 28, 128 * 784, 300 * 784));
  input.frame_tokens = 16;
  const models::PictureSize few = input.size({1080, 1920}, 8);
  CHECK(few.height * few.width <= 17 * 784);
}

TEST_CASE("settings of a processor that would change its pictures are refused") {
  const models::QwenVisionConfig vision;
  const auto refused = [&](const char* json) {
    return usage_error([&] { models::QwenInput::from_json(Json::parse(json), vision, "'p'"); });
  };
  CHECK_THAT(refused(R"({"do_resize": false})"), Catch::Contains("do_resize"));
  CHECK_THAT(refused(R"({"do_pad": true})"), Catch::Contains("do_pad"));
  CHECK_THAT(refused(R"({"patch_size": 16})"), Catch::Contains("not the model's, 14"));
  CHECK_THAT(refused(R"({"image_mean": [0.5, 0.5]})"), Catch::Contains("three numbers"));
  CHECK_THAT(refused(R"({"image_std": [0.5, 0, 0.5]})"), Catch::Contains("image_std"));
  CHECK_THAT(refused(R"({"image_processor_type": "CLIPImageProcessor"})"), Catch::Contains("CLIP"));
  CHECK_THAT(refused(R"({"min_pixels": 10, "max_pixels": 9})"), Catch::Contains("10 to 9"));
  const auto size = models::QwenInput::from_json(
      Json::parse(R"({"size": {"shortest_edge": 3136, "longest_edge": 12845056}})"), vision, "'p'");
  CHECK(size.least == 3136);
  CHECK(size.most == 12845056);
}

TEST_CASE("the next token is the likeliest, or drawn from the likeliest") {
  const std::vector<std::int32_t> none;
  const auto choose = [](std::vector<float> logits, const std::vector<std::int32_t>& before,
                         const models::TokenChoice& choice, double chance) {
    return models::choose_token(logits, before, choice, chance);
  };
  CHECK(choose({1, 3, 3, 2}, none, {}, 0.99) == 1);
  // 3 / 1.5 = 2, and -1 * 1.5 is less.
  CHECK(choose({1, 3, 2.5f, 2}, {1, 1}, {.repetition_penalty = 1.5}, 0.5) == 2);
  CHECK(choose({-1, -1.2f, -9}, {0}, {.repetition_penalty = 1.5}, 0.5) == 1);
  // Of probabilities 0.1, 0.6, 0.3.
  const std::vector<float> logits{std::log(1.f), std::log(6.f), std::log(3.f)};
  const models::TokenChoice drawn{.temperature = 1};
  CHECK(choose(logits, none, drawn, 0.59) == 1);
  CHECK(choose(logits, none, drawn, 0.61) == 2);
  CHECK(choose(logits, none, drawn, 0.91) == 0);
  CHECK(choose(logits, none, {.temperature = 1, .top_p = 0.7}, 0.99) == 2);
  CHECK(choose(logits, none, {.temperature = 1, .top_p = 0.5}, 0.99) == 1);
  CHECK(choose(logits, none, {.temperature = 0.01}, 0.99) == 1);
  CHECK_THROWS_WITH(choose({1, NAN}, none, {}, 0.5), Catch::Contains("no numbers"));
  CHECK_THROWS_WITH(choose({1, INFINITY}, none, drawn, 0.5), Catch::Contains("no numbers"));
}

TEST_CASE("an answer has the same bits whatever else the model is asked") {
  const io::SafetensorsSet golden(kQwen, "outputs");
  const OpenedQwen opened("tied");
  const std::vector<std::int32_t> ids = ids_of(golden, "tied.video.ids");
  const auto logits = [&](const models::QwenAnswer& answer) {
    const Tensor all = all_logits(answer, ids.size());
    return std::vector<float>(all.floats().begin(), all.floats().end());
  };
  const models::QwenAnswer first(opened.model, ids, opened.pictures("video"), 2);
  const std::vector<float> alone = logits(first);
  models::QwenAnswer other(opened.model, ids_of(golden, "tied.turns.ids"), opened.pictures("turns"),
                           2);
  write_token(other, 5);
  CHECK(logits(models::QwenAnswer(opened.model, ids, opened.pictures("video"), 9)) == alone);
  CHECK(logits(first) == alone);
}

TEST_CASE(
    "words that are read behind what several prompts have in common are those of a whole prompt") {
  const io::SafetensorsSet golden(kQwen, "outputs");
  const OpenedQwen opened("untied");
  for (const std::string prompt : {"image", "video", "long"}) {
    const std::vector<std::int32_t> ids = ids_of(golden, "untied." + prompt + ".ids");
    const std::span<const std::int32_t> all = ids;
    const std::size_t behind = models::qwen_head(ids, opened.model);
    REQUIRE(behind > 5);
    REQUIRE(behind < ids.size());
    const models::QwenAnswer head(opened.model, all.first(behind), opened.pictures(prompt), 0);
    models::QwenAnswer whole(opened.model, ids, opened.pictures(prompt), 1);
    models::QwenAnswer first(head, static_cast<std::int64_t>(ids.size()) + 1);
    models::QwenAnswer other(head, static_cast<std::int64_t>(ids.size()) + 9);
    models::QwenAnswer alone(opened.model, all.first(behind), opened.pictures(prompt),
                             static_cast<std::int64_t>(ids.size()) + 3);
    other.read(std::vector<std::int32_t>{7, 8, 9});
    for (models::QwenAnswer* answer : {&first, &alone}) {
      answer->read(all.subspan(behind));
      CHECK(farthest(next_logits(*answer).floats(), next_logits(whole).floats()) < 1e-4);
    }
    CHECK(farthest(next_logits(first).floats(), next_logits(alone).floats()) == 0);
    for (models::QwenAnswer* answer : {&first, &alone, &whole})
      write_token(*answer, 3);
    CHECK(farthest(next_logits(first).floats(), next_logits(whole).floats()) < 1e-4);
    CHECK(farthest(next_logits(first).floats(), next_logits(alone).floats()) == 0);
  }
  CHECK(models::qwen_head(std::vector<std::int32_t>{1, 2}, opened.model) == 0);
}

TEST_CASE("a video of any length has places that can be counted, or is refused") {
  models::QwenConfig config;
  config.vision.merge = 1;
  config.vision.tokens_per_second = 2;
  const std::vector<std::int32_t> ids{1, config.video_token, config.video_token, 2};
  const auto places = [&](double seconds) {
    const models::QwenSight sight{{2, 1, 1}, false, seconds};
    return models::qwen_places(ids, std::span(&sight, 1), config);
  };
  CHECK(places(1).back() == models::QwenPlace{4, 4, 4});
  CHECK(places(3600).back() == models::QwenPlace{7202, 7202, 7202});
  CHECK_THROWS_WITH(places(1e10), Catch::Contains("longer video"));
  CHECK_THROWS_WITH(places(1e300), Catch::Contains("longer video"));
}

TEST_CASE("prompts that do not fit what is seen are errors") {
  const io::SafetensorsSet golden(kQwen, "outputs");
  const OpenedQwen opened("tied");
  std::vector<std::int32_t> ids = ids_of(golden, "tied.video.ids");
  const auto answer = [&](const std::string& prompt) {
    models::QwenAnswer(opened.model, ids, opened.pictures(prompt), 1);
  };
  CHECK_THROWS_WITH(answer("text"), Catch::Contains("more pictures than there are"));
  CHECK_THROWS_WITH(answer("image"), Catch::Contains("tokens of what is seen"));
  CHECK_THROWS_WITH(answer("turns"), Catch::Contains("what is seen"));
  ids = ids_of(golden, "tied.text.ids");
  CHECK_THROWS_WITH(answer("image"), Catch::Contains("no place"));
  ids.back() = 100000;
  CHECK_THROWS_WITH(answer("text"), Catch::Contains("not in the vocabulary"));
  models::QwenAnswer full(opened.model, ids_of(golden, "tied.text.ids"), {}, 1);
  write_token(full, 1);
  CHECK_THROWS_WITH(write_token(full, 1), Catch::Contains("memory"));
}
