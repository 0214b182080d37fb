// Measures, boxes, sound and pictures in the facts of clips.
// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/measures.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "clip/cut/bars.h"
#include "clip/cut/images.h"
#include "clip/cut/sound_across.h"
#include "media/encode/encoder.h"
#include "support/parts.h"
#include "unit/clip/clip_run.h"
#include "unit/media/media_files.h"

using namespace vfm;
using namespace vfm::clip;

namespace {

media::StreamInfo turned(int rotation, bool mirror) {
  media::StreamInfo info;
  info.rotation = rotation;
  info.mirror = mirror;
  return info;
}

}  // namespace

TEST_CASE("a box is told as it stands in the upright picture") {
  const media::Rectangle box{2, 4, 10, 20};
  CHECK(upright_box(box, 100, 50, turned(0, false)) == "10x20+2+4");
  CHECK(upright_box(box, 100, 50, turned(90, false)) == "20x10+26+2");
  CHECK(upright_box(box, 100, 50, turned(90, true)) == "20x10+26+88");
  CHECK(upright_box(box, 100, 50, turned(180, false)) == "10x20+88+26");
}

TEST_CASE("measures of pictures are null where they are not known") {
  curate::ClipMeasures measures;
  measures.camera_motion = 0.1;
  measures.object_motion = 0.2;
  measures.doubled = 0.3;
  Json facts;
  add_picture_measures(facts, measures);
  CHECK(dump_json(facts) ==
        R"({"camera_motion":0.1,"object_motion":0.2,"doubled":0.3,"focus":null,)"
        R"("underexposed":null,"overexposed":null,"blockiness":null,"banding":null,)"
        R"("combing":null,"text_area":null,"text_area_most":null,"bars":null,"logo_area":null})");
  curate::PictureMeasures pictures;
  pictures.quality = {.focus = 0.11,
                      .underexposed = 0.12,
                      .overexposed = 0.13,
                      .blockiness = 1.14,
                      .banding = 0.15,
                      .combing = 0.16};
  pictures.text_area = 0.17;
  pictures.text_area_most = 0.18;
  pictures.bars = 0.19;
  pictures.whole = {0, 0, 100, 50};
  pictures.overlay_known = true;
  measures.pictures = pictures;
  facts = {};
  add_picture_measures(facts, measures);
  CHECK(dump_json(facts) ==
        R"({"camera_motion":0.1,"object_motion":0.2,"doubled":0.3,"focus":0.11,)"
        R"("underexposed":0.12,"overexposed":0.13,"blockiness":1.14,"banding":0.15,)"
        R"("combing":0.16,"text_area":0.17,"text_area_most":0.18,"bars":0.19,"logo_area":0.0})");
  measures.pictures->overlay = curate::PixelArea{10, 20, 35, 40};
  add_picture_measures(facts, measures);
  CHECK(facts.at("logo_area") == 0.1);
}

TEST_CASE("boxes are of the source's pictures, though bars are cut off") {
  const media::StreamInfo upright = turned(0, false);
  curate::PictureMeasures pictures;
  pictures.whole = pictures.proposed_crop = {0, 0, 100, 50};
  const auto boxes = [&](const std::optional<CroppedPicture>& cropped,
                         const media::StreamInfo& info) {
    Json facts;
    add_boxes(facts, pictures, cropped, info);
    return dump_json({facts.at("logo"), facts.at("proposed_crop")});
  };
  CHECK(boxes(std::nullopt, upright) == "[null,null]");
  pictures.overlay = curate::PixelArea{10, 20, 35, 40};
  pictures.proposed_crop = {4, 0, 100, 50};
  CHECK(boxes(std::nullopt, upright) == R"(["25x20+10+20","96x50+4+0"])");
  const CroppedPicture cropped{{6, 8, 100, 50}, 120, 70};
  CHECK(boxes(cropped, upright) == R"(["25x20+16+28","96x50+10+8"])");
  CHECK(boxes(cropped, turned(180, false)) == R"(["25x20+79+22","96x50+14+12"])");
  // Of pictures of another size nothing was cut off.
  CHECK(boxes(CroppedPicture{{6, 8, 100, 60}, 120, 70}, upright) ==
        R"(["25x20+10+20","96x50+4+0"])");
  CHECK(boxes(CroppedPicture{{6, 8, 90, 50}, 120, 70}, upright) ==
        R"(["25x20+10+20","96x50+4+0"])");
  Json facts;
  add_boxes(facts, std::nullopt, cropped, upright);
  CHECK(facts == Json{{"proposed_crop", nullptr}, {"logo", nullptr}});
}

TEST_CASE("measures of sound are null where there is none, and each where it is not known") {
  const auto told = [](const std::optional<media::SoundMeasures>& sound) {
    Json facts;
    add_sound_measures(facts, sound);
    return dump_json(facts);
  };
  CHECK(told(std::nullopt) == R"({"loudness":null,"silence":null,"speech":null})");
  CHECK(told(media::SoundMeasures{}) == R"({"loudness":null,"silence":1.0,"speech":null})");
  CHECK(told(media::SoundMeasures{-23.1234567, 0.25, 0.5}) ==
        R"({"loudness":-23.123457,"silence":0.25,"speech":0.5})");
}

TEST_CASE("joins of shots are told with their times, and the least continuous sound among them") {
  Json facts;
  add_joins(facts, {}, {1, 10});
  CHECK(dump_json(facts) == R"({"joins":[],"sound_at_joins":null})");
  add_joins(facts, {{5, {0.75, 0.5, 0.6}}, {12, {0.9, {}, 0.6}}, {33, {0.8, 0.25, 0.79}}}, {1, 10});
  CHECK(dump_json(facts) ==
        R"({"joins":[{"pts":5,"time":0.5,"likeness":0.75,"sound":0.5,"threshold":0.6},)"
        R"({"pts":12,"time":1.2,"likeness":0.9,"sound":null,"threshold":0.6},)"
        R"({"pts":33,"time":3.3,"likeness":0.8,"sound":0.25,"threshold":0.79}],)"
        R"("sound_at_joins":0.25})");
  CHECK(Join{0.6, {}, 0.6}.joins());
  CHECK_FALSE(Join{0.599, {}, 0.6}.joins());
  CHECK_FALSE(Join{std::nan(""), {}, 0.6}.joins());
}

namespace {

/// Two seconds of stereo of 16 kHz; level(seconds) is -1 to 1.
template <class Level>
std::string wav(Level&& level) {
  constexpr std::uint32_t kRate = 16000, kBytes = 2 * kRate * 4;
  std::string file = "RIFF....WAVEfmt ";
  const auto put = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      file += static_cast<char>(value >> (8 * i) & 255);
  };
  put(16, 4), put(1, 2), put(2, 2), put(kRate, 4), put(kRate * 4, 4), put(4, 2), put(16, 2);
  file += "data";
  put(kBytes, 4);
  for (std::uint32_t i = 0; i < 2 * kRate; ++i)
    for (int side = 0; side < 2; ++side)
      put(static_cast<std::uint32_t>(std::lround(20000 * level(i / double{kRate}))), 2);
  return file;
}

/// A tone with overtones.
double tone(double hertz, double t) {
  double sum = 0;
  for (int i = 1; i <= 5; ++i)
    sum += std::sin(2 * M_PI * hertz * i * t) / (2 * i);
  return sum / 2;
}

}  // namespace

TEST_CASE("where sound goes on across a change less likeness joins, where it breaks more does") {
  const TemporaryFolder folder;
  folder.write("on.wav", wav([](double t) { return tone(220, t); }));
  folder.write("breaks.wav",
               wav([](double t) { return t < 1 ? tone(220, t) : 0.1 * std::sin(40000 * t * t); }));
  ClipRecipe recipe;
  recipe.stitch_sound = true;
  media::StreamInfo info;
  info.time_base = {1, 1000};
  info.has_audio = true;
  const auto judge = [&](const char* name, double likeness, const SoundAcross::Place& place) {
    return SoundAcross(folder / name, recipe, info).judge(likeness, 0.6, place);
  };
  const SoundAcross::Place middle{0, 1000, 1000};
  const Join on = judge("on.wav", 0.55, middle);
  REQUIRE(on.sound);
  CHECK(*on.sound > 0.9);
  CHECK(on.threshold == Approx(curate::threshold_with_sound(0.6, *on.sound)));
  CHECK(on.threshold < 0.55);
  CHECK(on.joins());
  const Join breaks = judge("breaks.wav", 0.7, middle);
  REQUIRE(breaks.sound);
  CHECK(*breaks.sound < 0.3);
  CHECK(breaks.threshold > 0.7);
  CHECK_FALSE(breaks.joins());
  CHECK(breaks.likeness == 0.7);
  const auto is_silent = [&](const char* name, double likeness, const SoundAcross::Place& place) {
    const Join join = judge(name, likeness, place);
    CHECK(join.threshold == (join.sound ? join.threshold : 0.6));
    return !join.sound;
  };
  // Nothing is heard where it would change nothing, or without sound right beside the change.
  CHECK(is_silent("on.wav", 0.519, middle));
  CHECK_FALSE(is_silent("on.wav", 0.521, middle));
  CHECK(is_silent("on.wav", std::nan(""), middle));
  CHECK(is_silent("on.wav", 0.7, {3000, 4000, 4000}));
  CHECK_FALSE(is_silent("on.wav", 0.7, {0, 2040, 1000}));
  CHECK(is_silent("on.wav", 0.7, {0, 2041, 1000}));
  CHECK_FALSE(is_silent("on.wav", 0.7, {0, 1000, -40}));
  CHECK(is_silent("on.wav", 0.7, {0, 1000, -41}));
  CHECK(is_silent("on.wav", 0.7, {999, 1000, 1000}));  // a shot of a millisecond
  // Nor of a file that cannot be read, or a source without end of which no clip has the sound.
  CHECK(is_silent("none.wav", 0.7, middle));
  info.endless = true;
  CHECK(is_silent("on.wav", 0.7, middle));
  info.endless = false;
  info.has_audio = false;
  CHECK(is_silent("on.wav", 0.7, middle));
  info.has_audio = true;
  recipe.stitch_sound = false;
  CHECK(is_silent("on.wav", 0.7, middle));
  recipe.stitch_sound = true;
  recipe.stitch = false;
  CHECK(is_silent("on.wav", 0.7, middle));
}

TEST_CASE("bars are found in all of a video's frames, or in its key frames if these are many") {
  const TemporaryFolder folder;
  const auto draw = [](int bars) {
    const drawing::Texture texture(1);
    media::Frame frame = drawing::frame(64, 48, [&](int x, int y) {
      return y < bars || y >= 48 - bars ? drawing::Yuv{16, 128, 128} : texture.at(x, y);
    });
    frame.full_range = false;
    return frame;
  };
  /// The bars grow at frame 10, which is no key frame.
  const auto video = [&](int from, int to, int gop) {
    media::VideoEncoder encoder({.encoder = "libx264",
                                 .gop = gop,
                                 .width = 64,
                                 .height = 48,
                                 .time_base = {1, 25},
                                 .frame_rate = {25, 1}});
    for (int i = 0; i < 60; ++i) {
      media::Frame frame = draw(i % 2 == 0 ? from : to);
      frame.pts = i;
      frame.duration = 1;
      encoder.add(frame);
    }
    folder.write("a.mp4", encoder.finish());
    return find_picture(folder / "a.mp4", {});
  };
  const auto few = video(8, 4, 60);
  REQUIRE(few);
  CHECK(few->picture == media::Rectangle{0, 4, 64, 40});
  CHECK(few->width == 64);
  CHECK(few->height == 48);
  CHECK_FALSE(video(8, 0, 60));
  const auto many = video(8, 4, 2);  // thirty key frames are enough
  REQUIRE(many);
  CHECK(many->picture == media::Rectangle{0, 8, 64, 32});
  const media::Frame frame = draw(8);
  CHECK(many->of(frame).height == 32);
  CHECK(many->of(frame).plane[0] == frame.plane[0] + 8 * frame.stride[0]);
  CHECK(many->of(media::make_frame(media::PixelLayout::gray, 64, 50)).height == 50);
  CHECK(many->of(media::make_frame(media::PixelLayout::gray, 66, 48)).height == 48);
}

TEST_CASE("a picture's sample has its bytes as they are, and what it measures") {
  const TemporaryFolder folder;
  const std::string bytes = clip_run::drawn_bitmap(5), path = folder / "a b.bmp",
                    hash = hash_hex(bytes);
  folder.write("a b.bmp", bytes);
  const shard::Sample sample = image_sample(path, hash, false);
  CHECK(sample.key == hash_hex("image " + hash));
  CHECK(sample.key == image_key(path, hash, false));
  CHECK(image_key(path, hash, true) == "a_b-" + sample.key.substr(0, 8));
  CHECK(image_sample(path, hash, true).key == image_key(path, hash, true));
  REQUIRE(sample.members.size() == 2);
  CHECK(sample.members[0].extension == "bmp");
  CHECK(sample.members[0].data == bytes);
  clip_run::check_same(parse_json(*sample.find("json"), "it"), {{"key", sample.key},
                                                                {"media", "image"},
                                                                {"source", path},
                                                                {"source_hash", hash},
                                                                {"width", 64},
                                                                {"height", 48},
                                                                {"frames", 1},
                                                                {"seconds", 0},
                                                                {"codec", "bmp"},
                                                                {"bytes", 9270},
                                                                {"audio", nullptr},
                                                                {"motion", 0},
                                                                {"motion_per_second", 0},
                                                                {"brightness", 0.464604},
                                                                {"contrast", 0.085586},
                                                                {"saturation", 0.341885},
                                                                {"sharpness", 0.00491},
                                                                {"black", 0.0},
                                                                {"frozen", 0},
                                                                {"color_1", "#885275"},
                                                                {"color_1_share", 0.116211},
                                                                {"color_2", "#71598d"},
                                                                {"color_2_share", 0.082031},
                                                                {"color_3", "#864b8b"},
                                                                {"color_3_share", 0.080078},
                                                                {"camera_motion", 0.0},
                                                                {"object_motion", 0.0},
                                                                {"doubled", 0.0},
                                                                {"focus", 0.017888},
                                                                {"underexposed", 0.0},
                                                                {"overexposed", 0.0},
                                                                {"blockiness", 1.100753},
                                                                {"banding", 0.0},
                                                                {"combing", 0.0},
                                                                {"text_area", 0.0},
                                                                {"text_area_most", 0.0},
                                                                {"bars", 0.0},
                                                                {"logo_area", nullptr},
                                                                {"proposed_crop", nullptr},
                                                                {"logo", nullptr},
                                                                {"loudness", nullptr},
                                                                {"silence", nullptr},
                                                                {"speech", nullptr},
                                                                {"shots", 1}});
}

TEST_CASE("a picture that cannot be used says why") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& name, const std::string& bytes) -> std::string {
    folder.write(name, bytes);
    try {
      image_sample(folder / name, "h", false);
    } catch (const ImageError& error) {
      std::string text = error.what();
      text = replaced(text, folder.path + "/", "");
      return text;
    }
    return "nothing";
  };
  CHECK(said("a.png", clip_run::shots({3})) ==
        "'a.png' has the name of a picture, but is a video (rawvideo); rename it");
  CHECK_FALSE(said("b.png", "no picture").empty());
  std::string cut = clip_run::drawn_bitmap(5);
  cut.resize(cut.size() / 2);
  CHECK(said("c.bmp", cut) == "'c.bmp' holds no picture that can be decoded");
  NEED_FFMPEG();
  const std::string jpeg = media_files::read(media_files::path("still.jpg"));
  CHECK(said("d.jpg", jpeg.substr(0, jpeg.size() * 2 / 3)) == "'d.jpg' is a damaged picture");
  CHECK(said("d.jpg", jpeg) == "nothing");
}
