// SmolVLM and Idefics3 against transformers', from the folders that it writes
// (scripts/golden/smolvlm.py).
// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/smol.h"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/vlm/caption_family.h"
#include "models/vlm/smol_input.h"
#include "models/vlm/smol_words.h"
#include "support/noise_picture.h"
#include "support/one_answer.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using models::QwenPicture;

namespace {

const std::string kSmol = std::string(VFM_GOLDEN) + "/smolvlm";

Json smol_golden() {
  return parse_json(io::read_file(kSmol + "/golden.json"), "golden.json");
}

/// Frames of the script's videos: noise of seeds from `seed` on.
std::vector<std::vector<std::uint8_t>> noise_frames(
    std::size_t count, std::uint32_t seed,
    const std::function<std::vector<std::uint8_t>(const models::PictureView&)>& prepare) {
  std::vector<std::vector<std::uint8_t>> frames;
  for (std::uint32_t i = 0; i < count; ++i)
    frames.push_back(prepare(NoisePicture(33, 21, seed + i).view));
  return frames;
}

struct OpenedSmol {
  models::HfComponent folder;
  models::Smol model;
  models::SmolInput input;
  explicit OpenedSmol(const std::string& name, DType compute = DType::f32, bool int8 = false)
      : folder(kSmol + "/" + name),
        model(folder, compute, int8),
        input(models::SmolInput::from_folder(folder.folder(), model.config())) {}

  QwenPicture still(int width, int height, std::uint32_t seed) const {
    const std::vector<std::vector<std::uint8_t>> one{
        input.prepare(NoisePicture(width, height, seed).view, true)};
    return input.patches(one, true);
  }
  QwenPicture video(std::size_t frames, std::uint32_t seed) const {
    return input.patches(
        noise_frames(frames, seed, [&](const auto& view) { return input.prepare(view, false); }),
        false);
  }
  std::vector<QwenPicture> pictures(const std::string& prompt) const {
    if (prompt == "image") return {still(40, 30, 0)};
    if (prompt == "video") return {video(3, 10)};
    if (prompt == "turns") return {still(40, 30, 0), still(16, 16, 2), video(2, 20)};
    return {};
  }
};

/// What a tile's bytes are to the model: [channel, row, column].
std::vector<float> pixel_values(std::span<const std::uint8_t> tiles, int tile) {
  std::vector<float> values;
  const auto size = static_cast<std::size_t>(tile * tile);
  for (std::size_t begin = 0; begin < tiles.size(); begin += 3 * size)
    for (std::size_t channel = 0; channel < 3; ++channel)
      for (std::size_t i = 0; i < size; ++i)
        values.push_back(
            (static_cast<float>(tiles[begin + 3 * i + channel] * 0.00392156862745098) - 0.5f) /
            0.5f);
  return values;
}

std::string hash_of_values(std::span<const float> values) {
  return Hasher().update(values.data(), values.size_bytes()).hex128();
}

}  // namespace

TEST_CASE("tiles of pictures and frames of videos are those of transformers' processor") {
  const Json golden = smol_golden();
  for (const std::string name : {"smolvlm", "idefics3"}) {
    const OpenedSmol opened(name);
    for (const Json& one : golden["tiles"][name]) {
      INFO(name << " " << dump_json(one));
      const int width = one["picture"][0], height = one["picture"][1];
      const NoisePicture picture(width, height, one["seed"].get<std::uint32_t>());
      const models::SmolTiles tiles = opened.input.tiles({height, width});
      CHECK(tiles == models::SmolTiles{one["rows"], one["columns"]});
      const std::vector<std::uint8_t> still = opened.input.prepare(picture.view, true);
      const std::vector<float> values = pixel_values(still, opened.input.still.tile);
      CHECK(hash_of_values(values) == one["still"].get<std::string>());
      CHECK(hash_of_values(
                pixel_values(opened.input.prepare(picture.view, false), opened.input.still.tile)) ==
            one["frame"].get<std::string>());
      // A patch has each channel by itself, and what does not fill one is left out.
      const QwenPicture made = opened.input.patches(std::span(&still, 1), true);
      const int side = opened.input.side(), p = opened.input.patch, t = opened.input.still.tile;
      REQUIRE(made.sight.grid == models::QwenGrid{tiles.count(), side, side});
      std::vector<float> patches;
      for (int n = 0; n < tiles.count(); ++n)
        for (int at = 0; at < side * side; ++at)
          for (int c = 0; c < 3; ++c)
            for (int i = 0; i < p * p; ++i)
              patches.push_back(values[static_cast<std::size_t>(
                  ((n * 3 + c) * t + at / side * p + i / p) * t + at % side * p + i % p)]);
      CHECK(farthest(made.patches.floats(), patches) == 0);
    }
  }
}

TEST_CASE(
    "SmolVLM and Idefics3 compute the logits of transformers, of pictures, videos and turns") {
  const io::SafetensorsSet golden(kSmol, "outputs");
  for (const std::string name : {"smolvlm", "idefics3"}) {
    const OpenedSmol opened(name), low(name, DType::bf16), coded(name, DType::f32, true);
    for (const std::string prompt : {"image", "video", "turns", "text"}) {
      INFO(name << " " << prompt);
      const std::vector<std::int32_t> ids = ids_of(golden, name + "." + prompt + ".ids");
      const Tensor expected = models::read_floats(*golden.find(name + "." + prompt + ".logits"));
      const auto last = [&](const OpenedSmol& one) {
        return last_logits(one.model, ids, one.pictures(prompt), expected.size(0));
      };
      CHECK(farthest(last(opened).floats(), expected.floats()) < 1e-4);
      CHECK(farthest(last(low).floats(), expected.floats()) < 1);
      const double rounding = farthest(last(coded).floats(), expected.floats());
      CHECK(rounding > 1e-4);
      CHECK(rounding < 1);
      for (const double penalty : {1.0, 1.3}) {
        const std::string key = fmt::format("{}.{}.greedy{:.1f}", name, prompt, penalty);
        const std::vector<std::int32_t> tokens = ids_of(golden, key);
        CHECK(greedy_tokens({opened.model, ids, opened.pictures(prompt), 12}, ids, penalty,
                            tokens.size()) == tokens);
      }
    }
  }
}

TEST_CASE("a captioner writes the prompts of transformers' processors for pictures and videos") {
  const io::SafetensorsSet golden(kSmol, "outputs");
  for (const std::string name : {"smolvlm", "idefics3"}) {
    INFO(name);
    const models::HfComponent folder(kSmol + "/" + name);
    const auto captioner = models::make_smol_captioner(folder, {});
    models::SeenFrames seen;
    seen.still = true;
    seen.width = 40;
    seen.height = 30;
    seen.frames.push_back(captioner->prepare(NoisePicture(40, 30, 0).view, 0));
    CHECK(captioner->prompt(seen, "Describe.") == ids_of(golden, name + ".image.ids"));
    CHECK(captioner->picture(seen).sight.grid.frames == (name == "smolvlm" ? 10 : 5));
    const std::vector<std::int64_t> plan = captioner->plan(50, 25, 1.5);
    CHECK(Json(plan) == smol_golden()["prompts"][name]["frames"][0]);
    seen = {};
    for (const std::int64_t frame : plan)
      seen.times.push_back(static_cast<double>(frame) / 25);
    seen.seconds = 2;
    CHECK_THROWS_WITH(captioner->prompt(seen, "x"), Catch::Contains("without their times"));
    seen.frames = noise_frames(
        plan.size(), 10, [&](const auto& view) { return captioner->prepare(view, plan.size()); });
    CHECK(captioner->prompt(seen, "Describe in detail.") == ids_of(golden, name + ".video.ids"));
    for (const std::string mark : {"<image>", "<video>"})
      if (mark == "<image>" || name == "smolvlm")
        CHECK_THAT(usage_error([&] { captioner->check_prompt("What is " + mark + "?"); }),
                   Catch::Contains("does the prompt have one?"));
    CHECK(captioner->fps() == 1);
    CHECK(captioner->ends() == std::vector<std::int32_t>{332, 345});
  }
}

TEST_CASE("tiles, frames, places, times and numbers follow the rules of transformers") {
  const Json golden = smol_golden();
  models::SmolInput input;
  input.still.longest = 2048;
  input.still.tile = 512;
  for (const Json& one : golden["grids"]) {
    INFO(dump_json(one));
    CHECK(input.tiles({one[1], one[0]}) == models::SmolTiles{one[2], one[3]});
  }
  for (const Json& one : golden["frames"]) {
    INFO(dump_json(one));
    input.most_frames = one[3];
    CHECK(Json(input.frames(one[0], one[1], one[2])) == one[4]);
  }
  CHECK(input.frames(std::numeric_limits<std::int64_t>::max(), 25, 1).size() == 5);
  for (const Json& one : golden["places"]) {
    INFO(dump_json(one));
    CHECK(Json(models::smol_places(one[0], one[1])) == one[2]);
  }
  for (const auto& [number, words] : golden["words"].items())
    CHECK(models::count_in_words(std::stoi(number)) == words.get<std::string>());
  CHECK_THROWS_AS(models::count_in_words(-1), Error);
  for (const Json& one : golden["videos"]) {
    const double rate = one[1];
    std::vector<double> times;
    for (const Json& frame : one[0])
      times.push_back(frame.get<double>() / rate);
    CHECK(models::smol_video_text(times, one[2].get<double>() / rate, 1) ==
          one[3].get<std::string>());
  }
}

TEST_CASE("fields that a SmolVLM's config.json leaves out are transformers'") {
  const Json golden = smol_golden()["defaults"];
  Json given = Json::parse(R"({"image_token_id": 31999})");
  const auto of = [&] { return models::SmolConfig::from_json(given, "'config.json'"); };
  const models::SmolConfig config = of();
  const Json &text = golden["text_config"], &vision = golden["vision_config"];
  CHECK(config.text.width == text["hidden_size"]);
  CHECK(config.text.heads == text["num_attention_heads"]);
  CHECK(config.text.key_heads == text["num_key_value_heads"]);
  CHECK(config.text.vocabulary == text["vocab_size"]);
  CHECK(config.text.feed_forward == text["intermediate_size"]);
  CHECK(config.text.layers == text["num_hidden_layers"]);
  CHECK(config.text.positions == text["max_position_embeddings"]);
  CHECK(config.text.epsilon == text["rms_norm_eps"].get<float>());
  CHECK(config.text.theta == text["rope_parameters"]["rope_theta"]);
  CHECK(config.ends == std::vector<std::int32_t>{text["eos_token_id"].get<std::int32_t>()});
  CHECK_FALSE(config.text.tied);
  CHECK_FALSE(config.text.biases);
  CHECK(config.vision.stack.width == vision["hidden_size"]);
  CHECK(config.vision.stack.heads == vision["num_attention_heads"]);
  CHECK(config.vision.stack.layers == vision["num_hidden_layers"]);
  CHECK(config.vision.stack.feed_forward == vision["intermediate_size"]);
  CHECK(config.vision.stack.epsilon == vision["layer_norm_eps"].get<float>());
  CHECK(config.vision.image_size == vision["image_size"]);
  CHECK(config.vision.patch == vision["patch_size"]);
  CHECK(config.merge == golden["scale_factor"]);
  CHECK(models::SmolConfig{}.image_token == golden["image_token_id"]);

  const auto refused = [&](const char* field, const Json& value) {
    const Json before = given;
    given[Json::json_pointer(field)] = value;
    const std::string message = usage_error([&] { of(); });
    given = before;
    return message;
  };
  CHECK_THAT(refused("/text_config/model_type", "mistral"), Catch::Contains("is a mistral"));
  CHECK_THAT(refused("/text_config/attention_bias", true), Catch::Contains("attention_bias"));
  CHECK_THAT(refused("/text_config/hidden_act", "gelu"), Catch::Contains("'gelu'"));
  CHECK_THAT(refused("/text_config/head_dim", 64), Catch::Contains("heads of 64 columns"));
  CHECK_THAT(refused("/text_config/num_key_value_heads", 5), Catch::Contains("5 key heads"));
  CHECK_THAT(refused("/text_config/hidden_size", -1), Catch::Contains("\"hidden_size\" is -1"));
  CHECK_THAT(refused("/text_config/rope_scaling", {{"type", "yarn"}}), Catch::Contains("'yarn'"));
  CHECK_THAT(refused("/text_config/rope_scaling", {{"rope_type", "llama3"}}),
             Catch::Contains("\"factor\""));
  CHECK_THAT(refused("/text_config", 7), Catch::Contains("is not an object"));
  CHECK_THAT(refused("/vision_config", {{"num_channels", 4}}), Catch::Contains("channels"));
  CHECK_THAT(refused("/vision_config", {{"num_attention_heads", 7}}), Catch::Contains("7 heads"));
  CHECK_THAT(refused("/vision_config", {{"hidden_size", 1 << 24}}), Catch::Contains("its width"));
  CHECK_THAT(refused("/scale_factor", 8), Catch::Contains("scale_factor"));
  CHECK_THAT(refused("/image_token_id", 32000), Catch::Contains("is not in the vocabulary"));
  CHECK_THAT(refused("/image_token_id", Json::array()), Catch::Contains("[] is not one token"));
}

TEST_CASE("settings of SmolVLM's processor that would change its tiles are refused") {
  const auto refused = [&](const char* json) {
    return usage_error([&] { models::SmolPixels::from_json(Json::parse(json), "'p'"); });
  };
  CHECK_THAT(refused(R"({"do_resize": false})"), Catch::Contains("do_resize"));
  CHECK_THAT(refused(R"({"do_center_crop": true})"), Catch::Contains("do_center_crop"));
  CHECK_THAT(refused(R"({"size": {"height": 9, "width": 9}})"), Catch::Contains("longest_edge"));
  CHECK_THAT(refused(R"({"size": {"longest_edge": 4097}})"), Catch::Contains("above 4096"));
  CHECK_THAT(refused(R"({"max_image_size": {"longest_edge": 16}})"), Catch::Contains("16 tiles"));
  CHECK_THAT(refused(R"({"resample": 0})"), Catch::Contains("resample"));
  CHECK_THAT(refused(R"({"image_mean": [0.5]})"), Catch::Contains("three numbers"));
  CHECK_THAT(refused(R"({"image_std": [0.5, 0, 0.5]})"), Catch::Contains("image_std"));
  CHECK_THAT(refused(R"({"image_processor_type": "CLIPImageProcessor"})"), Catch::Contains("CLIP"));
}

TEST_CASE("what a folder says of videos is what SmolVLM's processor of videos makes of it") {
  const TemporaryFolder folder;
  const models::SmolConfig config = OpenedSmol("smolvlm").model.config();
  const auto write = [&](const char* name, const Json& json) {
    folder.write(name, dump_json(json));
  };
  const auto read = [&] { return models::SmolInput::from_folder(folder.path, config); };
  CHECK_THAT(usage_error(read), Catch::Contains("has no preprocessor_config.json"));
  // The size of pictures goes before that of videos.
  const Json tile = {{"longest_edge", 512}},
             sampling = {{"fps", 2}, {"max_frames", 9}, {"video_size", {{"longest_edge", 16}}}};
  Json own = {
      {"size", {{"longest_edge", 2048}}}, {"max_image_size", tile}, {"video_sampling", sampling}};
  write("preprocessor_config.json", own);
  const Json sizes = smol_golden()["sizes"];
  CHECK(read().video.longest == sizes[0]);
  CHECK(read().fps == 2);
  CHECK(read().most_frames == 9);
  own.erase("size");
  write("preprocessor_config.json", own);
  CHECK(read().video.longest == sizes[1]);
  CHECK(read().still.longest == 4 * 364);
  // As transformers 5 writes both into one file.
  std::filesystem::remove(folder / "preprocessor_config.json");
  Json video = {{"video_processor_type", "SmolVLMVideoProcessor"},
                {"num_frames", 5},
                {"fps", 3},
                {"size", {{"longest_edge", 768}}},
                {"max_image_size", tile},
                {"image_std", {1, 1, 1}},
                {"return_metadata", false}};
  write("processor_config.json",
        {{"image_processor", {{"max_image_size", tile}}}, {"video_processor", video}});
  CHECK(read().video.longest == 768);
  CHECK(read().video.rule.deviation[0] == 1);
  CHECK(read().still.rule.deviation[0] == 0.5);
  CHECK(read().most_frames == 5);
  CHECK(read().fps == 3);
  video["max_image_size"]["longest_edge"] = 256;
  write("video_preprocessor_config.json", video);
  CHECK_THAT(usage_error(read),
             Catch::Contains("tiles of videos have 256 pixels, of pictures 512"));
  video["fps"] = 0;
  video["max_image_size"] = tile;
  write("video_preprocessor_config.json", video);
  CHECK_THAT(usage_error(read), Catch::Contains("\"fps\" is 0"));
  video["fps"] = 1;
  video["num_frames"] = 1024;
  video["max_image_size"]["longest_edge"] = 256;
  write("video_preprocessor_config.json", video);
  const Json small = {{"image_processor", {{"max_image_size", {{"longest_edge", 256}}}}}};
  write("processor_config.json", small);
  CHECK(read().most_frames == 1024);
  // The pixels of 4096 frames are as many as may be, their tokens are not.
  video["num_frames"] = 4096;
  write("video_preprocessor_config.json", video);
  CHECK_THAT(usage_error(read), Catch::Contains("4096 tiles of 256 pixels along a side, 1024"));
  video["max_image_size"] = tile;
  write("video_preprocessor_config.json", video);
  write("processor_config.json", {{"image_processor", {{"max_image_size", tile}}}});
  CHECK_THAT(usage_error(read), Catch::Contains("4096 tiles of 512 pixels along a side"));
}

TEST_CASE("a prompt that does not fit SmolVLM's pictures, and patches of no tile, are errors") {
  const io::SafetensorsSet golden(kSmol, "outputs");
  const OpenedSmol opened("smolvlm");
  const std::vector<std::int32_t> ids = ids_of(golden, "smolvlm.video.ids");
  const auto answer = [&](const std::string& prompt) {
    models::QwenAnswer(opened.model, ids, opened.pictures(prompt), 1);
  };
  CHECK_THROWS_WITH(answer("text"), Catch::Contains("for pictures that have 0"));
  CHECK_THROWS_WITH(answer("image"), Catch::Contains("12 tokens for pictures"));
  QwenPicture picture = opened.video(1, 0);
  picture.sight.grid.rows = 3;
  CHECK_THROWS_WITH(opened.model.look(picture), Catch::Contains("are not those of 1 tiles"));
  picture.sight.grid = {1, 3, 3};
  CHECK_THROWS_WITH(opened.model.look(picture), Catch::Contains("are not those"));
  const std::vector<std::uint8_t> cut(7);
  CHECK_THROWS_WITH(opened.input.patches(std::span(&cut, 1), true),
                    Catch::Contains("is not made of tiles"));
}
