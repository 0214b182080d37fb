// Pictures resized as Pillow does it, and made an encoder's input as transformers' processors do it
// (scripts/golden/pictures.py): to the last bit.
// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/picture_input.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "support/noise_picture.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using models::PictureInput;
using models::PictureSize;
using models::PictureView;
using models::Resample;

namespace {

NoisePicture noise_of(const Json& size, const Json& seed) {
  return {size[0].get<int>(), size[1].get<int>(), seed.get<std::uint32_t>()};
}

template <class T>
std::string hash_of(const std::vector<T>& values) {
  return Hasher().update(values.data(), values.size() * sizeof(T)).hex128();
}

std::vector<std::uint8_t> resize(const PictureView& picture, int width, int height,
                                 Resample resample) {
  return models::resize_picture(picture, width, height, resample, {0, 0, width, height});
}

void check_resizes(const Json& cases) {
  for (const Json& one : cases) {
    INFO(dump_json(one));
    const NoisePicture noise = noise_of(one["from"], one["seed"]);
    CHECK(hash_of(resize(noise.view, one["to"][0].get<int>(), one["to"][1].get<int>(),
                         static_cast<Resample>(one["resample"].get<int>()))) ==
          one["hash"].get<std::string>());
  }
}

Json golden() {
  return parse_json(io::read_file(std::string(VFM_GOLDEN) + "/pictures.json"), "pictures.json");
}

Json clip_config() {
  return golden()["input"][0]["config"];
}

}  // namespace

TEST_CASE("pictures are resized to the bits that Pillow gives") {
  const Json cases = golden()["resize"];
  REQUIRE(cases.size() == 54);
  check_resizes(cases);
}

// VFM_PYTHON: an interpreter with what scripts/golden/pictures.py needs. [long], as a run of all
// but these would take it.
TEST_CASE("pictures of sizes by chance are resized as by Pillow itself",
          "[.pillow][long][nightly]") {
  const char* python = std::getenv("VFM_PYTHON");
  REQUIRE(python != nullptr);
  const TemporaryFolder folder;
  const std::string seen = folder.path + "/cases.json";
  const std::string command = std::string(python) + " " + VFM_GOLDEN +
                              "/../../scripts/golden/pictures.py --random 7 300 >" + seen;
  REQUIRE(std::system(command.c_str()) == 0);
  const Json cases = parse_json(io::read_file(seen), seen)["resize"];
  REQUIRE(cases.size() == 300);
  check_resizes(cases);
}

TEST_CASE("a part of a resized picture is that part") {
  const NoisePicture noise(61, 37, 5);
  for (const Resample resample : {Resample::lanczos, Resample::bilinear, Resample::bicubic}) {
    const int width = 29, height = 83;
    const std::vector<std::uint8_t> whole = resize(noise.view, width, height, resample);
    const models::PictureWindow window{7, 40, 11, 13};
    std::vector<std::uint8_t> part;
    for (int y = 0; y < window.height; ++y)
      for (int x = 0; x < 3 * window.width; ++x)
        part.push_back(
            whole[static_cast<std::size_t>((window.top + y) * width * 3 + window.left * 3 + x)]);
    CHECK(models::resize_picture(noise.view, width, height, resample, window) == part);
  }
}

TEST_CASE("a picture's size stays its own, whatever the filter") {
  const NoisePicture noise(23, 11, 9);
  for (const Resample resample : {Resample::lanczos, Resample::bilinear, Resample::bicubic})
    CHECK(resize(noise.view, 23, 11, resample) == noise.bytes);
}

TEST_CASE("what is no picture, or no part of one, is refused") {
  const NoisePicture noise(4, 4, 1);
  PictureView wrong = noise.view;
  wrong.height = 5;
  CHECK_THROWS_WITH(resize(wrong, 2, 2, Resample::bicubic),
                    Catch::Contains("48 bytes are not a picture of 4x5"));
  CHECK_THROWS_WITH(resize({}, 2, 2, Resample::bicubic), Catch::Contains("not a picture of 0x0"));
  for (const models::PictureWindow& outside :
       std::vector<models::PictureWindow>{{0, 0, 3, 2}, {-1, 0, 1, 1}, {0, 2, 1, 1}, {0, 0, 0, 1}})
    CHECK_THROWS_WITH(models::resize_picture(noise.view, 2, 2, Resample::bicubic, outside),
                      Catch::Contains("has no part"));
}

TEST_CASE("pictures become the numbers that transformers' processors give") {
  const Json cases = golden()["input"];
  REQUIRE(cases.size() == 12);
  for (const Json& one : cases) {
    const PictureInput input = PictureInput::from_json(one["config"], "x");
    for (const Json& made : one["of"]) {
      INFO(dump_json(one["config"]) << dump_json(made));
      const PictureSize size{made["size"][0].get<int>(), made["size"][1].get<int>()};
      const NoisePicture noise = noise_of(made["picture"], made["seed"]);
      CHECK(input.size_of(noise.view.width, noise.view.height) == size);
      std::vector<float> values(3 * static_cast<std::size_t>(size.height * size.width));
      input.read(noise.view, values);
      CHECK(hash_of(values) == made["hash"].get<std::string>());
    }
  }
}

TEST_CASE("a picture of extreme shape costs the memory of its crop") {
  // The whole would be 24 x 2400000, 170 MB.
  const NoisePicture noise(100000, 1, 3);
  const PictureInput input = PictureInput::from_json(clip_config(), "x");
  CHECK(input.place(noise.view).size() == 3 * 24 * 24);
}

TEST_CASE("settings of pictures by any of their names are the same") {
  const Json config = clip_config();
  const Json same = PictureInput::from_json(config, "x").to_json();
  CHECK(dump_json(same) ==
        R"({"shortest_edge":24,"resample":"bicubic","crop":[24,24],"factor":0.00392156862745098,)"
        R"("mean":[0.48145466,0.4578275,0.40821073],"std":[0.26862954,0.26130258,0.27577711]})");
  for (const char* type : {"CLIPFeatureExtractor", "CLIPImageProcessorFast"}) {
    Json other = config;
    other["image_processor_type"] = type;
    other["size"] = 24;
    other["crop_size"] = 24;
    other["do_pad"] = false;
    other["crop_pct"] = nullptr;
    other["_valid_processor_keys"] = {"images"};
    other["processor_class"] = "CLIPProcessor";
    other.erase("resample");
    CHECK(PictureInput::from_json(other, "x").to_json() == same);
  }
  const auto of_type = [](const char* type) {
    return PictureInput::from_json({{"image_processor_type", type}}, "x").to_json();
  };
  CHECK(of_type("BitImageProcessor")["shortest_edge"] == 224);
  CHECK(of_type("BitImageProcessor")["crop"] == Json({224, 224}));
  CHECK(of_type("SiglipImageProcessor")["size"] == Json({224, 224}));
  CHECK(!of_type("SiglipImageProcessor").contains("crop"));
}

TEST_CASE("settings of pictures that are not known or not possible are refused by name") {
  const auto refused = [&](const char* name, const Json& value) {
    Json config = clip_config();
    config[name] = value;
    const std::string message =
        usage_error([&] { PictureInput::from_json(config, "'a/preprocessor_config.json'"); });
    CHECK_THAT(message, Catch::StartsWith("'a/preprocessor_config.json': \"" + std::string(name)));
    return message;
  };
  CHECK_THAT(refused("do_pad", true), Catch::Contains("is true, which is not supported here"));
  CHECK_THAT(refused("max_num_patches", 256), Catch::Contains("is 256, which is not supported"));
  CHECK_THAT(refused("image_processor_type", "ViTImageProcessor"),
             Catch::Contains("Siglip2ImageProcessor, BitImageProcessor"));
  CHECK_THAT(refused("resample", 0), Catch::Contains("is 0; 1 (Lanczos)"));
  CHECK_THAT(refused("resample", 4), Catch::Contains("is 4; "));
  CHECK_THAT(refused("size", {{"shortest_edge", 24}, {"longest_edge", 48}}),
             Catch::Contains("longest_edge"));
  CHECK_THAT(refused("size", {{"height", 0}, {"width", 4}}), Catch::Contains("1 to 16384, not 0"));
  CHECK_THAT(refused("crop_size", "large"), Catch::Contains("not \"large\""));
  CHECK_THAT(refused("do_center_crop", false), Catch::Contains("sizes of their own"));
  CHECK_THAT(refused("do_resize", 1), Catch::Contains("true or false, not 1"));
  CHECK_THAT(refused("image_mean", {0.5, 0.5}), Catch::Contains("three numbers"));
  CHECK_THAT(refused("image_std", {0.5, 0.5, 0}), Catch::Contains("is 0"));
  CHECK_THAT(refused("rescale_factor", "small"), Catch::Contains("must be a number"));
  CHECK_THAT(refused("data_format", "channels_last"), Catch::Contains("channels_last"));
}

TEST_CASE("settings of pictures are found in a model's folder") {
  const TemporaryFolder folder;
  CHECK_THAT(usage_error([&] { PictureInput::from_folder(folder.path); }),
             Catch::Contains("it has no preprocessor_config.json"));
  const Json config = clip_config();
  folder.write("processor_config.json", dump_json({{"image_processor", config}}));
  CHECK(PictureInput::from_folder(folder.path).shortest_edge == 24);
  Json other = config;
  other["size"] = 32;
  folder.write("preprocessor_config.json", dump_json(other));
  CHECK(PictureInput::from_folder(folder.path).shortest_edge == 32);
}
