// Captions of whole shards by models: windows of long clips, further questions, rewritten texts,
// and what all that costs.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.h"
#include "columns/caption/caption.h"
#include "columns/caption/caption_costs.h"
#include "columns/caption/refine.h"
#include "columns/caption/written_caption.h"
#include "columns/clip_frames.h"
#include "media/container/picture_file.h"
#include "support/temporary_folder.h"
#include "text/unicode.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

const std::string kSeer = std::string(VFM_GOLDEN) + "/qwen/untied";
const std::string kRewriter = std::string(VFM_GOLDEN) + "/qwen_text/untied";

/// Frames `begin` to before `end` of one and the same video, without loss.
std::string part_of_video(int begin, int end) {
  return make_video(
      end - begin,
      [](int i) {
        return Colour{static_cast<std::uint8_t>(7 * i), 90, static_cast<std::uint8_t>(255 - 5 * i)};
      },
      {.encoder = "ffv1", .width = 64, .height = 48}, begin);
}

ModelCaption caption_of(const models::CaptionModel& model, const std::string& mov,
                        const ModelCaptionOptions& options) {
  return caption_clip({"mov", mov}, "k.mov", Json::object(), "k", model, options, nullptr);
}

struct ModelRun {
  long errors = 0;
  std::vector<Json> faults;
  std::map<std::string, Json> jsons;
  Json record, settings;
};

ModelRun caption_by_model(CaptionOptions options, const TemporaryFolder& folder, int threads = 1) {
  options.inputs = {folder / "a.tar"};
  options.force = true;
  options.model.frame_tokens = 4;
  Run run(threads);
  ModelRun all;
  all.errors = caption(options, run.slots, run, run.manifest);
  all.faults = errors_in(folder / "caption-errors.jsonl");
  all.record = run.records().at(0);
  all.jsons = jsons_of(folder / "a.caption.tar");
  all.settings =
      parse_json(io::read_file(folder / "a.caption.json"), "it")["made_from"]["settings"];
  return all;
}

}  // namespace

TEST_CASE("a long clip is captioned window by window, each as a clip of its own") {
  const models::CaptionModel model(kSeer, DType::f32, 4);
  ModelCaptionOptions options;
  options.window = 16;
  options.fps = 4;
  options.rule.most_tokens = 4;
  options.keep_tokens = true;
  const auto any = std::make_shared<text::JsonSchema>(Json::object(), "it");
  options.also.list = {{"where", "Where?"}, {"facts", "Facts?", any}};
  const ModelCaption first = caption_of(model, part_of_video(0, 16), options),
                     last = caption_of(model, part_of_video(16, 39), options),
                     whole = caption_of(model, part_of_video(0, 39), options);
  CHECK(first.windows->is_null());
  CHECK(first.cut);
  CHECK(first.also["caption_also_cut"] == Json{"where", "facts"});
  CHECK_FALSE(first.written->is_null());
  CHECK(last.written->is_null());  // longer than a window
  CHECK(whole.written->is_null());
  REQUIRE_FALSE(first.text.empty());
  REQUIRE_FALSE(last.text.empty());
  CHECK(first.text != last.text);
  CHECK(whole.text == first.text + " " + last.text);
  CHECK_FALSE(whole.cut);
  CHECK(whole.cuts == 6);
  CHECK(first.cuts == 3);
  const std::string where[] = {first.also["caption_where"], last.also["caption_where"]};
  Json windows = Json::array({{{"start", 0.0},
                               {"end", 2.0},
                               {"caption", first.text},
                               {"cut", true},
                               {"also_cut", {"where", "facts"}},
                               {"caption_where", where[0]}},
                              {{"start", 2.0},
                               {"end", 4.875},
                               {"caption", last.text},
                               {"cut", true},
                               {"also_cut", {"where", "facts"}},
                               {"caption_where", where[1]}}});
  Json told = whole.windows;
  for (Json& window : told)  // what these weights say is no JSON, most likely
    if (window.contains("caption_facts")) window.erase("caption_facts");
  CHECK(told == windows);
  CHECK(whole.also["caption_where"] == where[0] + " " + where[1]);
  CHECK_FALSE(whole.also->contains("caption_also_cut"));
  CHECK(whole.faults.size() == first.faults.size() + last.faults.size());
  for (const io::Fault& fault : whole.faults) {
    CHECK_THAT(fault.message, Catch::StartsWith("no answer 'facts': "));
    CHECK(fault.cause == Cause::answer);
  }
  CHECK(whole.facts["frames"] == 39);
  // With as many frames as a window they are one, and one more makes no other.
  CHECK_FALSE(caption_of(model, part_of_video(0, 16), options).written->is_null());
  CHECK(caption_of(model, part_of_video(0, 17), options).written->is_null());
}

TEST_CASE("a model is shown a clip's frames at their times, and a picture by itself") {
  const models::CaptionModel model(kSeer, DType::f32, 4);
  ModelCaptionOptions options;
  options.fps = 3;
  options.rule.most_tokens = 4;
  options.keep_tokens = true;
  options.video_prompt = "What moves?";
  options.picture_prompt = "What is there?";
  const auto answer_of = [&](const models::SeenFrames& seen, const std::string& prompt) {
    const std::vector<models::Question> asked{{&seen, prompt, options.rule, "k\n0", true}};
    return model.answer_many(asked)[0];
  };
  models::SeenFrames seen;
  const std::vector<std::int64_t> plan = model.plan(20, 8, 3);
  for (const std::int64_t number : plan) {
    // As a video of that frame alone is decoded.
    struct Shown final : MiddleFrames {
      Shown() : MiddleFrames(1) {}
      void use(const media::Frame& frame, const media::StreamInfo& info) override {
        scaler.to_rgb(frame, as_shown(info), image);
      }
      void clear() override {}
      media::Scaler scaler;
      media::RgbImage image;
    } shown;
    const int n = static_cast<int>(number);
    take_frames({"mov", part_of_video(n, n + 1)}, "it", Json(), nullptr, shown);
    seen.frames.push_back(model.prepare({64, 48, shown.image.pixels}, plan.size()));
    seen.times.push_back(static_cast<double>(number) / 8);
  }
  seen.width = 64, seen.height = 48;
  seen.seconds = 2.5;
  seen.fps = static_cast<double>(plan.size()) / 2.5;
  const ModelCaption clip = caption_of(model, part_of_video(0, 20), options);
  CHECK(clip.written == written_json(answer_of(seen, "What moves?"), false));
  CHECK(clip.text == text::clean_line(answer_of(seen, "What moves?").text));
  const media::RgbImage image = plain_image(kRed, 40, 30);
  models::SeenFrames still;
  still.still = true;
  still.width = 40, still.height = 30;
  still.frames = {model.prepare({40, 30, image.pixels}, 0)};
  const ModelCaption picture = caption_clip({"png", media::encode_png(image)}, "k.png", Json(), "k",
                                            model, options, nullptr);
  CHECK(picture.written == written_json(answer_of(still, "What is there?"), true));
  CHECK(picture.facts == Json{{"width", 40}, {"height", 30}});
  options.keep_tokens = false;
  CHECK(caption_of(model, part_of_video(0, 20), options).written->is_null());
}

TEST_CASE("of a clip that is cut off each window is captioned that is there") {
  const models::CaptionModel model(kSeer, DType::f32, 4);
  ModelCaptionOptions options;
  options.window = 16;
  options.rule.most_tokens = 3;
  const std::string video = make_video(64, [](int i) {
    return Colour{static_cast<std::uint8_t>(37 * i), static_cast<std::uint8_t>(11 * i), 90};
  });
  const ModelCaption whole = caption_of(model, video, options);
  CHECK(whole.windows->size() == 4);
  const ModelCaption cut = caption_of(model, video.substr(0, video.size() * 7 / 10), options);
  const std::int64_t left = cut.facts["frames"];
  CHECK((left > 16 && left < 64));
  REQUIRE(static_cast<std::int64_t>(cut.windows->size()) == count_windows(left, 16));
  CHECK((*cut.windows)[0] == (*whole.windows)[0]);
  CHECK(cut.windows->back()["end"] == static_cast<double>(left) / 8);
  CHECK_THROWS_WITH(caption_of(model, "no video", options), Catch::Contains("k.mov"));
}

TEST_CASE("what decides the texts of a model is told, and of a drawing what decides that") {
  const models::CaptionModel model(kSeer, DType::f32, 4);
  ModelCaptionOptions options;
  options.video_prompt = "What?";
  options.picture_prompt = "Which?";
  Json expected = model.config();
  expected.update({{"fps", model.fps()},
                   {"window", 256},
                   {"prompt", "What?"},
                   {"picture_prompt", "Which?"},
                   {"max_tokens", 512},
                   {"repetition_penalty", 1.05},
                   {"temperature", options.rule.choice.temperature}});
  CHECK(options.rule.choice.temperature == 0);
  CHECK(dump_json(model_caption_config(model, options)) == dump_json(expected));
  options.fps = 0.5;
  options.keep_tokens = true;
  options.also.list = {{"short", "In ten words?"}};
  options.rule.choice.temperature = 0.5;
  options.rule.choice.top_p = 0.75;
  options.rule.seed = 9;
  const Json more = model_caption_config(model, options);
  CHECK(more["fps"] == 0.5);
  CHECK(more["also"] == Json{{"short", {{"prompt", "In ten words?"}}}});
  CHECK(more["logprobs"] == true);
  CHECK(more["temperature"] == 0.5);
  CHECK(more["top_p"] == 0.75);
  CHECK(more["seed"] == 9);
}

TEST_CASE(
    "a shard's captions by a model say by which, and clips it cannot see ask the next source") {
  const TemporaryFolder folder;
  const std::string long_clip = part_of_video(0, 40);
  write_tar(folder / "a.tar", {{"long", {{"mov", long_clip}}},
                               {"bad", {{"mov", "no video"}}},
                               {"short", {{"mov", part_of_video(0, 8)}}}});
  CaptionOptions options;
  options.from = parse_caption_sources({"model:" + kSeer, "builtin:measure"}, false);
  options.model.window = 16;
  options.model.rule.most_tokens = 4;
  options.model.keep_tokens = true;
  options.model.also.list = {{"where", "Where?"}};
  const ModelRun all = caption_by_model(options, folder);
  options.model.frame_tokens = 4;
  const models::CaptionModel model(kSeer, DType::f32, 4);
  const Json config = model_caption_config(model, options.model);
  const auto expected = [&](const std::string& mov) {
    const ModelCaption said = caption_of(model, mov, options.model);
    Json json = {{"caption", said.text}, {"caption_source", "model"}, {"caption_model", config}};
    if (!said.windows->is_null()) json["caption_windows"] = said.windows;
    if (said.cut) json["caption_cut"] = true;
    if (!said.written->is_null()) json["caption_written"] = said.written;
    json.update(said.also);
    json.update(said.facts);
    return json;
  };
  CHECK(all.jsons.at("long") == expected(long_clip));
  CHECK(all.jsons.at("long").contains("caption_windows"));
  CHECK(all.jsons.at("short") == expected(part_of_video(0, 8)));
  CHECK(all.jsons.at("short").contains("caption_written"));
  CHECK(all.jsons.at("bad") == Json{{"caption", ""}, {"caption_source", "none"}});
  CHECK(all.record["caption_cut"] ==
        caption_of(model, long_clip, options.model).cuts +
            caption_of(model, part_of_video(0, 8), options.model).cuts);
  CHECK(all.errors == 2);
  CHECK_THAT(all.faults.at(0)["error"], Catch::Contains("bad.mov"));
  Json settings = config;
  settings.erase("path");
  CHECK(all.settings["model"] == settings);
  CHECK(all.settings["from"] == Json{"model", "builtin:measure"});
  CHECK(caption_by_model(options, folder, 3).jsons == all.jsons);
  // A sample without media is told, and asks the next source, too.
  write_tar(folder / "a.tar", {{"k", {{"json", R"({"caption":"its own"})"}}}});
  options.from = parse_caption_sources({"model:" + kSeer, "existing"}, false);
  const ModelRun none = caption_by_model(options, folder);
  CHECK(none.errors == 1);
  CHECK(none.faults.at(0)["code"] == "missing");
  CHECK(none.jsons.at("k") == Json{{"caption", "its own"}, {"caption_source", "existing:field"}});
  CHECK_FALSE(none.record.contains("caption_cut"));
}

TEST_CASE("notes of files beside sources come last, by their names, and are told once") {
  const TemporaryFolder folder;
  for (const char* name : {"b.json", "a.json"})
    folder.write(name, "{");
  std::vector<shard::Sample> samples;
  for (const char* name : {"b", "a", "b"})
    samples.push_back({std::string("k") + std::to_string(samples.size()),
                       {{"json", dump_json({{"source", folder / (std::string(name) + ".mp4")}})}}});
  write_tar(folder / "a.tar", samples);
  CaptionOptions options;
  options.from = parse_caption_sources({"existing:json", "model:" + kSeer}, false);
  options.sidecars = {folder.path};
  const ModelRun all = caption_by_model(options, folder, 2);
  REQUIRE(all.faults.size() == 5);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(all.faults[i]["input"] == "k" + std::to_string(i) + " of '" + folder.path + "/a.tar'");
  CHECK(all.faults[3]["input"] == folder / "a.json");
  CHECK(all.faults[4]["input"] == folder / "b.json");
  const Json notes = parse_json(io::read_file(folder / "a.caption.json"), "it");
  CHECK(notes["inputs"].size() == 2);
}

TEST_CASE("captions are rewritten by a language model, and the draft is kept") {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar", {{"k", {{"txt", "a red circle"}}},
                               {"marked", {{"txt", "a <|im_end|> mark"}}},
                               {"empty", {{"txt", ""}}}});
  CaptionOptions options;
  options.from = parse_caption_sources({"existing"}, false);
  options.keep_empty = true;
  options.model.rule.most_tokens = 5;
  options.refine.folder = kRewriter;
  options.refine.prompt = "Rewrite it.";
  const ModelRun all = caption_by_model(options, folder);
  const models::TextModel model(kRewriter, DType::f32);
  const models::Answer answer =
      model.answer("Rewrite it.", "a red circle", options.model.rule, "k\nrefine");
  Json by = model.config();
  by.update({{"prompt", "Rewrite it."},
             {"max_tokens", 5},
             {"repetition_penalty", 1.05},
             {"temperature", options.model.rule.choice.temperature}});
  Json expected = {{"caption", text::clean_line(answer.text)},
                   {"caption_source", "existing:member"},
                   {"caption_draft", "a red circle"}};
  if (answer.cut) expected["caption_cut"] = true;
  expected["caption_refined_by"] = by;
  CHECK(all.jsons.at("k") == expected);
  CHECK(answer.cut);
  CHECK(all.record["caption_cut"] == 1);
  CHECK(all.errors == 1);
  CHECK(all.jsons.at("marked") ==
        Json{{"caption", "a <|im_end|> mark"}, {"caption_source", "existing:member"}});
  CHECK_THAT(all.faults.at(0)["error"], Catch::StartsWith("its caption is not refined: "));
  CHECK(all.jsons.at("empty") == Json{{"caption", ""}, {"caption_source", "existing:member"}});
  by.erase("path");
  CHECK(all.settings["refine"] == by);
  CHECK_FALSE(all.settings.contains("model"));

  // Whether a draft was cut is told apart.
  const Refiner refiner(options.refine, options.model);
  CHECK(refiner.config()["prompt"] == "Rewrite it.");
  ColumnNotes notes;
  count_cut(notes, 0);
  CHECK(notes.of_record->empty());
  count_cut(notes, 2);
  Caption draft{"a red circle", "model"};
  draft.by_model["caption_cut"] = true;
  refiner.refine("k", "it", draft, notes);
  CHECK(draft.by_model["caption_draft_cut"] == true);
  CHECK(draft.by_model["caption_cut"] == true);
  CHECK(draft.text == text::clean_line(answer.text));
  CHECK(notes.of_record == Json{{"caption_cut", 3}});
  CHECK(notes.errors.empty());
  Caption none{"", "none"};
  refiner.refine("k", "it", none, notes);
  CHECK(none.by_model->empty());
}

TEST_CASE("costs of captions are sums over questions, and the most of their memory") {
  const models::CaptionModel model(kSeer, DType::f32, 4);
  CaptionCosts costs;
  CHECK(costs.to_json().is_null());
  CHECK(costs.words().empty());
  const auto seen_of = [&](int frames) {
    models::SeenFrames seen;
    seen.width = 64, seen.height = 48, seen.fps = 2;
    seen.seconds = frames / 2.0;
    for (int i = 0; i < frames; ++i) {
      const media::RgbImage image = plain_image({static_cast<std::uint8_t>(20 * i), 9, 9}, 64, 48);
      seen.frames.push_back(
          model.prepare({64, 48, image.pixels}, static_cast<std::size_t>(frames)));
      seen.times.push_back(i / 2.0);
    }
    return seen;
  };
  const models::SeenFrames few = seen_of(2), many = seen_of(6);
  models::AnswerRule rule;
  rule.most_tokens = 3;
  const std::vector<models::Question> first{{&many, "What?", rule, "k"}},
      second{
          {&few, "What is it?", rule, "k"}, {&few, "Where?", rule, "l"}, {&few, "Who?", rule, "m"}};
  const std::vector<models::Answer> one = model.answer_many(first);
  std::vector<models::Answer> three = model.answer_many(second);
  three[1].error = std::make_exception_ptr(Error("no answer"));
  costs.hold_frames(100);
  costs.add(model, first, one);
  costs.add_clip();
  costs.hold_frames(-100);
  const Json alone = costs.to_json();
  costs.add(model, second, three);
  costs.add_clip();
  const models::AnswerCost a = model.cost(first[0], one[0].tokens),
                           b = model.cost(second[0], three[0].tokens),
                           c = model.cost(second[2], three[2].tokens);
  const models::WeightCost weights = model.weights();
  const auto bytes_of = [](const models::SeenFrames& seen) {
    std::size_t bytes = 0;
    for (const auto& frame : seen.frames)
      bytes += frame.size();
    return bytes;
  };
  const std::size_t keys = std::max({a.keys_values, b.keys_values, c.keys_values}),
                    working = std::max({a.working, b.working, c.working}),
                    together = models::kAnswersTogether;
  const Json told = costs.to_json();
  CHECK(told["clips"] == 2);
  CHECK(told["weights"] == weights.stored);
  CHECK(told["own_weights"] == weights.own);
  CHECK(told["together"] == together);
  CHECK(told["keys_values"] == keys);
  CHECK(told["working"] == working);
  CHECK(told["frames"] == bytes_of(many));
  const std::size_t program = told["program"];
  CHECK(program > (std::size_t{1} << 20));
  CHECK(told["memory"] ==
        weights.own + working + together * (keys + bytes_of(many)) + keys + program);
  CHECK(alone["memory"] == weights.own + a.working + together * (a.keys_values + bytes_of(many)) +
                               alone["program"].get<std::size_t>());
  CHECK(told["prompt_tokens"].get<double>() ==
        static_cast<double>(a.prompt_tokens + b.prompt_tokens + c.prompt_tokens) / 2);
  CHECK(told["text_tokens"].get<double>() ==
        static_cast<double>(one[0].tokens + three[0].tokens + three[2].tokens) / 2);
  CHECK(told["flops"]["vision"].get<double>() == Approx((a.looked + b.looked) / 2));
  CHECK(told["flops"]["prompt"].get<double>() == Approx((a.read + b.read + c.read - c.head) / 2));
  CHECK(told["flops"]["text"].get<double>() == Approx((a.written + b.written + c.written) / 2));
  CHECK_FALSE(told.contains("device"));
  CHECK_THAT(costs.words(), Catch::StartsWith("the model has ") &&
                                Catch::Contains(" of the program itself") &&
                                Catch::Contains("for each of 8 texts"));
}
