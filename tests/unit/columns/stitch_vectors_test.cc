// What a model sees of shots that may be stitched: the pictures that it sees of clips, too.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>
#include <sstream>

#include "base/json.h"
#include "clip/clip.h"
#include "columns/embed/clip_vector.h"
#include "io/file.h"
#include "media/encode/encoder.h"
#include "share/slots.h"
#include "support/temporary_folder.h"
#include "tensor/device.h"
#include "unit/curate/drawing.h"

using namespace vfm;

namespace {

constexpr int kFrames = 24;

/// Two shots, the second one from frame `cut` on, in pixels that are not square. `bars`: rows above
/// and below that are black.
void draw_video(const std::string& path, int cut, int rotation = 0, int bars = 0) {
  media::VideoEncoder encoder({.width = 96,
                               .height = 64,
                               .time_base = {1, 12},
                               .frame_rate = {12, 1},
                               .sample_aspect = {4, 3},
                               .rotation = rotation});
  const drawing::Texture one(1), two(2);
  for (int i = 0; i < kFrames; ++i) {
    const auto picture = (i < cut ? one : two).shifted(i, 0);
    media::Frame frame = drawing::frame(96, 64, [&](int x, int y) {
      return y < bars || y >= 64 - bars ? drawing::Yuv{0, 128, 128} : picture(x, y);
    });
    frame.pts = i;
    frame.duration = 1;
    encoder.add(frame);
  }
  const std::string mp4 = encoder.finish();
  std::ofstream(path, std::ios::binary).write(mp4.data(), static_cast<std::streamsize>(mp4.size()));
}

struct Cut {
  long errors = 0;
  std::vector<Json> clips;  // KEY.json
  Json video;               // DIR/<h>.json
};

/// vfm-clip of `folder`/video.mp4.
Cut cut_video(const TemporaryFolder& folder, clip::PictureVectors vectors, double threshold,
              bool crop = false) {
  clip::ClipOptions options;
  options.inputs = {folder / "video.mp4"};
  options.directory = folder / "clips";
  options.format = clip::ClipFormat::files;
  options.recipe.min_seconds = 0;
  options.recipe.crop = crop;
  options.recipe.stitch_model = Json{{"name", "clip"}, {"hash", "1a2b"}, {"rule", "cosine"}};
  options.recipe.stitch_threshold = threshold;
  options.stitch_vectors = std::move(vectors);
  std::filesystem::remove_all(options.directory);
  const int fd = ::open("/dev/null", O_WRONLY);
  io::ManifestWriter manifest(fd);
  share::Slots slots(1);
  Progress progress;
  Cut cut;
  cut.errors = clip::run(options, slots, progress, manifest);
  ::close(fd);
  for (const auto& file : std::filesystem::directory_iterator(options.directory)) {
    const std::string path = file.path().string(), kind = file.path().extension().string();
    if (kind == ".json") cut.clips.push_back(parse_json(io::read_file(path), path));
    if (kind == ".files") cut.video = parse_json(io::read_file(path), path);
  }
  return cut;
}

}  // namespace

TEST_CASE("the frames where shots meet have the vectors that clips have of them, to the bit") {
  const auto encoder =
      models::make_picture_encoder(VFM_GOLDEN "/picture_encoders/clip", Device::cpu, DType::f32);
  std::vector<std::vector<float>> met;
  const auto vectors = [&](std::span<const media::RgbImage> pictures) {
    std::vector<models::PictureView> views;
    for (const media::RgbImage& picture : pictures)
      views.push_back({picture.width, picture.height, picture.pixels});
    met = encoder->encode(views);
    return met;
  };
  // Of all frames one is in the middle: here the first of its shot, there the last.
  const int rotation = GENERATE(0, 90);
  const TemporaryFolder folder;
  for (const int which : {0, 1}) {
    INFO(rotation << " degrees, " << (which == 1 ? "first frame" : "last frame"));
    draw_video(folder / "video.mp4", kFrames / 2 + 1 - which, rotation);
    const Cut cut = cut_video(folder, vectors, 1);
    REQUIRE(met.size() == 2);
    const columns::PreparedClip clip =
        columns::prepare_file(folder / "video.mp4", *encoder, 1, nullptr);
    REQUIRE(clip.frames.size() == 1);
    CHECK(met[static_cast<std::size_t>(which)] == encoder->encode_prepared(clip.frames)[0]);
    CHECK(met[0] != met[1]);
    CHECK(cut.video["cuts"][0]["likeness"].get<double>() ==
          Approx(curate::vector_likeness(met[0], met[1])).margin(1e-6));
  }
}

TEST_CASE("a model sees no bars that are cut off") {
  const int rotation = GENERATE(0, 90);
  const TemporaryFolder folder;
  draw_video(folder / "video.mp4", 12, rotation, 10);
  std::vector<std::pair<int, int>> sizes;
  const auto vectors = [&](std::span<const media::RgbImage> pictures) {
    for (const media::RgbImage& picture : pictures)
      sizes.emplace_back(picture.width, picture.height);
    return std::vector<std::vector<float>>{{1, 0}, {1, 0}};
  };
  cut_video(folder, vectors, 1, true);
  const std::pair<int, int> shown = rotation == 0 ? std::pair(128, 44) : std::pair(44, 128);
  CHECK(sizes == std::vector{shown, shown});
}

TEST_CASE("shots are stitched from the threshold on, and clips say by what") {
  const TemporaryFolder folder;
  draw_video(folder / "video.mp4", 12);
  int calls = 0;
  const auto vectors = [&](std::span<const media::RgbImage> pictures) {
    ++calls;
    CHECK(pictures.size() == 2);
    return std::vector<std::vector<float>>{{1, 0}, {6, 8}};
  };
  const Cut apart = cut_video(folder, vectors, 0.61), joined = cut_video(folder, vectors, 0.59);
  CHECK(calls == 2);
  CHECK(apart.errors == 0);
  CHECK(apart.clips.size() == 2);
  REQUIRE(joined.clips.size() == 1);
  CHECK(joined.clips[0]["shots"] == 2);
  CHECK(joined.clips[0]["frames"] == kFrames);
  CHECK(dump_json(joined.clips[0]["stitch_model"]) ==
        R"({"name":"clip","hash":"1a2b","rule":"cosine","threshold":0.59})");
  CHECK(joined.video["cuts"].size() == 1);
  CHECK(joined.video["cuts"][0]["likeness"] == 0.6);
  CHECK(joined.video["settings"]["recipe"]["stitch_model"]["hash"] == "1a2b");
  CHECK(joined.clips[0]["key"] != cut_video(folder, vectors, 0.6).clips[0]["key"]);
}

TEST_CASE("vectors that are no numbers stitch nothing, and are an error") {
  const TemporaryFolder folder;
  draw_video(folder / "video.mp4", 12);
  const std::vector<float> fine{1, 0},
      bad = GENERATE(std::vector<float>{0, 0}, std::vector<float>{std::nanf(""), 1},
                     std::vector<float>{INFINITY, 1});
  const Cut cut = cut_video(
      folder,
      [&](auto) {
        return std::vector{fine, bad};
      },
      0);
  CHECK(cut.errors == 1);
  CHECK(cut.clips.size() == 2);
  CHECK(cut.video["errors"] ==
        Json{"shots are not stitched where --stitch gives vectors that are not numbers"});
  CHECK(!cut.video["cuts"][0].contains("likeness"));
}

TEST_CASE("pixels of a shape that cannot be are taken as square, and shots are stitched") {
  const TemporaryFolder folder;
  draw_video(folder / "video.mp4", 12);
  // Pixels a thousand times as wide as high.
  std::string mp4 = io::read_file(folder / "video.mp4");
  const std::size_t at = mp4.find("pasp");
  REQUIRE(at != std::string::npos);
  mp4.replace(at + 4, 8, std::string("\0\0\x03\xe8\0\0\0\1", 8));
  std::ofstream(folder / "video.mp4", std::ios::binary) << mp4;
  const Cut cut = cut_video(
      folder,
      [&](auto) {
        return std::vector<std::vector<float>>{{1, 0}, {1, 0}};
      },
      0);
  CHECK(cut.errors == 0);
  CHECK(cut.clips.size() == 1);
}

TEST_CASE("the likeness of two vectors is their cosine, if they have one") {
  const std::vector<float> a{3, 4}, zeros{0, 0};
  CHECK(curate::vector_likeness(a, {0.5f, 0}) == Approx(0.6));
  CHECK(curate::vector_likeness(a, {-6, -8}) == -1);
  CHECK(std::isnan(curate::vector_likeness(zeros, a)));
  CHECK(std::isnan(curate::vector_likeness(a, zeros)));
  CHECK(std::isnan(curate::vector_likeness(a, {3, 4, 0})));
}

TEST_CASE("a GPU that fails while shots are stitched ends the run: it is no fault of the video") {
  const TemporaryFolder folder;
  draw_video(folder / "video.mp4", 12);
  const auto vectors = [](auto) -> std::vector<std::vector<float>> {
    throw GpuError("cannot copy: unspecified launch failure");
  };
  CHECK_THROWS_AS(cut_video(folder, vectors, 0.5), GpuError);
}
