// Scores of captions: what models say of them, what the text itself does, and what is one sample's
// own fault.
// SPDX-License-Identifier: Apache-2.0
#include "columns/score/score.h"

#include <catch2/catch.hpp>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/hash.h"
#include "columns/caption/written_caption.h"
#include "columns/embed/clip_scores.h"
#include "columns/score/caption_quality.h"
#include "columns/score/score_frames.h"
#include "media/container/picture_file.h"
#include "models/text_encoder.h"
#include "support/temporary_folder.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

const std::string kCaptioner = std::string(VFM_GOLDEN) + "/qwen/untied";

struct Scored {
  long errors = 0;
  std::vector<Json> faults;
  std::map<std::string, Json> jsons;
  std::uint64_t done = 0;
};

Scored score_all(ScoreOptions options, const TemporaryFolder& folder) {
  options.inputs = {folder / "a.tar"};
  options.force = true;
  options.model.frame_tokens = 4;
  Run run;
  Scored all;
  all.errors = score_captions(options, run.slots, run, run.manifest);
  all.faults = errors_in(folder / "score-errors.jsonl");
  all.jsons = jsons_of(folder / "a.score.tar");
  all.done = run.done;
  return all;
}

shard::Sample scored_sample(const std::string& key, const std::string& mp4, const std::string& txt,
                            const std::string& json = "{}") {
  return {key, {{"mp4", mp4}, {"json", json}, {"txt", txt}}};
}

std::vector<std::string> field_names(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [name, value] : json.items())
    names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("costs of scores are means over clips, with those that were not shown again") {
  ScoreCosts costs;
  CHECK(costs.to_json().is_null());
  CHECK(costs.words().empty());
  costs.add(3e12, 1e12);
  costs.add(0, 2e12);
  costs.add(1.5e12, 0);
  CHECK(costs.to_json() ==
        Json{{"clips", 3}, {"written", 1}, {"flops", {{"with_video", 1.5e12}, {"alone", 1e12}}}});
  CHECK(costs.words() ==
        "a caption of the sample costs the captioner 1.5 TFLOP with the video, which it need not "
        "see again for 1 of 3, and 1 without\n");
}

TEST_CASE("without models a caption has the checks of its text, and its hash") {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar", {scored_sample("good", "x", " A red\n circle. "),
                               scored_sample("again", "x", "the the the the the the"),
                               scored_sample("none", "x", " \n")});
  const Scored all = score_all({}, folder);
  CHECK(all.errors == 1);
  CHECK(all.done == 3);
  CHECK(all.jsons.at("good") ==
        Json{{"caption_repetition", 0.0},
             {"caption_clean", 1.0},
             {"caption_script", "Latin"},
             {"caption_ended", true},
             {"caption_scored_by",
              {{"rule", kQualityWeights.rule}, {"caption", hash_hex("A red circle.")}}}});
  CHECK(all.jsons.at("again")["caption_repetition"] == 0.75);
  CHECK(all.jsons.at("again")["caption_ended"] == false);
  CHECK(all.jsons.at("none").empty());
  REQUIRE(all.faults.size() == 1);
  CHECK(all.faults[0]["input"] == "none of '" + folder.path + "/a.tar'");
  CHECK(all.faults[0]["error"] == "has no caption to score: vfm-caption makes some");
  CHECK(all.faults[0]["code"] == "missing");
}

TEST_CASE("captions are scored by models as their parts are by hand, and what fails costs itself") {
  const TemporaryFolder folder;
  const std::string red = make_video(20, kRed), clip = make_clip_model(folder / "clip");
  write_tar(folder / "a.tar", {scored_sample("two", red, "A red circle. It moves."),
                               scored_sample("bad", "x", "One."),
                               scored_sample("mark", red, "A <|video_pad|> circle."),
                               scored_sample("odd", red, "Blue.", "{")});
  ScoreOptions options;
  options.captioner = kCaptioner;
  options.clip = clip;
  options.model.window = 16;
  ScoreCosts costs;
  options.costs = &costs;
  const Scored all = score_all(options, folder);
  CHECK(all.errors == 2);

  const models::CaptionModel captioner(kCaptioner, DType::f32, 4);
  const auto pictures = models::make_picture_encoder(clip, Device::cpu, DType::f32);
  const auto texts = models::make_text_encoder(models::text_encoder_config(clip, 512, DType::f32));
  const ScoreFrames frames = take_score_frames(
      {"mp4", red}, "it", {&captioner, pictures.get(), captioner.fps(), 16}, nullptr);
  const std::string& prompt = options.model.video_prompt;
  const auto expected = [&](const std::string& caption, const std::vector<std::string>& sentences) {
    CaptionScores scores;
    scores.text = text::check_text(caption);
    scores.gain = caption_gain(captioner.log_probabilities(&frames.seen, prompt, caption),
                               captioner.log_probabilities(nullptr, prompt, caption));
    std::vector<std::vector<float>> seen = pictures->encode_prepared(frames.frames), said;
    for (const std::string& sentence : sentences)
      said.push_back(texts->encode(sentence).values);
    for (auto* vectors : {&seen, &said})
      for (std::vector<float>& vector : *vectors)
        models::normalise(vector);
    scores.fits = sentence_fits(said, seen);
    return scores.fields();
  };
  Json by = {{"rule", kQualityWeights.rule}};
  Json asked = captioner.config();
  asked["fps"] = captioner.fps();
  asked["window"] = 16;
  asked["prompt"] = prompt;
  asked["picture_prompt"] = options.model.picture_prompt;
  by["captioner"] = encoder_identity(asked);
  by["clip"] = encoder_identity(clip_vector_config(*pictures, 8));
  by["texts"] = encoder_identity(texts->config().to_json());
  Json two = expected("A red circle. It moves.", {"A red circle.", "It moves."});
  two["caption_scored_by"] = by;
  two["caption_scored_by"]["caption"] = hash_hex("A red circle. It moves.");
  CHECK(all.jsons.at("two") == two);
  CHECK(two.contains("caption_quality"));
  Json odd = expected("Blue.", {"Blue."});
  odd["caption_scored_by"] = by;
  odd["caption_scored_by"]["caption"] = hash_hex("Blue.");
  CHECK(all.jsons.at("odd") == odd);
  CHECK(field_names(all.jsons.at("bad")) ==
        std::vector<std::string>{"caption_repetition", "caption_clean", "caption_script",
                                 "caption_ended", "caption_scored_by"});
  CHECK(all.jsons.at("mark").contains("caption_fit"));
  CHECK_FALSE(all.jsons.at("mark").contains("caption_gain"));
  CHECK_THAT(all.faults.at(0)["error"], Catch::Contains("bad.mp4"));
  CHECK_THAT(all.faults.at(1)["error"], Catch::Contains("a token that stands for a picture"));
  const std::size_t tokens = two["caption_tokens"], few = odd["caption_tokens"];
  const auto flops = [&](const models::SeenFrames* seen) {
    return (captioner.pass_flops(seen, prompt, tokens) + captioner.pass_flops(seen, prompt, few)) /
           2;
  };
  const Json told = costs.to_json();
  CHECK(told["clips"] == 2);
  CHECK(told["written"] == 0);
  CHECK(told["flops"]["with_video"].get<double>() == Approx(flops(&frames.seen)));
  CHECK(told["flops"]["alone"].get<double>() == Approx(flops(nullptr)));

  // Of one model alone the fields of the other are not there, and a picture has its own prompt.
  options.captioner = "";
  const Json fit = score_all(options, folder).jsons.at("two");
  CHECK(fit["caption_fits"] == two["caption_fits"]);
  CHECK_FALSE(fit.contains("caption_gain"));
  CHECK_FALSE(fit["caption_scored_by"].contains("captioner"));
  options.captioner = kCaptioner;
  options.clip = "";
  options.costs = nullptr;
  const std::string png = media::encode_png(plain_image(kBlue, 40, 30));
  write_tar(folder / "a.tar",
            {{"p", {{"png", png}, {"txt", "Blue."}}}, {"q", {{"png", "x"}, {"txt", "No."}}}});
  const Scored still = score_all(options, folder);
  const ScoreFrames picture =
      take_score_frames({"png", png}, "it", {&captioner, nullptr, 2, 16}, nullptr);
  CHECK(picture.seen.still);
  const std::string& ask = options.model.picture_prompt;
  const CaptionGain gain = caption_gain(captioner.log_probabilities(&picture.seen, ask, "Blue."),
                                        captioner.log_probabilities(nullptr, ask, "Blue."));
  CaptionScores scores;
  scores.gain = gain;
  CHECK(still.jsons.at("p")["caption_logprob"] == scores.fields()["caption_logprob"]);
  CHECK(still.jsons.at("p")["caption_logprob_blind"] == scores.fields()["caption_logprob_blind"]);
  CHECK_FALSE(still.jsons.at("p").contains("caption_fit"));
  CHECK(still.faults.size() == 1);
}

TEST_CASE("a long clip is seen by as many frames as one window has, spread over it") {
  const models::CaptionModel captioner(kCaptioner, DType::f32, 4);
  const auto pictures =
      models::make_picture_encoder(VFM_GOLDEN "/picture_encoders/clip", Device::cpu, DType::f32);
  const std::string video = make_video(40, kGreen);
  for (const int window : {16, 40, 64}) {
    CAPTURE(window);
    const ScoreFrames both =
        take_score_frames({"mp4", video}, "it", {&captioner, pictures.get(), 4, window}, nullptr);
    const auto plan = captioner.plan(40, 8, window == 16 ? 4 * 0.4 : 4);
    CHECK(both.seen.frames.size() == plan.size());
    CHECK(both.frames.size() == 8);
    CHECK(both.seen.seconds == 5);
    CHECK(both.seen.fps == Approx(static_cast<double>(plan.size()) / 5));
    CHECK(both.seen.width == 64);
    CHECK(both.seen.height == 48);
    CHECK_FALSE(both.seen.still);
    REQUIRE(both.seen.times.size() == plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i)
      CHECK(both.seen.times[i] == static_cast<double>(plan[i]) / 8);
  }
  const ScoreFrames seen =
      take_score_frames({"mp4", video}, "it", {&captioner, nullptr, 4, 16}, nullptr);
  CHECK(seen.frames.empty());
  CHECK_FALSE(seen.seen.frames.empty());
  const ScoreFrames eyes =
      take_score_frames({"mp4", video}, "it", {nullptr, pictures.get(), 4, 16}, nullptr);
  CHECK(eyes.frames == prepare_clip({"mp4", video}, "it", Json(), *pictures, 8, nullptr).frames);
  CHECK(eyes.seen.frames.empty());
  // Of a clip that is cut off those that there are.
  const std::string half = make_video(40, [](int i) {
                             return Colour{static_cast<std::uint8_t>(6 * i), 90, 90};
                           }).substr(0, 4000);
  const PreparedClip left = prepare_clip({"mp4", half}, "it", Json(), *pictures, 8, nullptr);
  CHECK(left.facts["frames"] < 40);
  const ScoreFrames fewer =
      take_score_frames({"mp4", half}, "it", {&captioner, pictures.get(), 4, 64}, nullptr);
  CHECK(fewer.frames == left.frames);
  CHECK(fewer.seen.frames.size() == captioner.plan(left.facts["frames"], 8, 4).size());
}

TEST_CASE(
    "what a model wrote with its tokens is found where model, prompts and text are the same") {
  const models::CaptionModel model(kCaptioner, DType::f32, 4);
  Json asked = model.config();
  asked["fps"] = 2.0;
  asked["window"] = 256;
  asked["prompt"] = "What?";
  asked["picture_prompt"] = "Which?";
  models::Answer answer;
  CHECK(written_json(answer, false).is_null());
  answer.ids = {70, 71, 72};
  answer.log_probabilities = {-0.12345678, 0, -2};
  const Json written = written_json(answer, false);
  CHECK(written == Json{{"ids", {70, 71, 72}}, {"logprobs", {-0.123457, 0.0, -2.0}}});
  Json still = written;
  still["picture"] = true;
  CHECK(written_json(answer, true) == still);
  const std::string caption = model.text(answer.ids);
  Json wrote = asked;
  wrote["path"] = "elsewhere";
  wrote["max_tokens"] = 7;
  const Json facts = {{"caption_written", written}, {"caption_model", wrote}};
  const auto found = find_written(facts, caption, model, asked);
  REQUIRE(found);
  CHECK(found->ids == answer.ids);
  CHECK(found->log_probabilities == std::vector<double>{-0.123457, 0, -2});
  CHECK_FALSE(found->still);
  Json of_picture = facts;
  of_picture["caption_written"] = still;
  CHECK(find_written(of_picture, caption, model, asked)->still);
  CHECK_FALSE(find_written(facts, caption + "x", model, asked));
  for (const char* name : {"name", "hash", "words", "compute", "input", "weights", "fps", "window",
                           "prompt", "picture_prompt"}) {
    INFO(name);
    Json other = asked;
    other[name] = "other";
    CHECK_FALSE(find_written(facts, caption, model, other));
  }
  const auto changed = [&](const std::function<void(Json&)>& change) {
    Json copy = facts;
    change(copy);
    return find_written(copy, caption, model, asked).has_value();
  };
  CHECK(changed([](Json& f) { f["more"] = 1; }));
  CHECK(changed([](Json& f) { f["caption_written"]["logprobs"][0] = -1e6; }));
  CHECK_FALSE(changed([](Json& f) { f.erase("caption_written"); }));
  CHECK_FALSE(changed([](Json& f) { f.erase("caption_model"); }));
  CHECK_FALSE(changed([](Json& f) { f["caption_model"] = Json::array(); }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"] = 7; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["ids"] = "all"; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["logprobs"] = -1; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["logprobs"].push_back(-1); }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["logprobs"][0] = 0.5; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["logprobs"][0] = -1.1e6; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["logprobs"][0] = "x"; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["ids"][0] = -1; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["ids"][0] = 70.0; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["ids"][0] = std::int64_t{1} << 31; }));
  CHECK_FALSE(changed([](Json& f) { f["caption_written"]["ids"][0] = 71; }));
  CHECK_FALSE(changed([](Json& f) {
    f["caption_written"] = {{"ids", Json::array()}, {"logprobs", Json::array()}};
  }));
}

TEST_CASE("a caption with its tokens kept is scored without showing the clip again") {
  const TemporaryFolder folder;
  const models::CaptionModel model(kCaptioner, DType::f32, 4);
  ScoreOptions options;
  options.captioner = kCaptioner;
  Json wrote = model.config();
  wrote["fps"] = model.fps();
  wrote["window"] = options.model.window;
  wrote["prompt"] = options.model.video_prompt;
  wrote["picture_prompt"] = options.model.picture_prompt;
  models::Answer answer;
  answer.ids = {70, 71, 72};
  answer.log_probabilities = {-1, -0.5, -2.25};
  const std::string caption = model.text(answer.ids);
  const auto json_of = [&](bool still) {
    return dump_json({{"caption_model", wrote}, {"caption_written", written_json(answer, still)}});
  };
  write_tar(folder / "a.tar", {scored_sample("v", "no video", caption, json_of(false)),
                               scored_sample("p", "no video", caption, json_of(true))});
  ScoreCosts costs;
  options.costs = &costs;
  const Scored all = score_all(options, folder);
  CHECK(all.errors == 0);
  for (const char* key : {"v", "p"}) {
    const std::string& prompt =
        key[0] == 'v' ? options.model.video_prompt : options.model.picture_prompt;
    CaptionScores scores;
    scores.text = text::check_text(caption);
    scores.gain = caption_gain(answer.log_probabilities,
                               model.log_probabilities(nullptr, prompt, answer.ids));
    Json expected = scores.fields();
    expected["caption_scored_by"] = all.jsons.at(key)["caption_scored_by"];
    CHECK(all.jsons.at(key) == expected);
    CHECK(expected["caption_scored_by"]["written"] == true);
    CHECK(expected["caption_logprob"] == -1.25);
  }
  const Json told = costs.to_json();
  CHECK(told["written"] == 2);
  CHECK(told["flops"]["with_video"] == 0);
  CHECK(told["flops"]["alone"] > 0);
  // With a model of pictures the clip is looked at, by that alone.
  options.clip = make_clip_model(folder / "clip");
  const Scored fits = score_all(options, folder);
  CHECK(fits.errors == 2);
  CHECK(fits.jsons.at("v")["caption_logprob"] == -1.25);
  CHECK_FALSE(fits.jsons.at("v").contains("caption_fit"));
}
