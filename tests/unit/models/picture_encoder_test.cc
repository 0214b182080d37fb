// CLIP's, SigLIP's and DINOv2's image towers against transformers', from the folders that it writes
// (scripts/golden/picture_encoders.py).
// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/picture_encoder.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/encoder/picture_tower.h"
#include "models/encoder/siglip_naflex.h"
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

const std::string kPictureEncoders = std::string(VFM_GOLDEN) + "/picture_encoders";
const std::vector<std::string> kPictureModels = {"clip", "clip_vision", "siglip", "dinov2",
                                                 "dinov2_own"};

/// The pictures that the script encodes.
struct Pictures {
  NoisePicture wide{40, 30, 0}, tall{17, 50, 1}, square{24, 24, 2};
  std::vector<PictureView> views{wide.view, tall.view, square.view};
};

std::unique_ptr<models::PictureEncoder> open(const std::string& name, DType compute = DType::f32) {
  return make_picture_encoder(kPictureEncoders + "/" + name, Device::cpu, compute);
}

std::vector<float> joined(const std::vector<std::vector<float>>& vectors) {
  std::vector<float> all;
  for (const std::vector<float>& vector : vectors)
    all.insert(all.end(), vector.begin(), vector.end());
  return all;
}

/// What NaFlex sees in one batch: wide and tall ones, and one of fewer pixels than a patch.
struct Shapes : Pictures {
  NoisePicture strip{90, 7, 3}, pole{3, 61, 4}, small{5, 6, 5};
  Shapes() { views.insert(views.end(), {strip.view, pole.view, small.view}); }
};

/// A copy of a model's folder with another value in one of its JSON files; null: without.
struct ChangedFolder {
  TemporaryFolder folder;
  std::string path = folder / "model";
  explicit ChangedFolder(const std::string& name) {
    fs::copy(kPictureEncoders + "/" + name, path, fs::copy_options::recursive);
  }
  void set(const char* file, const Json::json_pointer& field, const Json& value) const {
    Json json = parse_json(io::read_file(path + "/" + file), file);
    json[field] = value;
    folder.write(std::string("model/") + file, dump_json(json));
  }
  std::string refused() const {
    return usage_error([&] { make_picture_encoder(path, Device::cpu, DType::f32); });
  }
};

Json::json_pointer at(const char* field) {
  return Json::json_pointer(field);
}

}  // namespace

TEST_CASE("CLIP, SigLIP and DINOv2 compute what transformers computes of pictures of any size") {
  const io::SafetensorsSet golden(kPictureEncoders, "outputs");
  const Pictures pictures;
  for (const std::string& name : kPictureModels) {
    INFO(name);
    const Tensor expected = models::read_floats(*golden.find(name)).clone();
    const auto encoder = open(name);
    CHECK(encoder->dim() == expected.size(1));
    const auto found = encoder->encode(pictures.views);
    REQUIRE(found.size() == 3);
    CHECK(distance(joined(found), expected.floats()) < 1e-5);
    CHECK(distance(joined(open(name, DType::bf16)->encode(pictures.views)), expected.floats()) <
          0.05);
  }
}

TEST_CASE("a picture's vector has the same bits whatever pictures are encoded with it") {
  const Pictures pictures;
  for (const std::string& name : kPictureModels)
    for (const DType compute : {DType::f32, DType::bf16}) {
      INFO(name);
      const auto encoder = open(name, compute);
      const auto together = encoder->encode(pictures.views);
      for (std::size_t i = 0; i < 3; ++i)
        CHECK(encoder->encode({&pictures.views[i], 1}).front() == together[i]);
      const std::vector<PictureView> others{pictures.views[2], pictures.views[2], pictures.views[1],
                                            pictures.views[0]};
      CHECK(encoder->encode(others).back() == together[0]);
    }
  CHECK(open("clip")->encode({}).empty());
}

TEST_CASE("SigLIP 2 of any resolution computes what transformers computes, shapes mixed") {
  const io::SafetensorsSet golden(kPictureEncoders, "outputs");
  const Shapes shapes;
  for (const std::string name : {"siglip2", "siglip2_vision"}) {
    INFO(name);
    const Tensor expected = models::read_floats(*golden.find(name)).clone();
    const auto encoder = open(name);
    CHECK(encoder->dim() == 16);
    const auto found = encoder->encode(shapes.views);
    REQUIRE(found.size() == shapes.views.size());
    CHECK(distance(joined(found), expected.floats()) < 1e-5);
    CHECK(distance(joined(open(name, DType::bf16)->encode(shapes.views)), expected.floats()) <
          0.05);
    // Whatever comes with it, and before it.
    for (std::size_t i = 0; i < shapes.views.size(); ++i)
      CHECK(encoder->encode({&shapes.views[i], 1}).front() == found[i]);
    const std::vector<PictureView> others{shapes.views[3], shapes.views[0]};
    CHECK(encoder->encode(others).back() == found[0]);
    CHECK(encoder->config()["input"]["most_patches"] == (name == "siglip2" ? 20 : 12));
  }
}

TEST_CASE("a SigLIP 2 and a preprocessing that do not go together are refused by name") {
  const auto refused = [](const char* name, const char* field, const Json& value,
                          const char* file = "config.json") {
    const ChangedFolder changed(name);
    changed.set(file, at(field), value);
    return changed.refused();
  };
  const char* input = "preprocessor_config.json";
  CHECK_THAT(refused("siglip2", "/vision_config/num_patches", 8),
             Catch::Contains("\"num_patches\" is 8, not the square"));
  CHECK_THAT(refused("siglip2", "/vision_config/num_patches", 16),
             Catch::Contains("1 of another shape: 'embeddings.position_embedding.weight'"));
  CHECK_THAT(refused("siglip2", "/vision_config/vision_use_head", false),
             Catch::Contains("\"vision_use_head\""));
  CHECK_THAT(refused("siglip2", "/patch_size", 4, input),
             Catch::Contains("has patches of 8, its preprocessing makes them 4"));
  CHECK_THAT(refused("siglip2", "/do_resize", false, input), Catch::Contains("\"do_resize\""));
  CHECK_THAT(refused("siglip2", "/max_num_patches", 0, input), Catch::Contains("not 0"));
  const ChangedFolder fixed("siglip2"), other("siglip");
  fs::copy_file(kPictureEncoders + "/siglip/" + input, fixed.path + "/" + input,
                fs::copy_options::overwrite_existing);
  CHECK_THAT(fixed.refused(), Catch::Contains("(NaFlex) needs Siglip2ImageProcessor"));
  fs::copy_file(kPictureEncoders + "/siglip2/" + input, other.path + "/" + input,
                fs::copy_options::overwrite_existing);
  CHECK_THAT(other.refused(), Catch::Contains("of any resolution alone"));
}

TEST_CASE("tables of numbers in files of old releases are no weights") {
  const ChangedFolder changed("clip");
  const io::SafetensorsSet set(kPictureEncoders + "/clip", "model");
  std::vector<io::TensorView> tensors = set.tensors();
  const std::vector<std::int64_t> numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const char* tower : {"vision_model", "text_model"})
    tensors.push_back({std::string(tower) + ".embeddings.position_ids",
                       "I64",
                       {1, 10},
                       std::as_bytes(std::span(numbers))});
  io::write_safetensors(changed.path, "model", tensors);
  const Pictures pictures;
  CHECK(make_picture_encoder(changed.path, Device::cpu, DType::f32)->encode(pictures.views) ==
        open("clip")->encode(pictures.views));
}

TEST_CASE("an encoder of pictures says what it is") {
  const Json config = open("clip", DType::bf16)->config();
  CHECK(config["name"] == "clip");
  CHECK(config["path"] == fs::canonical(kPictureEncoders + "/clip").string());
  CHECK(config["hash"].get<std::string>().size() == 32);
  CHECK(config["dim"] == 12);
  CHECK(config["compute"] == "bf16");
  CHECK(config["input"]["shortest_edge"] == 24);
  CHECK(open("clip_vision")->config()["hash"] != config["hash"]);
  // Other preprocessing, other vectors.
  const ChangedFolder changed("clip");
  changed.set("preprocessor_config.json", at("/resample"), 2);
  const Json other = make_picture_encoder(changed.path, Device::cpu, DType::bf16)->config();
  CHECK(other["hash"] == config["hash"]);
  CHECK(other["input"] != config["input"]);
}

TEST_CASE("what is no encoder of pictures is refused by name") {
  CHECK_THAT(usage_error([] { make_picture_encoder("/nowhere", Device::cpu, DType::f32); }),
             Catch::Contains("no such model folder: '/nowhere'"));
  CHECK_THAT(usage_error([] { open("clip", DType::f16); }),
             Catch::Contains("in f32 or bf16 alone"));
  const auto refused = [](const char* name, const char* field, const Json& value,
                          const char* file = "config.json") {
    const ChangedFolder changed(name);
    changed.set(file, at(field), value);
    return changed.refused();
  };
  CHECK_THAT(refused("clip", "/model_type", "vit"),
             Catch::Contains("a model of type vit") && Catch::Contains("siglip"));
  CHECK_THAT(refused("dinov2", "/use_swiglu_ffn", true), Catch::Contains("\"use_swiglu_ffn\""));
  CHECK_THAT(refused("dinov2", "/qkv_bias", false), Catch::Contains("\"qkv_bias\""));
  CHECK_THAT(refused("siglip", "/vision_config/vision_use_head", false),
             Catch::Contains("\"vision_use_head\""));
  CHECK_THAT(refused("clip", "/vision_config/hidden_act", "relu"), Catch::Contains("'relu'"));
  CHECK_THAT(refused("clip", "/vision_config/num_channels", 4), Catch::Contains("4 channels"));
  CHECK_THAT(refused("clip", "/vision_config/num_attention_heads", 3), Catch::Contains("3 heads"));
  CHECK_THAT(refused("clip", "/vision_config/hidden_size", 8),
             Catch::Contains("38 of another shape: 'encoder.layers.0.self_attn.q_proj.weight'"));
  CHECK_THAT(refused("clip", "/vision_config/num_hidden_layers", 3),
             Catch::Contains("missing: 'encoder.layers.2."));
  CHECK_THAT(refused("clip", "/crop_size", 16, "preprocessor_config.json"),
             Catch::Contains("takes pictures of 24x24, its preprocessing makes them 16x16"));
  CHECK_THAT(refused("dinov2", "/crop_size", 7, "preprocessor_config.json"),
             Catch::Contains("7x7 have no patches of 8x8"));
}

TEST_CASE("each encoder of pictures is one value of the list, and says what its vectors are for") {
  for (const auto& [type, texts, aesthetic] : {std::tuple("clip", true, true),
                                               {"clip_vision_model", false, true},
                                               {"siglip", true, false},
                                               {"siglip_vision_model", false, false},
                                               {"siglip2", true, false},
                                               {"siglip2_vision_model", false, false},
                                               {"dinov2", false, false}}) {
    INFO(type);
    const models::PictureFamily* family = models::find_picture_family(type);
    REQUIRE(family != nullptr);
    CHECK(family->type == type);
    CHECK(family->texts == texts);
    CHECK(family->aesthetic == aesthetic);
    CHECK(family->make != nullptr);
  }
  CHECK(models::find_picture_family("vit") == nullptr);
}

TEST_CASE("a picture that is none is an error, not a crash") {
  const PictureView none;
  CHECK_THROWS_WITH(open("clip")->encode({&none, 1}), Catch::Contains("no picture of 0x0"));
}

TEST_CASE("places between those of a grid are PyTorch's") {
  // torch.nn.functional.interpolate(torch.tensor([0., 1, 4, 9]).view(1, 1, 2, 2), (3, 1),
  // mode="bicubic", align_corners=False)
  const std::vector<float> grid{0, 1, 4, 9};
  const Tensor places = models::resample_places(Tensor::from(grid, {4, 1}), 2, 3, 1);
  const std::vector<float> expected{-0.0208334f, 3.5f, 7.0208330f};
  CHECK(largest_difference(places.floats(), expected) < 1e-5);
  CHECK(models::resample_places(Tensor::from(grid, {4, 1}), 2, 2, 2).floats()[3] == 9);
}

TEST_CASE("places of a grid are resized linearly as PyTorch does it with antialiasing") {
  // torch.nn.functional.interpolate(torch.arange(9.).square().view(1, 1, 3, 3), (2, 5),
  // mode="bilinear", align_corners=False, antialias=True), and to (1, 1)
  const std::vector<float> grid{0, 1, 4, 9, 16, 25, 36, 49, 64};
  const Tensor places = models::resample_places_linear(Tensor::from(grid, {9, 1}), 3, 1, 1);
  CHECK(places.floats()[0] == Approx(21.71428));
  const Tensor more = models::resample_places_linear(Tensor::from(grid, {9, 1}), 3, 2, 5);
  const std::vector<float> expected{3.37500f,  4.67500f,  6.62500f,  9.77500f,  11.87500f,
                                    25.87500f, 30.17500f, 36.62500f, 44.27500f, 49.37500f};
  CHECK(largest_difference(more.floats(), expected) < 1e-4);
}

TEST_CASE("normalised vectors have length 1") {
  std::vector<float> vector{3, 0, -4}, zeros(3);
  models::normalise(vector);
  CHECK(vector == std::vector<float>{0.6f, 0, -0.8f});
  models::normalise(zeros);
  CHECK(zeros == std::vector<float>(3));
}
