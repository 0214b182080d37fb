// V-JEPA 2's encoder against transformers', from the folder that it writes
// (scripts/golden/video_encoders.py).
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/encoder/picture_encoder.h"
#include "models/encoder/picture_input.h"
#include "models/folder/load_tensors.h"
#include "support/distance.h"
#include "support/noise_picture.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using models::make_picture_encoder;
using models::PictureView;

namespace {

namespace fs = std::filesystem;

const std::string kVideoEncoders = std::string(VFM_GOLDEN) + "/video_encoders";
const std::string kVjepa = kVideoEncoders + "/vjepa2";
const char* const kVideoInput = "video_preprocessor_config.json";

/// The clips of the script.
struct NoiseClips {
  std::deque<NoisePicture> pictures;
  std::vector<PictureView> wide, tall;

  NoiseClips() {
    for (std::uint32_t i = 0; i < 8; ++i) {
      wide.push_back(pictures.emplace_back(40, 30, i).view);
      tall.push_back(pictures.emplace_back(17, 50, 20 + i).view);
    }
  }
  std::vector<PictureView> some(const std::vector<std::size_t>& frames) const {
    std::vector<PictureView> views;
    for (const std::size_t frame : frames)
      views.push_back(wide[frame]);
    return views;
  }
  std::vector<PictureView> back() const { return {wide.rbegin(), wide.rend()}; }
  std::vector<PictureView> few() const { return some({5, 5, 5, 6, 6, 7, 7, 7}); }
};

std::unique_ptr<models::PictureEncoder> open_video(DType compute = DType::f32, int frames = 0,
                                                   const std::string& folder = kVjepa) {
  return make_picture_encoder(folder, Device::cpu, compute, frames);
}

std::vector<float> golden_vector(const std::string& name) {
  const io::SafetensorsSet golden(kVideoEncoders, "outputs");
  const Tensor vector = models::read_floats(*golden.find(name)).clone();
  return {vector.floats().begin(), vector.floats().end()};
}

/// A copy of the folder that can be changed.
struct ChangedVideoFolder {
  TemporaryFolder folder;
  std::string path = folder / "model";
  ChangedVideoFolder() { fs::copy(kVjepa, path, fs::copy_options::recursive); }
  Json read(const char* file) const { return parse_json(io::read_file(path + "/" + file), file); }
  void set(const char* file, const char* field, const Json& value) const {
    Json json = read(file);
    json[field] = value;
    folder.write(std::string("model/") + file, dump_json(json));
  }
  /// Names tensors anew; without a name they are left out.
  template <class Name>
  void rename(Name name) const {
    const io::SafetensorsSet set(kVjepa, "model");
    std::vector<io::TensorView> tensors;
    for (io::TensorView tensor : set.tensors())
      if (tensor.name = name(tensor.name); !tensor.name.empty()) tensors.push_back(tensor);
    io::write_safetensors(path, "model", tensors);
  }
  std::string refused(int frames = 0) const {
    return usage_error([&] { open_video(DType::f32, frames, path); });
  }
};

}  // namespace

TEST_CASE("V-JEPA 2 computes what transformers computes, and sees the order of frames") {
  const NoiseClips clips;
  const auto encoder = open_video();
  CHECK(encoder->dim() == 32);
  REQUIRE(encoder->frames() == 8);
  for (const auto& [name, frames] : {std::pair("wide", clips.wide),
                                     {"tall", clips.tall},
                                     {"back", clips.back()},
                                     {"few", clips.few()}}) {
    INFO(name);
    const std::vector<float> expected = golden_vector(name);
    const auto found = encoder->encode(frames);
    REQUIRE(found.size() == 1);
    const double apart = distance(found.front(), expected);
    INFO("apart by " << apart);
    CHECK(apart < 1e-5);
    CHECK(distance(open_video(DType::bf16)->encode(frames).front(), expected) < 0.05);
  }
  CHECK(distance(golden_vector("back"), golden_vector("wide")) > 0.1);
}

TEST_CASE("V-JEPA 2 computes what transformers computes after each layer") {
  const NoiseClips clips;
  for (const int layers : {1, 2}) {
    const ChangedVideoFolder changed;
    changed.set("config.json", "num_hidden_layers", layers);
    changed.rename([&](const std::string& name) -> std::string {
      for (int layer = layers; layer < 3; ++layer)
        if (name.starts_with(fmt::format("encoder.layer.{}.", layer))) return {};
      return name;
    });
    const auto found = open_video(DType::f32, 0, changed.path)->encode(clips.wide);
    CHECK(distance(found.front(), golden_vector(fmt::format("wide.{}", layers))) < 1e-5);
  }
}

TEST_CASE("a clip's vector has the same bits whatever clips are encoded with it") {
  const NoiseClips clips;
  std::vector<PictureView> both = clips.tall;
  both.insert(both.end(), clips.wide.begin(), clips.wide.end());
  for (const DType compute : {DType::f32, DType::bf16}) {
    const auto encoder = open_video(compute);
    CHECK(encoder->together() == 32);  // of 64 tokens each
    const auto found = encoder->encode(both);
    REQUIRE(found.size() == 2);
    CHECK(encoder->encode(clips.tall).front() == found[0]);
    CHECK(encoder->encode(clips.wide).front() == found[1]);
  }
}

TEST_CASE("another number of frames is the caller's choice, in whole tubelets") {
  const NoiseClips clips;
  const auto encoder = open_video(DType::f32, 4);
  CHECK(encoder->frames() == 4);
  CHECK(distance(encoder->encode(clips.some({0, 1, 2, 3})).front(), golden_vector("four")) < 1e-5);
  CHECK_THROWS_WITH(encoder->encode(clips.some({0, 1, 2})),
                    Catch::Contains("3 pictures are no clips of 4 frames"));
  CHECK_THAT(usage_error([] { open_video(DType::f32, 5); }),
             Catch::Contains("takes a multiple of 2 frames, at most 64, and not 5"));
  const ChangedVideoFolder changed;
  changed.set("config.json", "frames_per_clip", 66);
  CHECK_THAT(changed.refused(), Catch::Contains("and not 66"));
  CHECK(open_video(DType::f32, 64, changed.path)->frames() == 64);
}

TEST_CASE("of a folder the encoder's tensors alone are read, also with a head for classes") {
  const NoiseClips clips;
  const auto expected = open_video()->encode(clips.wide);
  const ChangedVideoFolder changed;
  changed.rename([](const std::string& name) {
    return name.starts_with("encoder.") ? "vjepa2." + name : "pooler." + name;
  });
  CHECK(open_video(DType::f32, 0, changed.path)->encode(clips.wide) == expected);
  changed.rename([](const std::string& name) {
    return name == "encoder.layernorm.bias" ? std::string() : name;
  });
  CHECK_THAT(changed.refused(), Catch::Contains("missing: 'layernorm.bias'"));
}

TEST_CASE("frames are resized by the crop, from the file that transformers reads") {
  const models::PictureInput input = models::PictureInput::from_folder(kVjepa, true);
  CHECK(input.shortest_edge == 18);
  CHECK(input.size() == models::PictureSize{16, 16});
  CHECK(input.resample == models::Resample::bilinear);
  const ChangedVideoFolder changed;
  // As in the published folder of 384x384, with what does not matter.
  changed.set(kVideoInput, "crop_size", 384);
  changed.set(kVideoInput, "size", 7);
  changed.set(kVideoInput, "num_frames", 64);
  CHECK(models::PictureInput::from_folder(changed.path, true).shortest_edge == 438);
  changed.set(kVideoInput, "do_sample_frames", true);
  CHECK_THAT(changed.refused(), Catch::Contains("\"do_sample_frames\" is true"));
  const Json processor = changed.read(kVideoInput);
  changed.folder.write(
      "model/processor_config.json",
      dump_json({{"video_processor", {{"video_processor_type", "VJEPA2VideoProcessor"}}}}));
  CHECK(models::PictureInput::from_folder(changed.path, true).shortest_edge == 292);
  CHECK_THAT(changed.refused(),
             Catch::Contains("takes pictures of 16x16, its preprocessing makes them 256x256"));
  fs::remove(changed.path + "/processor_config.json");
  fs::rename(changed.path + "/" + kVideoInput, changed.path + "/preprocessor_config.json");
  changed.set("preprocessor_config.json", "do_sample_frames", false);
  CHECK(models::PictureInput::from_folder(changed.path, true).shortest_edge == 438);
  fs::remove(changed.path + "/preprocessor_config.json");
  CHECK_THAT(changed.refused(), Catch::Contains("video_preprocessor_config.json"));
}

TEST_CASE("an encoder of videos is none of pictures, and says what it is") {
  CHECK_THAT(usage_error([] { make_picture_encoder(kVjepa, Device::cpu, DType::f32); }),
             Catch::Contains("makes vectors of clips, not of pictures"));
  const models::PictureFamily* family = models::find_picture_family("vjepa2");
  REQUIRE(family != nullptr);
  CHECK(family->video);
  CHECK_FALSE(family->texts);
  CHECK_FALSE(family->aesthetic);
  const Json config = open_video(DType::bf16)->config();
  CHECK(config["name"] == "vjepa2");
  CHECK(config["dim"] == 32);
  CHECK(config["input"]["crop"] == Json{16, 16});
}

TEST_CASE("configurations that no V-JEPA 2 has are refused by name") {
  const auto refused = [](const char* field, const Json& value) {
    const ChangedVideoFolder changed;
    changed.set("config.json", field, value);
    return changed.refused();
  };
  CHECK_THAT(refused("qkv_bias", false), Catch::Contains("\"qkv_bias\""));
  CHECK_THAT(refused("in_chans", 1), Catch::Contains("1 channels"));
  CHECK_THAT(refused("mlp_ratio", 2),
             Catch::Contains("of another shape: 'layer.0.mlp.fc1.weight'"));
  CHECK_THAT(refused("mlp_ratio", -1), Catch::Contains("\"mlp_ratio\" is -1"));
  CHECK_THAT(refused("num_attention_heads", 8), Catch::Contains("heads have 4 elements"));
  CHECK_THAT(refused("tubelet_size", 3), Catch::Contains("a multiple of 3 frames"));
  CHECK_THAT(refused("crop_size", 32), Catch::Contains("takes pictures of 32x32"));
  CHECK_THAT(refused("patch_size", 32), Catch::Contains("patches of 32"));
  const ChangedVideoFolder large;
  large.set("config.json", "crop_size", 4096);
  large.set(kVideoInput, "crop_size", 4096);
  CHECK_THAT(large.refused(), Catch::Contains("4194304 tokens, and at most 131072"));
}
