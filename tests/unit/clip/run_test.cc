// What vfm-clip writes of small videos: the clips' records, the list of a video, its errors.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "base/hash.h"
#include "media/decode/decoder.h"
#include "media/encode/encoder.h"
#include "support/heard_log.h"
#include "support/parts.h"
#include "support/usage_error.h"
#include "unit/clip/clip_run.h"

using namespace vfm;
using namespace vfm::clip;
using clip_run::ClipRun;
using clip_run::Lines;

namespace {

/// Three shots of BT.709 with bars above and below, stored on their side and in pixels that are
/// not square; 12 frames a second, without loss.
std::string turned_video() {
  media::VideoEncoder encoder({.encoder = "ffv1",
                               .width = 96,
                               .height = 64,
                               .time_base = {1, 120},
                               .frame_rate = {12, 1},
                               .sample_aspect = {4, 3},
                               .rotation = 90});
  for (int i = 0; i < 30; ++i) {
    const drawing::Texture texture(static_cast<std::uint64_t>(i < 8 ? 1 : i < 20 ? 2 : 3));
    const auto moved = texture.shifted(i, 0);
    media::Frame frame = drawing::frame(96, 64, [&](int x, int y) {
      return y < 8 || y >= 60 ? drawing::Yuv{16, 128, 128} : moved(x, y);
    });
    frame.full_range = false;
    frame.color = {1, 1, 1};
    frame.pts = 10 * i;
    frame.duration = i == 19 ? 20 : i == 29 ? 11 : 10;
    if (i > 19) frame.pts += 10;
    encoder.add(frame);
  }
  return encoder.finish();
}

}  // namespace

TEST_CASE("a clip's record says what of the source it shows, how, and in what codes") {
  ClipRun run;
  run.source("a.mov", turned_video());
  run.options.recipe.crop = true;
  run.options.verify = true;
  CHECK(run.run() == 0);
  const std::vector<Json> clips = run.clips();
  REQUIRE(clips.size() == 3);
  const std::string hash = io::hash_file(run.folder / "a.mov");
  const Json index = run.index(), recipe = index.at("settings").at("recipe");
  const Json identity = {{"source", hash}, {"stream", 0},        {"begin", 10240},
                         {"end", 26880},   {"base", {1, 15360}}, {"recipe", recipe}};
  // The bytes are an encoder's matter.
  Json clip = clips[1];
  CHECK(clip.at("bytes") == run.samples()[1].find("mp4")->size());
  clip["bytes"] = 0;
  clip_run::check_same(clip, {{"key", hash_hex(dump_json(identity))},
                              {"media", "video"},
                              {"source", run.folder / "a.mov"},
                              {"source_hash", hash},
                              {"stream", 0},
                              {"time_base", "1/15360"},
                              {"pts_begin", 10240},
                              {"pts_end", 26880},
                              {"begin", 0.666667},
                              {"end", 1.75},
                              {"seconds", 1.083333},
                              {"width", 39},
                              {"height", 96},
                              {"fps", 11.076923},
                              {"frames", 12},
                              {"codec", "h264"},
                              {"encoder", recipe.at("encoder")},
                              {"quality", 18},
                              {"bytes", 0},
                              {"audio", nullptr},
                              {"sample_aspect", "3/4"},
                              {"transfer", "bt709"},
                              {"primaries", "bt709"},
                              {"bit_depth", 8},
                              {"source_codec", "ffv1"},
                              {"source_width", 64},
                              {"source_height", 128},
                              {"source_transfer", "bt709"},
                              {"source_primaries", "bt709"},
                              {"source_bit_depth", 8},
                              {"source_interlaced", false},
                              {"deinterlaced", false},
                              {"motion", 0.010326},
                              {"motion_per_second", 0.114379},
                              {"brightness", 0.504756},
                              {"contrast", 0.164833},
                              {"saturation", 0.414512},
                              {"sharpness", 0.004641},
                              {"black", 0.0},
                              {"frozen", 0.0},
                              {"color_1", "#a38cc9"},
                              {"color_1_share", 0.04834},
                              {"color_2", "#446e90"},
                              {"color_2_share", 0.043457},
                              {"color_3", "#5b6493"},
                              {"color_3_share", 0.041504},
                              {"camera_motion", 0.009902},
                              {"object_motion", 0.002118},
                              {"doubled", 0.0},
                              {"focus", 0.017495},
                              {"underexposed", 0.0},
                              {"overexposed", 0.0},
                              {"blockiness", 0.951833},
                              {"banding", 0.0},
                              {"combing", 0.0},
                              {"text_area", 0.0},
                              {"text_area_most", 0.0},
                              {"bars", 0.0},
                              {"logo_area", nullptr},
                              {"shots", 1},
                              {"verified", true},
                              {"proposed_crop", nullptr},
                              {"logo", nullptr},
                              {"loudness", nullptr},
                              {"silence", nullptr},
                              {"speech", nullptr},
                              {"crop", "52x96+4+0"},
                              {"start_type", "cut"},
                              {"start_score", 1.111023},
                              {"end_type", "cut"},
                              {"end_score", 1.117979}});
  CHECK(run.each("fps") == "12.0 11.076923 11.881188");
  CHECK(run.each("start_type") == R"("start" "cut" "cut")");
  CHECK(run.each("end_type") == R"("cut" "cut" "end")");
  CHECK(run.each("end_score") == "1.111023 1.117979 0.0");
}

TEST_CASE("a video's list has its changes of shot, its settings and its shards") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({8, 10, 20}));
  run.options.recipe.min_seconds = 1;
  run.options.recipe.max_seconds = 1.2;
  run.options.shard_bytes = 1;
  run.options.readable_names = true;
  const HeardLog told(LogLevel::info);
  CHECK(run.run() == 0);
  const std::string source = run.folder / "a.y4m", hash = io::hash_file(source),
                    name = hash.substr(0, 16);
  Json index = run.index(), shards = std::exchange(index["shards"], {});
  clip_run::check_same(
      index,
      {{"kind", "clips"},
       {"source", source},
       {"source_hash", hash},
       {"stream", 0},
       {"frames", 38},
       {"seconds", 3.8},
       {"corrupt", 0},
       {"cuts",
        {{{"frame", 8},
          {"pts", 8},
          {"time", 0.8},
          {"type", "cut"},
          {"score", index["cuts"][0]["score"]}},
         {{"frame", 18},
          {"pts", 18},
          {"time", 1.8},
          {"type", "cut"},
          {"score", index["cuts"][1]["score"]}}}},
       // The first shot is too short, and what is left of the last one.
       {"left_out",
        {{{"pts_begin", 0}, {"pts_end", 8}, {"begin", 0.0}, {"end", 0.8}, {"reason", "short"}},
         {{"pts_begin", 30}, {"pts_end", 38}, {"begin", 3.0}, {"end", 3.8}, {"reason", "short"}}}},
       {"errors", Json::array()},
       {"settings",
        {{"recipe",
          {{"version", 2},
           {"detector", "combined"},
           {"threshold", 0.38},
           {"gradual", true},
           {"strictness", 1.0},
           {"stitch", 0.6},
           {"min_seconds", 1.0},
           {"max_seconds", 1.2},
           {"stream", -1},
           {"encoder", media::default_encoder()},
           {"preset", ""},
           {"quality", 18},
           {"audio", "drop"}}},
         {"shard_bytes", 1},
         {"verify", false},
         {"names", "readable"}}},
       {"clips", 2},
       {"shards", nullptr}});
  CHECK(run.each("begin") == "0.8 1.8");
  CHECK(run.each("end") == "1.8 3.0");
  CHECK(run.each("end_type") == R"("cut" "split")");
  CHECK(run.each("start_score") ==
        dump_json(index["cuts"][0]["score"]) + " " + dump_json(index["cuts"][1]["score"]));
  CHECK(run.each("end_score") == dump_json(index["cuts"][1]["score"]) + " 0.0");
  CHECK(run.samples()[0].key.starts_with("a-00h00m00s800-00h00m01s800-"));
  REQUIRE(shards.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string tar = name + "-0000" + std::to_string(i) + ".tar",
                      path = run.folder / "out/" + tar;
    const Json facts = {
        {"samples", 1}, {"bytes", std::filesystem::file_size(path)}, {"xxh3", io::hash_file(path)}};
    Json listed = {{"name", tar}}, record = {{"kind", "shard"}, {"path", path}};
    listed.update(facts);
    record.update(facts);
    record.update({{"source", source}, {"source_hash", hash}, {"columns", {{"clip", path}}}});
    CHECK(shards[i] == listed);
    CHECK(run.records.at(i) == record);
  }
  CHECK(run.files() == Lines{name + "-00000.idx", name + "-00000.tar", name + "-00000.tar.idx",
                             name + "-00001.idx", name + "-00001.tar", name + "-00001.tar.idx",
                             name + ".json"});
  const auto account = [&](const std::string& end) {
    return HeardLog::count([&](const std::string& line) {
      return line.starts_with("'" + source + "': 3 shots, 2 clips, 3.8s of video" + end);
    });
  };
  CHECK(account(" in ") == 1);
  // Once more it is there.
  const std::vector<Json> records = run.records;
  CHECK(run.run() == 0);
  CHECK(run.records == records);
  CHECK(account(", there already") == 1);
}

TEST_CASE("a shot of the least length is a clip, one of the greatest is one clip") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({10, 9, 12, 24, 25, 11}));
  run.options.recipe.min_seconds = 1;
  run.options.recipe.max_seconds = 1.2;
  run.run();
  CHECK(run.each("pts_begin") == "0 19 31 43 55 67 80");
  CHECK(run.each("pts_end") == "10 31 43 55 67 79 91");
  const Json index = run.index();
  std::string left_out;
  for (const Json& span : index.at("left_out"))
    left_out += dump_json({span.at("pts_begin"), span.at("pts_end"), span.at("reason")});
  CHECK(left_out == R"([10,19,"short"][79,80,"short"])");
  // Of any length where there is no greatest; and alone it may be short.
  run.options.recipe.max_seconds = 0;
  run.options.inputs.clear();
  run.source("b.y4m", clip_run::shots({5}));
  run.source("c.y4m", clip_run::shots({41, 11}));
  run.run();
  CHECK(run.each("frames") == "5 41 11");
}

TEST_CASE("clips have the size and the rate that are asked for") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({10, 13}));
  run.options.recipe.rate = {5, 1};
  run.options.recipe.size.short_side = 24;
  run.options.verify = true;
  CHECK(run.run() == 0);
  CHECK(run.each("frames") == "5 7");
  CHECK(run.each("fps") == "5.0 5.0");
  CHECK(run.each("seconds") == "1.0 1.3");
  CHECK(run.each("width") == "32 32");
  CHECK(run.each("height") == "24 24");
  CHECK(run.each("verified") == "true true");
  CHECK(run.each("shots") == "1 1");
  const Json recipe = run.index().at("settings").at("recipe");
  CHECK(recipe.at("scale") == "short:24");
  CHECK(recipe.at("fps") == "5/1");
  media::Decoder decoder(std::string_view(*run.samples()[1].find("mp4")), "it");
  CHECK(decoder.info().width == 32);
  CHECK(decoder.info().frame_rate == Rational{5, 1});
}

TEST_CASE("strides begin at whole multiples of their length, counted from the first frame") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({12, 8}));
  run.options.recipe.stride = 0.7;
  run.options.verify = true;
  const HeardLog told(LogLevel::info);
  CHECK(run.run() == 0);
  CHECK(run.each("pts_begin") == "0 7 14");
  CHECK(run.each("pts_end") == "7 14 20");
  CHECK(run.each("start_type") == R"("start" "stride" "stride")");
  CHECK(run.each("end_type") == R"("stride" "stride" "end")");
  CHECK(run.each("verified") == "true true true");
  CHECK(run.index().at("cuts").empty());
  CHECK(run.index().at("settings").at("recipe").at("stride") == 0.7);
  CHECK(HeardLog::count([&](const std::string& line) {
          return line.starts_with("'" + run.options.inputs[0] + "': 3 clips, 2.0s of video in ");
        }) > 0);
  // The motion between two clips is of neither.
  const std::vector<Json> clips = run.clips();
  CHECK(clips[0].at("motion").get<double>() == Approx(0.0125).margin(0.003));
  CHECK(clips[1].at("motion").get<double>() > 0.004);
  // The middle of a video alone: 0.9 s of 2 s.
  run.options.most_seconds = 0.9;
  run.options.force = true;
  CHECK(run.run() == 0);
  CHECK(run.each("pts_begin") == "6 13");
  CHECK(run.each("pts_end") == "13 15");
}

TEST_CASE("given spans are cut in order, in passes, and what cannot be cut is an error") {
  ClipRun run;
  run.source("a.y4m", clip_run::shots({12, 18}));
  run.folder.write("spans.jsonl", R"({"source":"SRC","begin":0,"end":1,"name":"first"}
{"source":"SRC","begin":0.5,"end":1.5}
{"source":"SRC","begin":0.501,"end":1.504}
{"source":"SRC","begin":0.506,"end":1.494}
{"source":"SRC","begin":1,"end":"00:01.2"}
{"source":"SRC","begin":2.51,"end":2.59}
{"source":"SRC","begin":2.8,"end":3.1}
{"source":"SRC","begin":2.8,"end":3.2}
{"source":"SRC","begin":3,"end":4}
{"source":"SRC","begin":2.9,"end":null}
{"source":"SRC","begin_frame":3,"end_frame":5}
{"source":"SRC","begin_frame":29,"end_frame":31}
{"source":"missing.mp4","begin":0,"end":1}
{"source":"SRC","begin":2,"end":1}
)");
  run.folder.write("spans.jsonl", replaced(io::read_file(run.folder / "spans.jsonl"), "SRC",
                                           run.options.inputs[0]));
  run.options.spans = {run.folder / "spans.jsonl"};
  run.options.recipe.given = true;
  run.options.verify = true;
  const long errors = run.run();
  const auto spans = [&] {
    Lines all;
    for (const Json& clip : run.clips())
      all.push_back(dump_json({clip.at("pts_begin"), clip.at("pts_end"), clip.at("start_type"),
                               clip.at("end_type"), clip.value("name", "")}));
    return all;
  };
  CHECK(spans() == Lines{R"([0,10,"span","span","first"])", R"([10,12,"span","span",""])",
                         R"([28,30,"span","span",""])", R"([5,15,"span","span",""])",
                         R"([29,30,"span","span",""])", R"([6,15,"span","span",""])",
                         R"([3,5,"span","span",""])"});
  CHECK(run.faults() ==
        Lines{"line 14 of 'spans.jsonl': the span ends before it begins (line)",
              "a.y4m: line 6 of 'spans.jsonl': the span from 2.510 s to 2.590 s holds no frame "
              "(decode)",
              "a.y4m: line 8 of 'spans.jsonl': the span from 2.800 s to 3.200 s ends after the "
              "video; the clip ends with it (decode)",
              "a.y4m: line 9 of 'spans.jsonl': the span from 3.000 s to 4.000 s lies after the end "
              "of the video (decode)",
              "missing.mp4: has spans, but is not in the input (missing)"});
  CHECK(errors == static_cast<long>(run.faults().size()));
  Lines left_out;
  const Json index = run.index();
  for (const Json& span : index.at("left_out"))
    left_out.push_back(dump_json({span.at("pts_begin"), span.at("pts_end"), span.at("reason")}));
  CHECK(left_out ==
        Lines{R"([28,30,"repeated"])", R"([5,15,"repeated"])", R"([29,30,"repeated"])"});
  CHECK(index.at("frames") == 150);  // of five passes
  CHECK(index.at("seconds") == 3.0);
  CHECK(index.at("settings").at("recipe").at("spans") == true);
}

TEST_CASE("a clip has the rate that its source says, where it keeps it within a fiftieth") {
  media::VideoEncoder encoder({.encoder = "ffv1",
                               .width = 64,
                               .height = 48,
                               .time_base = {1, 1000},
                               .frame_rate = {24000, 1001}});
  const drawing::Texture one(1), two(2);
  // Times of whole milliseconds, and a last frame that stands a little longer.
  for (int i = 0; i < 49; ++i) {
    media::Frame frame = drawing::frame(64, 48, (i < 23 ? one : two).shifted(i, 0));
    frame.pts = (1001 * i + 12) / 24;
    frame.duration = (1001 * (i + 1) + 12) / 24 - frame.pts + (i == 48 ? 20 : 0);
    encoder.add(frame);
  }
  ClipRun run;
  run.source("a.mov", encoder.finish());
  CHECK(run.run() == 0);
  CHECK(run.each("frames") == "23 26");
  CHECK(run.each("fps") == "23.74031 23.74031");  // and not 23.98 and 23.53
}

TEST_CASE("an interlaced video's clips say so, and whether their combs were taken") {
  std::string video = clip_run::shots({12});
  video.replace(video.find(" Ip "), 4, " It ");
  ClipRun run;
  run.source("a.y4m", video);
  run.run();
  const std::string taken = run.clips().at(0).at("key");
  CHECK(run.each("source_interlaced") == "true");
  CHECK(run.each("deinterlaced") == "true");
  Json identity = {{"source", io::hash_file(run.folder / "a.y4m")},
                   {"stream", 0},
                   {"begin", 0},
                   {"end", 12},
                   {"base", {1, 10}},
                   {"recipe", run.index().at("settings").at("recipe")},
                   {"deinterlace", "auto"}};
  CHECK(taken == hash_hex(dump_json(identity)));
  run.options.recipe.deinterlace = false;
  run.run();
  CHECK(run.each("source_interlaced") == "true");
  CHECK(run.each("deinterlaced") == "false");
  identity.erase("deinterlace");
  identity["recipe"]["deinterlace"] = "off";
  CHECK(run.clips().at(0).at("key") == hash_hex(dump_json(identity)));
}

namespace {

/// Frames of one grey, as HDR, or as SDR of BT.2020's colours.
std::string wide_video(bool hdr) {
  const std::string encoder = hdr ? media::default_ten_bit_encoder() : "libx264";
  media::VideoEncoder video({.encoder = encoder,
                             .bit_depth = hdr ? 10 : 8,
                             .width = 64,
                             .height = 64,
                             .time_base = {1, 10},
                             .frame_rate = {10, 1}});
  for (int i = 0; i < 4; ++i) {
    media::Frame frame =
        media::make_frame(hdr ? media::PixelLayout::yuv420p10 : media::PixelLayout::yuv420, 64, 64);
    for (int p = 0; p < 3; ++p)
      for (int n = 0; n < media::plane_rows(frame, p) * frame.stride[p]; ++n)
        if (!hdr)
          media::writable(frame, p)[n] = 128;
        else if (n % 2 == 0)
          reinterpret_cast<std::uint16_t*>(media::writable(frame, p))[n / 2] = 512;
    frame.color = hdr ? media::Color{9, 16, 9} : media::Color{9, 14, 9};
    frame.pts = i;
    frame.duration = 1;
    video.add(frame);
  }
  return video.finish();
}

}  // namespace

TEST_CASE("HDR is kept where that is asked for, or toned down, and the key says which") {
  ClipRun run;
  run.source("a.mp4", wide_video(true));
  run.options.verify = true;
  run.options.recipe.keep_hdr = true;
  CHECK(run.run() == 0);
  const auto told = [&] {
    const Json clip = run.clips().at(0);
    Json facts = Json::array();
    for (const char* name : {"bit_depth", "transfer", "primaries", "source_bit_depth",
                             "source_transfer", "source_primaries", "verified", "encoder"})
      facts.push_back(clip.value(name, Json()));
    return dump_json(facts);
  };
  const auto identity = [&] {
    const Json clip = run.clips().at(0);
    return Json{{"source", io::hash_file(run.folder / "a.mp4")},
                {"stream", 0},
                {"begin", 0},
                {"end", clip.at("pts_end")},
                {"base", {1, 10 * clip.at("pts_end").get<int>() / 4}},
                {"recipe", run.index().at("settings").at("recipe")}};
  };
  const std::string ten = media::default_ten_bit_encoder();
  CHECK(told() == R"([10,"smpte2084","bt2020",10,"smpte2084","bt2020",true,")" + ten + "\"]");
  CHECK(run.index().at("settings").at("recipe").at("hdr") == "keep");
  CHECK(run.index().at("settings").at("recipe").at("hdr_encoder") == ten);
  CHECK(run.clips()[0].at("key") == hash_hex(dump_json(identity())));
  CHECK(run.clips()[0].at("brightness").get<double>() > 0.5);  // as it is seen
  run.options.recipe.keep_hdr = false;
  CHECK(run.run() == 0);
  CHECK(told() ==
        R"([8,"bt709","bt709",10,"smpte2084","bt2020",true,")" + media::default_encoder() + "\"]");
  Json toned = identity();
  toned["tone_map"] = "bt2390";
  CHECK(run.clips()[0].at("key") == hash_hex(dump_json(toned)));
}

TEST_CASE("of SDR the choice for HDR changes no key, and BT.2020's colours are converted") {
  ClipRun run;
  run.source("a.mp4", wide_video(false));
  CHECK(run.run() == 0);
  const Json before = run.clips().at(0);
  CHECK(before.at("primaries") == "bt709");
  CHECK(before.at("source_primaries") == "bt2020");
  Json identity = {{"source", io::hash_file(run.folder / "a.mp4")},
                   {"stream", 0},
                   {"begin", 0},
                   {"end", before.at("pts_end")},
                   {"base", {1, 10 * before.at("pts_end").get<int>() / 4}},
                   {"recipe", run.index().at("settings").at("recipe")},
                   {"gamut", "bt709"}};
  CHECK(before.at("key") == hash_hex(dump_json(identity)));
  run.options.recipe.keep_hdr = true;
  CHECK(run.run() == 0);
  CHECK(run.clips() == std::vector{before});
}

TEST_CASE("a recipe names what it was asked for, and nothing that is as it always was") {
  const Json plain = ClipRecipe().json();
  CHECK(dump_json(plain) ==
        R"({"version":2,"detector":"combined","threshold":0.38,"gradual":true,"strictness":1.0,)"
        R"("stitch":0.6,"min_seconds":0.5,"max_seconds":60.0,"stream":-1,"encoder":"",)"
        R"("preset":"","quality":18,"audio":"drop"})");
  ClipRecipe recipe;
  recipe.shots = {curate::Detector::transnetv2, 0.25, false, 2.5};
  recipe.stitch = false;
  recipe.stitch_sound = true;  // is of stitching
  recipe.min_seconds = 1;
  recipe.max_seconds = 2;
  recipe.stream = 3;
  recipe.encoder = "x";
  recipe.preset = "fast";
  recipe.quality = 20;
  recipe.audio = media::AudioMode::aac;
  recipe.size = {640, -2, 0};
  recipe.rate = {24000, 1001};
  recipe.crop = true;
  recipe.stride = 1.5;
  recipe.given = true;
  recipe.deinterlace = false;
  recipe.keep_hdr = true;
  recipe.hdr_encoder = "y";
  recipe.smart = true;
  recipe.smart_encoder = "z";
  recipe.stitch_model = Json{{"name", "m"}};
  recipe.detector_model = Json{{"name", "d"}};
  const std::string all =
      R"({"version":2,"detector":"transnetv2","threshold":0.25,"gradual":false,"strictness":2.5,)"
      R"("stitch":null,"min_seconds":1.0,"max_seconds":2.0,"stream":3,"encoder":"x",)"
      R"("preset":"fast","quality":20,"audio":"aac","scale":"640x-2","fps":"24000/1001",)"
      R"("crop":"auto","stride":1.5,"spans":true,"deinterlace":"off","hdr":"keep",)"
      R"("hdr_encoder":"y","encode":"smart","smart_encoder":"z",)"
      R"("stitch_model":{"name":"m"},"detector_model":{"name":"d"}})";
  CHECK(dump_json(recipe.json()) == all);
  recipe = {};
  recipe.stitch_sound = true;
  recipe.audio = media::AudioMode::copy;
  Json sound = plain;
  sound["audio"] = "copy";
  sound["stitch_sound"] = 1;
  CHECK(recipe.json() == sound);
}

TEST_CASE("an encoder that is not there, or cannot do what is asked, is refused before any work") {
  ClipRecipe recipe;
  recipe.encoder = "libx264";
  check_encoders(recipe);
  recipe.preset = "no such preset";
  CHECK_FALSE(usage_error([&] { check_encoders(recipe); }).empty());
  recipe.preset = "";
  recipe.encoder = "no_such_encoder";
  CHECK_FALSE(usage_error([&] { check_encoders(recipe); }).empty());
  recipe.encoder = "mpeg4";
  check_encoders(recipe);
  recipe.keep_hdr = true;
  CHECK_FALSE(usage_error([&] { check_encoders(recipe); }).empty());  // 8 bits alone
  recipe.keep_hdr = false;
  recipe.smart = true;
  CHECK_THAT(usage_error([&] { check_encoders(recipe); }),
             Catch::StartsWith("--smart-cut cannot join frames of encoder 'mpeg4' to copied ones "
                               "(of these it can: libx264, ") &&
                 !Catch::Contains(", )"));
  recipe.encoder = "libx264";
  check_encoders(recipe);
  recipe.encoder = "";
  check_encoders(recipe);
  // So does a run, which leaves no folder.
  ClipRun run;
  run.source("a.y4m", clip_run::shots({2}));
  run.options.recipe.encoder = "no_such_encoder";
  CHECK_FALSE(usage_error([&] { run.run(); }).empty());
  CHECK_FALSE(std::filesystem::exists(run.options.directory));
}
