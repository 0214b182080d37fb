// What a video-to-world clip begins with, as diffusers' image processor gives it to a model: the
// picture in the clip's size, to the bits of Pillow (tests/golden/pictures.json, written by
// scripts/golden/pictures.py).
// SPDX-License-Identifier: Apache-2.0
#include "generate/request/given_files.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "media/container/picture_file.h"
#include "support/noise_picture.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::generate;

namespace {

/// The bytes of RGB that the values of one given frame stand for.
std::string bytes_of(const GivenFrames& given, std::size_t pixels) {
  std::string bytes(3 * pixels, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const float level = (given.pixels[i % 3 * pixels + i / 3] + 1) * 127.5f;
    CHECK(std::abs(level - std::round(level)) < 1e-3f);
    bytes[i] = static_cast<char>(std::lround(level));
  }
  return bytes;
}

}  // namespace

TEST_CASE("a condition of another size is resized to the bits that Pillow's Lanczos gives") {
  const Json golden =
      parse_json(io::read_file(std::string(VFM_GOLDEN) + "/pictures.json"), "pictures.json");
  ModelShape shape;
  shape.given = models::GivenFramesBy::mark;
  shape.time_factor = shape.space_factor = 8;
  const TemporaryFolder folder;
  int compared = 0;
  for (const Json& one : golden["resize"]) {
    if (one["resample"] != static_cast<int>(models::Resample::lanczos)) continue;
    INFO(dump_json(one));
    const NoisePicture noise(one["from"][0].get<int>(), one["from"][1].get<int>(),
                             one["seed"].get<std::uint32_t>());
    folder.write("given.png",
                 media::encode_png({noise.view.width, noise.view.height, noise.bytes}));
    ClipRequest request;
    request.frames = 9;
    request.width = one["to"][0].get<int>(), request.height = one["to"][1].get<int>();
    request.fps = 24;
    GivenFiles files;
    files.condition.path = folder / "given.png";
    read_given_files(files, shape, request);
    REQUIRE(request.given);
    CHECK(request.given->frames == 1);
    const auto pixels = static_cast<std::size_t>(request.width) * request.height;
    REQUIRE(request.given->pixels.size() == 3 * pixels);
    const std::string bytes = bytes_of(*request.given, pixels);
    CHECK(Hasher().update(bytes.data(), bytes.size()).hex128() == one["hash"].get<std::string>());
    ++compared;
  }
  CHECK(compared == 18);
}
