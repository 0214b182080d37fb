// Pictures that are made where a GPU would have them are those of the CPU, to the byte. Here the
// "GPU's" memory is the host's; tests/kernels/emulation/clips_test.cc does the same with kernels.
// SPDX-License-Identifier: Apache-2.0
#include "pack/gpu_canvas.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/philox.h"
#include "support/gpu_decoder.h"
#include "support/gpu_sizes.h"
#include "unit/media/media_files.h"

using namespace vfm;
using namespace vfm::pack;

TEST_CASE("pictures on a GPU are those of the scaler") {
  const test::GpuSize size = GENERATE(from_range(test::kGpuSizes));
  CAPTURE(size.width, size.height, size.to_width, size.to_height);
  GpuScales scales(Device::cpu);
  test::check_gpu_size(scales, size, test::in_host_memory);
}

TEST_CASE("what the numbers cannot do is left to the CPU") {
  GpuScales scales(Device::cpu);
  const media::ScaledPart wide{{0, 0, 16, 16}, 40'000, 16, false, 1, false};
  CHECK(scales.find(wide) == nullptr);
  CHECK(scales.find(wide) == nullptr);
  const media::ScaledPart some{{4, 6, 64, 64}, 32, 32, true, 1, false};
  const auto tables = scales.find(some);
  REQUIRE(tables);
  media::ScaledPart elsewhere = some;
  elsewhere.part.x = 10;
  CHECK(scales.find(elsewhere) == tables);
}

namespace {

/// A clip's only window, on a canvas.
struct OnGpu {
  data::ClipPixels clip;
  Tensor pictures;
};
OnGpu on_canvas(const std::string& bytes, const std::string& name, const std::string& key,
                const data::PixelOptions& options, GpuScales& scales) {
  OnGpu made;
  data::read_windows(
      bytes, name, key, options,
      [&](data::ClipPixels window, const data::ClipCanvas* canvas) {
        made.clip = std::move(window);
        made.pictures = static_cast<const GpuCanvas*>(canvas)->pictures();
      },
      [&] { return std::make_unique<GpuCanvas>(scales); });
  return made;
}

}  // namespace

TEST_CASE("frames come to the system's memory for a canvas that cannot draw them") {
  NEED_FFMPEG();
  const std::string bytes = media_files::read(media_files::path("plain.mp4"));
  const test::GpuPlayer player(test::in_host_memory);
  const data::PixelOptions options{.size = 48, .frames = 9, .hardware = &player};
  GpuScales scales(Device::cpu, false);
  const OnGpu made = on_canvas(bytes, "plain.mp4", "a", options, scales);
  CHECK(made.clip.frames == 9);
  CHECK(player.kept == 0);
  CHECK(made.pictures.size(0) == 9);
}

TEST_CASE("a clip on a canvas has the pixels of one that is decoded by software") {
  NEED_FFMPEG();
  const auto name = GENERATE("plain.mp4", "rotated.mp4", "vp9.webm", "ten_bit.mp4", "still.png",
                             "missing_pts.avi");
  // All on the GPU, some of them, and one whose decoder gives up.
  const auto [kept, all] =
      GENERATE(table<int, int>({{1 << 30, 1 << 30}, {3, 1 << 30}, {1 << 30, 5}}));
  const bool random = GENERATE(false, true);
  CAPTURE(name, kept, all, random);
  const std::string bytes = media_files::read(media_files::path(name));
  data::PixelOptions options{.size = 48, .frames = 9, .flip = 0.5};
  options.crop = random ? data::CropMode::random : data::CropMode::centre;
  options.seed = 7;
  bool mirrored = false;
  for (const std::string key : {"a", "b", "c"}) {
    const data::ClipPixels expected = data::clip_pixels(bytes, name, key, options);
    const test::GpuPlayer player(test::in_host_memory, kept, all);
    data::PixelOptions on_gpu = options;
    on_gpu.hardware = &player;
    GpuScales scales(Device::cpu);
    const auto [clip, pictures] = on_canvas(bytes, name, key, on_gpu, scales);
    CHECK(clip.pixels.empty());
    CHECK(clip.frames == expected.frames);
    CHECK(clip.crop == expected.crop);
    CHECK(clip.fps == expected.fps);
    CHECK(clip.first_frame == expected.first_frame);
    REQUIRE(pictures.shape() == Shape{expected.frames, expected.height, expected.width, 3});
    const std::size_t places = expected.pixels.size() / 3;
    std::size_t differ = 0;
    for (std::size_t i = 0; i < places; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        differ += static_cast<float>(pictures.data<std::uint8_t>()[3 * i + c]) / 127.5f - 1 !=
                  expected.pixels[c * places + i];
    CHECK(differ == 0);
    const bool takes = std::string(name) != "ten_bit.mp4" && std::string(name) != "still.png";
    CHECK((player.kept > 0) == takes);
    mirrored = mirrored || Random(7, Purpose::crop, 0, random_key(key)).uniform(3) < 0.5;
  }
  CHECK(mirrored);
}

TEST_CASE("windows that share frames are the same on canvases and in pixels") {
  NEED_FFMPEG();
  const std::string bytes = media_files::read(media_files::path("plain.mp4"));
  const test::GpuPlayer player(test::in_host_memory);
  data::PixelOptions options{.size = 48, .frames = 9, .windows = 0, .overlap = 5};
  std::vector<data::ClipPixels> expected;
  const data::FrameCount frames =
      data::read_windows(bytes, "plain.mp4", "a", options,
                         [&](data::ClipPixels window, const data::ClipCanvas* canvas) {
                           CHECK(canvas == nullptr);
                           expected.push_back(std::move(window));
                         });
  REQUIRE(expected.size() > 2);
  CHECK(frames.latents + frames.remainder == frames.read);
  CHECK(expected[1].first_frame == expected[0].first_frame + 4);
  options.hardware = &player;
  GpuScales scales(Device::cpu);
  std::size_t next = 0;
  data::read_windows(
      bytes, "plain.mp4", "a", options,
      [&](const data::ClipPixels& window, const data::ClipCanvas* canvas) {
        const data::ClipPixels& same = expected.at(next++);
        CHECK(window.window == same.window);
        CHECK(window.first_frame == same.first_frame);
        CHECK(window.begin == same.begin);
        CHECK(window.end == same.end);
        const Tensor pictures = static_cast<const GpuCanvas*>(canvas)->pictures();
        const std::size_t places = same.pixels.size() / 3;
        std::size_t differ = 0;
        for (std::size_t i = 0; i < places; ++i)
          differ += static_cast<float>(pictures.data<std::uint8_t>()[3 * i]) / 127.5f - 1 !=
                    same.pixels[i];
        CHECK(differ == 0);
      },
      [&] { return std::make_unique<GpuCanvas>(scales); });
  CHECK(next == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {  // one alone is the same
    data::PixelOptions one = options;
    one.hardware = nullptr;
    one.only = static_cast<int>(i);
    CHECK(data::clip_pixels(bytes, "plain.mp4", "a", one).pixels == expected[i].pixels);
  }
}
