// Columns of vectors: what of clips and captions is in them, and what is told of the others.
// SPDX-License-Identifier: Apache-2.0
#include "columns/embed/embed.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "columns/embed/clip_windows.h"
#include "columns/embed/glimpse.h"
#include "columns/search/file_query.h"
#include "curate/vectors/look.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "models/text_encoder.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"
#include "unit/columns/column_cases.h"

using namespace vfm;
using namespace vfm::columns;

namespace {

struct Embedded {
  long errors = 0;
  std::vector<Json> faults;
  std::vector<shard::Sample> samples;
  std::uint64_t done = 0;
  std::string warnings;

  Json json(std::size_t i) const { return parse_json(*samples.at(i).find("json"), "it"); }
  std::vector<float> floats(std::size_t i, const char* member) const {
    return io::npy_floats(*samples.at(i).find(member), member);
  }
  std::vector<std::int64_t> shape(std::size_t i, const char* member) const {
    return io::parse_npy(*samples.at(i).find(member), member).shape;
  }
};

/// vfm-embed of `folder`/a.tar.
Embedded embed_all(EmbedOptions options, const TemporaryFolder& folder) {
  options.inputs = {folder / "a.tar"};
  options.force = true;
  Run run;
  const HeardLog lines;
  Embedded all;
  all.errors = embed(options, run.slots, run, run.manifest);
  all.faults = errors_in(folder / "embed-errors.jsonl");
  if (!run.records().empty()) all.samples = samples_of(folder / "a.embed.tar");
  all.done = run.done;
  all.warnings = lines.text();
  return all;
}

using Members = std::vector<std::string>;
Members members_of(const shard::Sample& sample) {
  Members names;
  for (const shard::Member& member : sample.members)
    names.push_back(member.extension);
  return names;
}

text::TokenEmbeddings words_of(const std::string& text, int dim = 64) {
  return models::make_text_encoder({.name = "builtin:hash", .dim = dim})->encode(text);
}

shard::Sample captioned(const std::string& key, const std::string& mp4, const std::string& txt,
                        const std::string& json = "{}") {
  return {key, {{"mp4", mp4}, {"json", json}, {"txt", txt}}};
}

/// The clip's vector by an encoder, as halves.
std::vector<float> halves_of(const models::PictureEncoder& encoder, const std::string& mp4,
                             int frames) {
  ClipVectors vectors(encoder);
  vectors.push(prepare_clip({"mp4", mp4}, "it", Json(), encoder, frames, nullptr).frames);
  const std::vector<float> vector = vectors.take(true).front().vector;
  return io::npy_floats(io::make_npy_half({static_cast<std::int64_t>(vector.size())}, vector),
                        "it");
}

/// Fills a tensor of a .safetensors file, of floats or of their upper halves.
void fill_tensor(const std::string& path, const std::string& name, float value) {
  std::string bytes = io::read_file(path);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const Json tensor = parse_json(bytes.substr(8, size), path)[name];
  const std::size_t width = tensor["dtype"] == "BF16" ? 2 : 4;
  const std::size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
  for (std::size_t at = begin; at < end; at += width)
    std::memcpy(&bytes[8 + size + at], reinterpret_cast<const char*>(&value) + 4 - width, width);
  std::ofstream(path, std::ios::binary) << bytes;
}

double dot_of(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += double{a[i]} * b[i];
  return sum;
}

}  // namespace

TEST_CASE("a column of vectors has looks of clips and words of captions, in the shard's order") {
  const TemporaryFolder folder;
  const std::string red = make_video(8, kRed), blue = make_video(8, kBlue);
  const std::string known = R"({"width":1,"height":1,"seconds":1,"fps":8,"frames":8})";
  write_tar(folder / "a.tar", {captioned("z", red, "a red fox", known), captioned("a", blue, ""),
                               captioned("m", "none", "the owl", "{")});
  const Embedded all = embed_all({}, folder);
  CHECK(all.errors == 1);
  CHECK(all.done == 3);
  REQUIRE(all.samples.size() == 3);
  CHECK(all.samples[0].key == "z");
  for (const shard::Sample& sample : all.samples)
    CHECK(members_of(sample) == Members{"video.npy", "text.npy", "json"});
  const std::int64_t dim = curate::kLookDim;
  for (std::size_t i = 0; i < 2; ++i) {
    const Seen seen = see_member({"mp4", i == 0 ? red : blue}, "it", Json(), nullptr);
    CHECK(*all.samples[i].find("video.npy") ==
          io::make_npy_half({dim}, curate::look(seen.glimpse)));
  }
  CHECK(*all.samples[2].find("video.npy") ==
        io::make_npy_half({dim}, std::vector<float>(static_cast<std::size_t>(dim))));
  CHECK(*all.samples[0].find("text.npy") ==
        io::make_npy_half({3, 64}, words_of("a red fox").values));
  CHECK(all.shape(1, "text.npy") == std::vector<std::int64_t>{0, 64});
  CHECK(*all.samples[2].find("text.npy") == io::make_npy_half({2, 64}, words_of("the owl").values));
  const Json encoders = {
      {"video_encoder", curate::look_config()},
      {"text_encoder",
       {{"name", "builtin:hash"}, {"dim", 64}, {"max_tokens", 512}, {"version", 1}}}};
  CHECK(all.json(0) == encoders);
  Json measured = encoders;
  measured.update({{"width", 64}, {"height", 48}, {"seconds", 1.0}, {"fps", 8.0}, {"frames", 8}});
  CHECK(dump_json(all.json(1)) == dump_json(measured));
  CHECK(all.json(2) == encoders);
  REQUIRE(all.faults.size() == 1);
  CHECK(all.faults[0]["input"] == "m of '" + folder.path + "/a.tar'");
  CHECK_THAT(all.faults[0]["error"], Catch::Contains("m.mp4"));
  CHECK(parse_json(io::read_file(folder / "a.embed.json"), "it")["made_from"]["settings"] ==
        Json{{"version", 1},
             {"video_encoder", curate::look_config()},
             {"text_encoder", encoders["text_encoder"]},
             {"need_text", false}});
}

TEST_CASE("without captions there is only video, unless they are asked for") {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar", {{"k", {{"mp4", make_video(4, kRed)}}}, {"t", {{"mp4", "none"}}}});
  const Embedded plain = embed_all({}, folder);
  CHECK(plain.errors == 1);
  CHECK(members_of(plain.samples.at(0)) == Members{"video.npy", "json"});
  CHECK_FALSE(plain.json(0).contains("text_encoder"));
  EmbedOptions options;
  options.need_text = true;
  const Embedded needed = embed_all(options, folder);
  CHECK(needed.samples.empty());
  CHECK(needed.faults.at(0)["error"] ==
        "has no captions; run vfm-caption on it first, or leave --text out");
  options.need_text = false;
  options.video = false;
  CHECK(embed_all(options, folder).faults.at(0)["error"] ==
        "there is nothing to embed: it has no captions");
  options.video = true;
  options.text = false;
  write_tar(folder / "a.tar", {captioned("k", make_video(4, kRed), "a fox")});
  CHECK(members_of(embed_all(options, folder).samples.at(0)) == Members{"video.npy", "json"});
  CHECK(parse_json(io::read_file(folder / "a.embed.json"),
                   "it")["made_from"]["settings"]["text_encoder"]
            .is_null());
  options.video = false;
  CHECK(usage_error([&] { embed_all(options, folder); }) == "there is nothing to embed");
}

TEST_CASE("one caption anywhere in a shard gives all samples a text, those without one an error") {
  const TemporaryFolder folder;
  write_foreign_tar(folder / "a.tar", {{"a", {{"json", "{}"}}},
                                       {"b", {{"json", "{}"}, {"txt", "one two"}}},
                                       {"c", {{"json", "{}"}}}});
  EmbedOptions options;
  options.video = false;
  options.text_encoder.dim = 16;
  const Embedded all = embed_all(options, folder);
  CHECK(all.errors == 2);
  REQUIRE(all.samples.size() == 3);
  CHECK(members_of(all.samples[0]) == Members{"text.npy", "json"});
  CHECK(all.shape(0, "text.npy") == std::vector<std::int64_t>{0, 16});
  CHECK(*all.samples[1].find("text.npy") ==
        io::make_npy_half({2, 16}, words_of("one two", 16).values));
  CHECK(all.shape(2, "text.npy") == std::vector<std::int64_t>{0, 16});
  CHECK_FALSE(all.json(0).contains("video_encoder"));
  REQUIRE(all.faults.size() == 2);
  CHECK(all.faults[1]["error"] == "has no caption, unlike other samples of its shard");
  CHECK(all.faults[1]["code"] == "missing");
}

TEST_CASE("very many captions are embedded, each as its sample's own") {
  const TemporaryFolder folder;
  std::vector<shard::Sample> samples;
  for (int i = 0; i < 515; ++i)
    samples.push_back({"k" + std::to_string(i), {{"txt", "word" + std::to_string(i)}}});
  write_tar(folder / "a.tar", samples);
  EmbedOptions options;
  options.video = false;
  options.text_encoder.dim = 8;
  const Embedded all = embed_all(options, folder);
  REQUIRE(all.samples.size() == 515);
  for (std::size_t i = 0; i < 515; ++i) {
    CHECK(all.samples[i].key == "k" + std::to_string(i));
    CHECK(*all.samples[i].find("text.npy") ==
          io::make_npy_half({1, 8}, words_of("word" + std::to_string(i), 8).values));
  }
}

TEST_CASE("captions of windows have embeddings of their own, one behind the other") {
  const TemporaryFolder folder;
  const Json windows = {{{"caption", "one two"}}, {{"start", 1}}, {{"caption", "then three more"}}};
  write_tar(folder / "a.tar",
            {captioned("a", "x", "all"),
             captioned("b", "x", "all of it", dump_json({{"caption_windows", windows}})),
             captioned("c", "x", "last", R"({"caption_windows":[{"caption":"four"}]})"),
             captioned("d", "x", "none", R"({"caption_windows":7})")});
  EmbedOptions options;
  options.video = false;
  options.text_encoder.dim = 8;
  const Embedded all = embed_all(options, folder);
  REQUIRE(all.samples.size() == 4);
  CHECK(members_of(all.samples[0]) == Members{"text.npy", "text.windows.npy", "json"});
  std::vector<float> both = words_of("one two", 8).values;
  const std::vector<float> more = words_of("then three more", 8).values;
  both.insert(both.end(), more.begin(), more.end());
  CHECK(*all.samples[1].find("text.windows.npy") == io::make_npy_half({5, 8}, both));
  CHECK(*all.samples[2].find("text.windows.npy") ==
        io::make_npy_half({1, 8}, words_of("four", 8).values));
  CHECK(all.json(0)["text_windows"] == Json::array());
  CHECK(all.json(1)["text_windows"] == Json{2, 0, 3});
  CHECK(all.json(2)["text_windows"] == Json::array({1}));
  CHECK(all.shape(3, "text.windows.npy") == std::vector<std::int64_t>{0, 8});
  CHECK(all.shape(3, "text.npy") == std::vector<std::int64_t>{1, 8});
}

TEST_CASE("clips and their windows have vectors of a model, the same in a column as alone") {
  const TemporaryFolder folder;
  const std::string model = VFM_GOLDEN "/picture_encoders/clip";
  const auto encoder = models::make_picture_encoder(model, Device::cpu, DType::f32);
  const auto changing = [](int begin, int end) {
    media::EncodeOptions lossless{.encoder = "ffv1", .width = 64, .height = 48};
    return make_video(
        end - begin,
        [=](int i) {
          const int step = (begin + i) / 5;
          return Colour{static_cast<std::uint8_t>(40 * step % 256),
                        static_cast<std::uint8_t>(90 * step % 256), 30};
        },
        lossless);
  };
  const std::string whole = changing(0, 40), small = make_video(1, kGreen);
  const auto sample = [](const std::string& key, const std::string& mov) {
    return shard::Sample{key, {{"mov", mov}}};
  };
  write_tar(folder / "a.tar", {sample("long", whole), sample("bad", "none"), sample("one", small)});
  EmbedOptions options;
  options.text = false;
  options.picture_encoder = model;
  options.frames = 2;
  const Embedded plain = embed_all(options, folder);
  options.window_seconds = 2;
  const Embedded all = embed_all(options, folder);
  CHECK(all.errors == 1);
  REQUIRE(all.samples.size() == 3);
  CHECK(members_of(all.samples[0]) == Members{"video.npy", "windows.npy", "json"});
  CHECK(all.floats(0, "video.npy") == halves_of(*encoder, whole, 2));
  CHECK(all.floats(2, "video.npy") == halves_of(*encoder, small, 2));
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(*all.samples[i].find("video.npy") == *plain.samples.at(i).find("video.npy"));
  // Of 40 frames at 8 a second: 0 to 13, to 26, to 40. Frames are parts of their own windows.
  std::vector<float> rows;
  for (const auto& [begin, end] : {std::pair(0, 13), std::pair(13, 26), std::pair(26, 40)}) {
    std::vector<float> row;
    ClipVectors vectors(*encoder);
    const PreparedClip whole_clip =
        prepare_clip({"mov", whole}, "it", Json(), *encoder, 40, nullptr);
    std::vector<std::vector<float>> middle;
    for (const WindowFrame& frame : plan_window_frames(end - begin, 1, 2))
      middle.push_back(whole_clip.frames[static_cast<std::size_t>(begin + frame.number)]);
    vectors.push(middle);
    const std::vector<float> vector = vectors.take(true).front().vector;
    rows.insert(rows.end(), vector.begin(), vector.end());
  }
  CHECK(*all.samples[0].find("windows.npy") == io::make_npy_half({3, 12}, rows));
  CHECK(all.floats(2, "windows.npy") == all.floats(2, "video.npy"));
  CHECK(all.shape(1, "windows.npy") == std::vector<std::int64_t>{0, 12});
  CHECK(all.floats(1, "video.npy") == std::vector<float>(12));
  Json config = encoder->config();
  config["frames"] = 2;
  config["pool"] = "mean";
  CHECK(all.json(0) ==
        Json{{"video_encoder", config},
             {"video_windows", {{"seconds", 2}, {"frames", 2}, {"begin", {0, 1.625, 3.25}}}},
             {"width", 64},
             {"height", 48},
             {"seconds", 5},
             {"fps", 8},
             {"frames", 40}});
  CHECK(all.json(1)["video_windows"]["begin"] == Json::array());
  CHECK(all.json(2)["video_windows"]["begin"] == Json::array({0}));
  const Json settings =
      parse_json(io::read_file(folder / "a.embed.json"), "it")["made_from"]["settings"];
  CHECK(settings["window_seconds"] == 2);
  CHECK_FALSE(settings.contains("scores"));
  // A clip that ends before its promised frames has the windows that there are.
  const Embedded cut = [&] {
    write_tar(folder / "a.tar", {sample("cut", whole.substr(0, whole.size() * 2 / 3))});
    return embed_all(options, folder);
  }();
  const std::int64_t left = cut.json(0).value("frames", 0);
  CHECK((left > 10 && left < 40));
  CHECK(cut.json(0)["video_windows"]["begin"].size() ==
        static_cast<std::size_t>(count_clip_windows(left, 8, 2)));
}

TEST_CASE("clips are scored by a head, by their captions and by prompts") {
  const TemporaryFolder folder;
  const std::string model = make_clip_model(folder / "clip"), red = make_video(4, kRed);
  const auto encoder = models::make_picture_encoder(model, Device::cpu, DType::f32);
  const auto texts = models::make_text_encoder(models::text_encoder_config(model, 512, DType::f32));
  write_foreign_tar(folder / "a.tar", {captioned("r", red, "a red square"),
                                       captioned("bad", "none", "nothing"),
                                       {"bare", {{"mp4", make_video(4, kBlue)}}}});
  EmbedOptions options;
  options.text = false;
  options.picture_encoder = model;
  options.frames = 1;
  options.scores.aesthetic = VFM_GOLDEN "/aesthetic_heads/mlp.pth";
  options.scores.text_image = true;
  std::string long_prompt;
  for (int i = 0; i < 30; ++i)
    long_prompt += "fox ";
  options.scores.concepts = parse_concepts({"same=a red square", "fox=" + long_prompt});
  const Embedded all = embed_all(options, folder);
  CHECK(all.errors == 2);
  CHECK_THAT(all.warnings,
             Catch::StartsWith("--concept fox: the model does not see the last 12 tokens of the "
                               "prompt\n"));
  REQUIRE(all.samples.size() == 3);
  const auto unit = [&](const std::string& text) {
    std::vector<float> vector = texts->encode(text).values;
    models::normalise(vector);
    return vector;
  };
  for (const std::size_t i : {0, 2}) {
    const std::vector<float> clip = all.floats(i, "video.npy");
    const Json json = all.json(i);
    CHECK(json["concept_same"].get<double>() ==
          Approx(dot_of(clip, unit("a red square"))).margin(2e-3));
    CHECK(json["concept_fox"].get<double>() ==
          Approx(dot_of(clip, unit(long_prompt))).margin(2e-3));
    const models::AestheticHead head(options.scores.aesthetic, 12);
    CHECK(json["aesthetic"].get<double>() == Approx(head.score(clip)).margin(5e-2));
    CHECK(json.contains("text_image") == (i == 0));
    CHECK(json["scored_by"]["aesthetic"] == head.config());
    CHECK(json["scored_by"]["concepts"] == Json{{"same", "a red square"}, {"fox", long_prompt}});
    CHECK(json["scored_by"]["texts"]["name"] == "sentence:clip");
    CHECK_FALSE(json["scored_by"]["texts"].contains("path"));
    CHECK_FALSE(json.contains("text_encoder"));
  }
  CHECK(all.json(0)["text_image"] == all.json(0)["concept_same"]);
  const Json bad = all.json(1);
  for (const char* field : {"aesthetic", "concept_same", "text_image", "scored_by"})
    CHECK_FALSE(bad.contains(field));
  CHECK(all.faults.at(1)["error"] == "has no caption, unlike other samples of its shard");
  const Json settings =
      parse_json(io::read_file(folder / "a.embed.json"), "it")["made_from"]["settings"];
  CHECK(settings["scores"] == Json{{"by", all.json(0)["scored_by"]}, {"text_image", true}});
  write_tar(folder / "a.tar", {{"k", {{"mp4", red}}}});
  CHECK(embed_all(options, folder).faults.at(0)["error"] ==
        "has no captions; run vfm-caption on it first, or leave --text-image out");
  // By the head alone, of more frames than one: the mean of what it says of each.
  options.scores = {.aesthetic = options.scores.aesthetic};
  options.frames = 2;
  const Embedded two = embed_all(options, folder);
  std::vector<std::vector<float>> frames = encoder->encode_prepared(
      prepare_clip({"mp4", red}, "it", Json(), *encoder, 2, nullptr).frames);
  double mean = 0;
  for (std::vector<float>& frame : frames) {
    models::normalise(frame);
    mean += models::AestheticHead(options.scores.aesthetic, 12).score(frame) / 2;
  }
  CHECK(two.json(0)["aesthetic"].get<double>() == Approx(mean).margin(1e-5));
  CHECK_FALSE(two.json(0)["scored_by"].contains("texts"));
}

TEST_CASE("scores and windows that cannot be are refused before any work") {
  const TemporaryFolder folder;
  const std::string golden = VFM_GOLDEN;
  write_tar(folder / "a.tar", {captioned("k", make_video(2, kRed), "a fox")});
  const auto refused = [&](const std::function<void(EmbedOptions&)>& change) {
    EmbedOptions options;
    options.picture_encoder = golden + "/picture_encoders/dinov2";
    change(options);
    const std::string why = usage_error([&] { embed_all(options, folder); });
    CHECK_FALSE(io::file_exists(folder / "a.embed.tar"));
    return why;
  };
  CHECK(refused([](EmbedOptions& o) { o.picture_encoder = "", o.window_seconds = 1; }) ==
        "windows of clips have vectors of a model alone");
  CHECK(refused([](EmbedOptions& o) { o.picture_encoder = "", o.scores.text_image = true; }) ==
        "clips are scored by the vectors of a model alone");
  CHECK_THAT(refused([](EmbedOptions& o) { o.scores.text_image = true; }),
             Catch::Contains("has no part for texts"));
  CHECK_THAT(refused([](EmbedOptions& o) {
               o.scores.concepts = {{"fox", "a fox"}};
             }),
             Catch::Contains("has no part for texts"));
  const std::string head = golden + "/aesthetic_heads/mlp.pth";
  CHECK(refused([&](EmbedOptions& o) { o.scores.aesthetic = head; }) ==
        "--aesthetic scores the vectors of a CLIP, and '" + golden +
            "/picture_encoders/dinov2' holds a dinov2");
  CHECK_THAT(refused([&](EmbedOptions& o) {
               o.picture_encoder = golden + "/picture_encoders/clip_vision";
               o.scores.aesthetic = head;
             }),
             Catch::Contains("12") && Catch::Contains("10"));
}

TEST_CASE("concepts are names with prompts, each once") {
  const TemporaryFolder folder;
  folder.write("prompt.txt", "a fox\n");
  const std::string name(40, 'x');
  const std::vector<Concept> concepts =
      parse_concepts({"a_9=one=two", name + "=@" + folder.path + "/prompt.txt"});
  REQUIRE(concepts.size() == 2);
  CHECK(concepts[0].name == "a_9");
  CHECK(concepts[0].prompt == "one=two");
  CHECK(concepts[1].name == name);
  CHECK(concepts[1].prompt == "a fox");
  for (const char* form : {"fox", "fox=", "="})
    CHECK(usage_error([&] { parse_concepts({form}); }) ==
          "--concept '" + std::string(form) +
              "' is not NAME=TEXT, such as watermark='a watermark'");
  for (const std::string& wrong : {std::string("Fox"), std::string("a-b"), std::string(),
                                   std::string("a{"), std::string("/"), "x" + name})
    CHECK(usage_error([&] { parse_concepts({wrong + "=a fox"}); }) ==
          "--concept '" + wrong + "=a fox': a name has 1 to 40 of a to z, 0 to 9 and _");
  CHECK(usage_error([] {
          parse_concepts({"fox=a", "az=b", "fox=b"});
        }) == "--concept fox is given twice");
  ClipScoreOptions options;
  CHECK_FALSE(options.any());
  options.aesthetic = "head";
  CHECK(options.any());
  CHECK_FALSE(options.texts());
  CHECK(ClipScores::fit({1, 0}, {0.6f, 0.8f}) == 0.6);
  CHECK(ClipScores::fit({2, 0}, {1, 0}) == 1);
  CHECK(ClipScores::fit({2, 0}, {-1, 0}) == -1);
}

TEST_CASE("vectors and texts that are no numbers, or none of half precision, cost their samples") {
  const TemporaryFolder folder;
  const std::string model = folder / "model", red = make_video(4, kRed);
  std::filesystem::copy(VFM_GOLDEN "/picture_encoders/dinov2", model);
  write_tar(folder / "a.tar", {captioned("k1", red, "a red fox"), captioned("k2", red, "a boat")});
  EmbedOptions options;
  options.text = false;
  options.picture_encoder = model;
  options.window_seconds = 1;
  fill_tensor(model + "/model.safetensors", "layernorm.weight", NAN);
  const Embedded clips = embed_all(options, folder);
  REQUIRE(clips.faults.size() == 2);
  CHECK(clips.faults[1]["input"] == "k2 of '" + folder.path + "/a.tar'");
  CHECK(clips.faults[1]["error"] == "its vector by dinov2 has values that are not finite");
  for (const float value : clips.floats(0, "video.npy"))
    CHECK(value == 0);
  CHECK(clips.shape(0, "windows.npy")[0] == 0);
  CHECK(clips.json(0)["video_windows"]["begin"] == Json::array());

  const std::string t5 = folder / "t5";
  std::filesystem::copy(VFM_GOLDEN "/t5/v1_1", t5);
  options = {};
  options.video = false;
  for (const float value : {NAN, 1e6f}) {
    fill_tensor(t5 + "/model.safetensors", "encoder.final_layer_norm.weight", value);
    options.text_encoder = models::text_encoder_config(t5, 512, DType::f32);
    const Embedded texts = embed_all(options, folder);
    REQUIRE(texts.faults.size() == 2);
    CHECK_THAT(texts.faults[0]["error"],
               Catch::StartsWith("its text embedding of t5 has ") &&
                   Catch::Contains(value > 0 ? "the value " : "values that are not finite"));
    CHECK(texts.shape(1, "text.npy") == std::vector<std::int64_t>{0, 16});
  }
}

TEST_CASE("texts whose vectors are no numbers are errors: captions, a prompt, a query") {
  const TemporaryFolder folder;
  const std::string model = make_clip_model(folder / "clip");
  fill_tensor(model + "/model.safetensors", "text_model.final_layer_norm.weight", NAN);
  write_tar(folder / "a.tar", {captioned("k", make_video(4, kRed), "a red fox")});
  EmbedOptions options;
  options.text = false;
  options.picture_encoder = model;
  options.scores.text_image = true;
  const Embedded all = embed_all(options, folder);
  REQUIRE(all.faults.size() == 1);
  CHECK(all.faults[0]["error"] ==
        "its caption's vector has values that are not finite: no text_image");
  CHECK(all.json(0).contains("scored_by"));
  CHECK_FALSE(all.json(0).contains("text_image"));
  const Json encoder = all.json(0)["video_encoder"];
  CHECK_THROWS_WITH(encode_text_beside_clips("a fox", encoder, "k"),
                    "the query's vector by '" + model + "' has values that are not finite");
  options.scores = {.concepts = {{"fox", "a fox"}}};
  CHECK(usage_error([&] { embed_all(options, folder); }) ==
        "--concept fox: the vector that '" + model + "' makes of the prompt is not finite");
}
