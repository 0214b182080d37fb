// T5, v1.0 and v1.1, and umT5 against transformers' (scripts/golden/t5.py), from the folders that
// it writes; text encoders by their configuration.
// SPDX-License-Identifier: Apache-2.0
#include "models/t5/t5.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/folder/hf_folder.h"
#include "models/folder/load_tensors.h"
#include "models/text_encoder.h"
#include "support/distance.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using models::HfComponent;

namespace {

namespace fs = std::filesystem;

const std::string kEncoders = std::string(VFM_GOLDEN) + "/t5";
const std::vector<std::string> kModels = {"v1_0", "v1_1", "umt5"};

std::string model_folder(const std::string& name) {
  return kEncoders + "/" + name + (name == "v1_0" ? "/text_encoder" : "");
}

struct T5Golden {
  io::SafetensorsSet set{kEncoders, "outputs"};
  template <class T>
  std::vector<T> integers(const char* name) const {
    const io::TensorView& view = *set.find(name);
    std::vector<std::int32_t> values(view.data.size() / 4);
    std::memcpy(values.data(), view.data.data(), view.data.size());
    return {values.begin(), values.end()};
  }
  Tensor output(const std::string& name) const {
    return models::read_floats(*set.find("output." + name)).clone();
  }
};

models::T5 open(const HfComponent& component, DType compute) {
  return {models::T5Config::from_json(component.config(), component.type(), "'config.json'"),
          component.weights(), compute, Device::cpu};
}

}  // namespace

TEST_CASE("trap 13: T5 v1.0, v1.1 and umT5 compute what transformers computes") {
  const T5Golden golden;
  const auto ids = golden.integers<std::int32_t>("ids");
  const auto lengths = golden.integers<std::int64_t>("lengths");
  REQUIRE(*std::max_element(lengths.begin(), lengths.end()) > 128);
  for (const std::string& name : kModels) {
    INFO(name);
    const HfComponent component(model_folder(name));
    const Tensor expected = golden.output(name);
    const models::T5 model = open(component, DType::f32);
    CHECK(distance(model.encode(ids, lengths).floats(), expected.floats()) < 1e-5);
    CHECK(distance(open(component, DType::bf16).encode(ids, lengths).floats(), expected.floats()) <
          0.15);
    // A text by itself is as in a batch: nothing is padded.
    const std::span<const std::int32_t> last(ids.data() + ids.size() - 20, 20);
    const std::int64_t length = 20;
    const Tensor alone = model.encode(last, {&length, 1});
    CHECK(distance(alone.floats(), expected.floats().last(20 * 16)) < 1e-5);
  }
}

TEST_CASE("the trap of half precision: v1.0's inner values overflow f16, and f16 weights do not") {
  // Stored in f16, computed in f32 and bf16; transformers in f16 gives infinity for this model.
  const HfComponent component(model_folder("v1_0"));
  REQUIRE(component.weights().tensors().front().dtype == "F16");
  const std::vector<std::int32_t> ids{5, 9, 1};
  const std::vector<std::int64_t> lengths{3};
  for (const DType compute : {DType::f32, DType::bf16})
    for (const float value : open(component, compute).encode(ids, lengths).floats())
      CHECK(std::isfinite(value));
}

TEST_CASE("buckets of distances") {
  // transformers' relative_position_bucket, 32 buckets up to 128.
  CHECK(models::t5_bucket(0, 32, 128) == 0);
  CHECK(models::t5_bucket(1, 32, 128) == 17);
  CHECK(models::t5_bucket(-7, 32, 128) == 7);
  CHECK(models::t5_bucket(-8, 32, 128) == 8);
  CHECK(models::t5_bucket(-16, 32, 128) == 10);
  CHECK(models::t5_bucket(64, 32, 128) == 30);
  CHECK(models::t5_bucket(-127, 32, 128) == 15);
  CHECK(models::t5_bucket(128, 32, 128) == 31);
  CHECK(models::t5_bucket(-100000, 32, 128) == 15);
}

TEST_CASE("what is no T5 is refused") {
  const HfComponent component(model_folder("v1_1"));
  const auto refused = [&](const char* key, const Json& value) {
    Json config = component.config();
    config[key] = value;
    return usage_error([&] { models::T5Config::from_json(config, "t5", "'config.json'"); });
  };
  CHECK_THAT(refused("feed_forward_proj", "gated-silu"), Catch::Contains("'gated-silu'"));
  CHECK_THAT(refused("num_heads", 0), Catch::Contains("\"num_heads\" is 0"));
  CHECK_THAT(refused("d_model", "wide"), Catch::Contains("d_model"));
  CHECK_THAT(refused("relative_attention_num_buckets", 3), Catch::Contains("3 buckets"));
  CHECK_THAT(refused("num_layers", 5000), Catch::Contains("5000 layers"));
  models::T5Config config = models::T5Config::from_json(component.config(), "t5", "x");
  config.width = 24;
  config.gated = false;
  CHECK_THROWS_WITH(
      models::T5(config, component.weights(), DType::f32, Device::cpu),
      Catch::Contains("DenseReluDense.wi.weight") && Catch::Contains("of another shape"));
  const models::T5 model = open(component, DType::f32);
  const std::vector<std::int64_t> one{1};
  for (const std::int32_t id : {-1, 530})
    CHECK_THROWS_WITH(model.encode({&id, 1}, one), Catch::Contains("not in the vocabulary"));
}

TEST_CASE("a text encoder from a folder") {
  for (const std::string& name : kModels) {
    INFO(name);
    const text::EncoderConfig config =
        models::text_encoder_config(kEncoders + "/" + name, 6, DType::f32);
    CHECK(config.name == (name == "umt5" ? "umt5" : "t5"));
    CHECK(fs::path(config.path).is_absolute());
    const auto encoder = models::make_text_encoder(config);
    CHECK(encoder->config() == config);
    CHECK(encoder->dim() == 16);
    CHECK(config.dim == 16);
    // </s> alone; a few tokens and </s>; as many as there may be.
    const auto all = encoder->encode_all({"", "a fox", "A red fox crosses a snowy road."});
    CHECK(all[0].tokens == 1);
    CHECK((all[1].tokens > 1 && all[1].tokens < 6));
    CHECK(all[2].tokens == 6);
    CHECK(distance(encoder->encode("a fox").values, all[1].values) < 1e-5);
    models::TextEncoderOptions options;
    options.compute = DType::bf16;
    CHECK(models::make_text_encoder(config, options)->config().compute == "bf16");
  }
}

TEST_CASE("text_encoder/ of a pipeline finds the tokenizer beside it") {
  const std::string pipeline = kEncoders + "/v1_0";
  const text::EncoderConfig whole = models::text_encoder_config(pipeline, 512, DType::f32);
  const text::EncoderConfig part =
      models::text_encoder_config(pipeline + "/text_encoder", 512, DType::f32);
  CHECK(part.hash == whole.hash);
  // As little as a folder of diffusers has it.
  const auto encoder =
      models::make_text_encoder({.name = "t5", .path = pipeline + "/text_encoder"});
  CHECK(encoder->encode("a fox").values ==
        models::make_text_encoder(whole)->encode("a fox").values);
  CHECK(encoder->config().hash == whole.hash);
}

TEST_CASE("a text encoder's folder that has moved, or holds another model") {
  const TemporaryFolder folder;
  const std::string first = folder.path + "/a", second = folder.path + "/b";
  fs::copy(kEncoders + "/v1_1", first, fs::copy_options::recursive);
  const text::EncoderConfig config = models::text_encoder_config(first, 512, DType::f32);
  fs::rename(first, second);
  models::TextEncoderOptions moved;
  moved.folder_option = "--text-encoder";
  CHECK_THAT(usage_error([&] { models::make_text_encoder(config, moved); }),
             Catch::Contains("/a' is not there; say with --text-encoder where"));
  moved.folder = second;
  text::EncoderConfig there = config;
  there.path = second;
  CHECK(models::make_text_encoder(config, moved)->config() == there);
  moved.folder = kEncoders + "/umt5";
  CHECK_THAT(usage_error([&] { models::make_text_encoder(config, moved); }),
             Catch::Contains("is not the text encoder"));
  // Another tokenizer is another encoder.
  moved.folder = second;
  fs::copy(kEncoders + "/v1_0/tokenizer/tokenizer.json", second);
  CHECK_THAT(usage_error([&] { models::make_text_encoder(config, moved); }),
             Catch::Contains("is not the text encoder"));
  for (const char* name : {"tokenizer.json", "spiece.model"})
    fs::remove(second + "/" + name);
  CHECK_THAT(usage_error([&] { models::text_encoder_config(second, 512, DType::f32); }),
             Catch::Contains("neither tokenizer.json nor spiece.model"));
}

TEST_CASE("each text encoder is one value of the list, and says of itself what is read of it") {
  std::set<std::string_view> names;
  for (const models::TextEncoderFamily& family : models::text_encoder_families()) {
    INFO(family.name);
    CHECK(names.insert(family.name).second);
    CHECK(models::find_text_encoder_family(family.name) == &family);
    CHECK(std::ranges::find(family.keys, "max_tokens") != family.keys.end());
    CHECK((family.make != nullptr) == !family.types.empty());
    CHECK((family.inspect != nullptr) == !family.types.empty());
    CHECK((family.class_name.empty() || family.types.size() == 1));
    Json json = {{"name", family.name}};
    for (const std::string_view key : family.keys)
      if (key != "name")
        json[std::string(key)] = key == "dim" || key == "max_tokens" || key == "version" ? Json(8)
                                 : key == "clean" ? Json(true)
                                                  : Json("x");
    const text::EncoderConfig config = models::text_config_from_json(json);
    CHECK(config.unknown.empty());
    CHECK_FALSE(config.foreign());
    const Json written = config.to_json();  // with its keys in another order
    CHECK(written.size() == json.size());
    for (const auto& [key, value] : json.items())
      CHECK(written.at(key) == value);
    json["shine"] = 1;
    CHECK(models::text_config_from_json(json).unknown == "shine");
  }
  CHECK(models::find_text_encoder_family("clip") == nullptr);
  const text::EncoderConfig other =
      models::text_config_from_json({{"name", "clip"}, {"dim", 8}, {"compute", 3}});
  CHECK(other.foreign());
  CHECK(other.to_json() == Json{{"name", "clip"}, {"dim", 8}});
}

TEST_CASE("configurations of text encoders that make no sense") {
  for (const auto& wrong : std::vector<std::pair<const char*, const char*>>{
           {R"({"name":"clip","path":"x"})", "'clip'"},
           {R"({"name":"t5","path":"/nowhere/at/all"})", "'/nowhere/at/all' is not there"},
           {R"({"name":"t5","path":"/","shine":1})", "'shine'"},
           {R"({"name":"nothing"})", "'nothing'"},
           {R"({"name":"clip","path":"x"})",
            "unknown text encoder 'clip': choose builtin:hash, t5, umt5 or sentence:..."},
           {R"({"name":"builtin:hash","path":"x"})",
            "unknown text encoder 'builtin:hash': choose builtin:hash, t5, umt5 or sentence:..."},
           {R"({"name":"builtin:hush"})", "no text encoder is called 'builtin:hush'"},
           {R"({})", "no text encoder is called ''"},
           {R"([])", "is not a JSON object"},
           {R"({"name":"builtin:hash","dims":64})", "has no setting 'dims'"},
           {R"({"name":"builtin:hash","compute":"f32"})", "has no setting 'compute'"},
           {R"({"name":"builtin:hash","dim":64,"version":2})", "not 2"},
           {R"({"name":"t5","path":"/","rule":"mean"})", "has no setting 'rule'"},
       }) {
    const char *json = wrong.first, *message = wrong.second;
    INFO(json);
    CHECK_THAT(usage_error([&] {
                 models::make_text_encoder(models::text_config_from_json(Json::parse(json)));
               }),
               Catch::Contains(message));
  }
  text::EncoderConfig config = models::text_encoder_config(kEncoders + "/umt5", 512, DType::f32);
  config.compute = "f16";
  CHECK_THAT(usage_error([&] { models::make_text_encoder(config); }), Catch::Contains("'f16'"));
  config.compute = "f32";
  config.max_tokens = 0;
  CHECK_THAT(usage_error([&] { models::make_text_encoder(config); }), Catch::Contains("0 tokens"));
  CHECK(models::make_text_encoder({.name = "builtin:hash"})->dim() == 64);
}

TEST_CASE("the operations of an encoder are those that PyTorch counts") {
  // torch.utils.flop_counter.FlopCounterMode over transformers' encoders of these folders, one text
  // of 11 tokens.
  const auto flops = [](const std::string& name) {
    const HfComponent component(model_folder(name));
    return models::t5_cost(
               models::T5Config::from_json(component.config(), component.type(), "'config.json'"),
               11, DType::f32, DType::f32, Device::cpu)
        .flops;
  };
  CHECK(flops("v1_0") == 147136);
  CHECK(flops("v1_1") == 175296);
  CHECK(flops("umt5") == 175296);
}
