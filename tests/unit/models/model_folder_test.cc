// What a folder of a model is, and what it says of its model.
// SPDX-License-Identifier: Apache-2.0
#include "models/folder/model_folder.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/dit/dit.h"
#include "models/dit/network_json.h"
#include "models/folder/load_model.h"
#include "models/folder/model_config.h"
#include "models/folder/model_facts.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::models;
using Catch::Contains;

namespace {

constexpr const char* kIndex =
    R"({"_class_name":"CosmosTextToWorldPipeline","vae":["diffusers","X"],)"
    R"("transformer":["diffusers","Y"],"safety_checker":[null,null]})";

NetworkConfig small_network() {
  NetworkConfig config;
  config.in_channels = config.out_channels = 3;
  config.num_attention_heads = 2;
  config.attention_head_dim = 12;
  config.num_layers = 1;
  config.text_embed_dim = 8;
  config.own<models::DitFields>().adaln_lora_dim = 4;
  config.max_size = {2, 4, 4};
  return config;
}

/// Weights of one number, whatever the model.
void write_set(const std::string& folder, const char* name, float value) {
  const std::vector<float> values(1, value);
  io::make_directories(folder);
  io::write_safetensors(folder, name, {{"a", "F32", {1}, std::as_bytes(std::span(values))}});
}

/// A checkpoint of a run in RUN; what vfm-train would write, as far as it is looked at here.
void write_checkpoint(const std::string& run, const std::string& step, const Json& train) {
  const std::string folder = run + "/checkpoints/step-" + step;
  write_set(folder + "/model", "diffusion_pytorch_model", 1);
  write_set(folder + "/state", "ema", 2);
  io::write_file(folder + "/model/config.json", dump_json(network_config_to_json(small_network())));
  io::write_file(folder + "/train.json", dump_json(train));
  std::string complete;
  for (const char* file : {"model/config.json", "model/diffusion_pytorch_model.safetensors",
                           "state/ema.safetensors", "train.json"})
    complete += io::hash_file(folder + "/" + file) + "  " + file + "\n";
  io::write_file(folder + "/COMPLETE", complete);
}

float value_of(const io::TensorSet& set) {
  return *reinterpret_cast<const float*>(set.tensors().front().data.data());
}

}  // namespace

TEST_CASE("model folder: a pipeline names its parts") {
  const TemporaryFolder folder;
  folder.write("model_index.json", kIndex);
  folder.write("vae/config.json", R"({"_class_name":"AutoencoderKLCosmos"})");
  const ModelFolder pipeline(folder.path, {.part = "vae"});
  CHECK(pipeline.is_pipeline());
  CHECK_FALSE(pipeline.is_checkpoint());
  CHECK(pipeline.layout().type() == "CosmosTextToWorldPipeline");
  CHECK(pipeline.layout().has("vae"));
  CHECK_FALSE(pipeline.layout().has("safety_checker"));
  CHECK_FALSE(pipeline.layout().has("_class_name"));
  CHECK(pipeline.layout().folder_of("vae") == folder.path + "/vae");
  CHECK(pipeline.type() == "AutoencoderKLCosmos");
  CHECK(pipeline.absolute_path() == folder.path);
  CHECK(&pipeline.part("vae") == &pipeline.component());  // opened once
  CHECK_THAT(usage_error([&] { pipeline.layout().folder_of("transformer"); }),
             Contains("folder 'transformer' is missing"));
  CHECK_THAT(usage_error([&] { pipeline.layout().folder_of("text_encoder"); }),
             Contains("no component 'text_encoder'"));
  const ModelFolder other(folder.path, {.part = "vae", .types = {"t5"}});
  CHECK_THAT(usage_error([&] { other.config(); }), Contains("what works here: t5"));
}

TEST_CASE("model folder: a pipeline has one network, or two with the level between them") {
  const TemporaryFolder folder;
  const auto index = [&](const char* networks) {
    folder.write("model_index.json", std::string("{") + networks + "}");
    return ModelFolder(folder.path);
  };
  constexpr const char* kBoth =
      R"("transformer":["diffusers","Y"],"transformer_2":["diffusers","Y"])";
  using Names = std::vector<std::string>;
  CHECK(
      index(R"("transformer":["diffusers","Y"],"transformer_2":[null,null],"boundary_ratio":null)")
          .layout()
          .networks() == Names{"transformer"});
  const ModelFolder both = index((std::string(kBoth) + R"(,"boundary_ratio":0.875)").c_str());
  CHECK(both.layout().networks() == Names{"transformer", "transformer_2"});
  CHECK(both.layout().boundary() == 0.875);
  for (const char* wrong :
       {"", R"(,"boundary_ratio":null)", R"(,"boundary_ratio":1)", R"(,"boundary_ratio":-0.5)"})
    CHECK_THAT(
        usage_error([&] { index((kBoth + std::string(wrong)).c_str()).layout().boundary(); }),
        Contains("boundary_ratio is"));
  // One that has only the second uses it at all levels.
  folder.write("transformer_2/config.json", dump_json(network_config_to_json(small_network())));
  const ModelFolder second =
      index(R"("transformer":[null,null],"transformer_2":["diffusers","Y"],"boundary_ratio":0.9)");
  CHECK(second.layout().networks() == Names{"transformer_2"});
  CHECK(second.component().folder() == folder.path + "/transformer_2");
}

TEST_CASE("model folder: a part by itself is one, and anything else is none") {
  const TemporaryFolder folder;
  folder.write("part/config.json", dump_json(network_config_to_json(small_network())));
  const ModelFolder part(folder.path + "/part/");
  CHECK_FALSE(part.is_pipeline());
  CHECK(part.absolute_path() == folder.path + "/part");
  CHECK(std::get<NetworkConfig>(read_model_config(part)).text_embed_dim == 8);
  CHECK_THAT(usage_error([&] { read_facts(part); }), Contains("is a network alone"));
  const ModelFacts facts = read_facts(part, FactsFor::training);
  CHECK(facts.largest.width == 4);
  CHECK(facts.text_padding == 512);
  CHECK_FALSE(facts.tokenizer);
  CHECK_THAT(usage_error([&] { ModelFolder(folder.path); }), Contains("holds no model: it is"));
  CHECK_THAT(usage_error([&] { ModelFolder(folder.path + "/nowhere"); }),
             Contains("no such model folder"));
}

TEST_CASE("model folder: of a run the newest checkpoint, and its average unless told not to") {
  const TemporaryFolder folder;
  const Json train = {{"step", 7},
                      {"seed", 3},
                      {"recipe", {{"model", {{"compute", "bf16"}}}}},
                      {"init", {{"path", "/base"}, {"hash", "0a"}}},
                      {"tokenizer", {{"name", "builtin:wavelet"}, {"channels", 3}}},
                      {"text_encoder", {{"name", "clip"}, {"dim", 8}, {"max_tokens", "all"}}},
                      {"latent_scale", nullptr},
                      {"trained", {{"frames", 2}, {"height", 4}, {"width", 6}, {"fps", {24.0}}}},
                      {"sampling",
                       {{"steps", 5},
                        {"guidance", 3.0},
                        {"guidance_low", 2.0},
                        {"sampler", "heun"},
                        {"diffusers", {{"steps", 6}, {"guidance", 1.0}, {"shift", 3.0}}}}}};
  write_checkpoint(folder.path, "00000005", Json::object());
  write_checkpoint(folder.path, "00000007", train);
  const ModelFolder run(folder.path), raw(run.folder(), {.average = false});
  CHECK(run.is_checkpoint());
  CHECK(run.folder().ends_with("/checkpoints/step-00000007"));
  CHECK(raw.folder() == run.folder());
  CHECK(run.averaged());
  CHECK_FALSE(raw.averaged());
  CHECK(value_of(run.weights()) == 2);
  CHECK(value_of(raw.weights()) == 1);
  CHECK(run.hash() != raw.hash());
  CHECK(hash_all(run) == hash_all(raw));
  CHECK_THAT(usage_error([&] { check_headers(run, read_model_config(run)); }), Contains("'a'"));

  const ModelFacts facts = read_facts(run);
  CHECK((facts.step == 7 && facts.seed == 3u && facts.trained_in == DType::bf16));
  CHECK(facts.origin.path == "/base");
  CHECK(facts.origin.to_json() == train["init"]);
  CHECK(facts.sampling.to_json() == train["sampling"]);
  CHECK(facts.tokenizer->to_json() == train["tokenizer"]);
  CHECK(facts.text_encoder->foreign());  // so what it is set to is nobody's business
  CHECK_FALSE(facts.scale);
  CHECK((facts.usual.width == 6 && facts.fps == 24));

  const ModelFolder before(folder.path + "/checkpoints/step-00000005");
  CHECK_THROWS_WITH(read_facts(before), Contains("has no 'tokenizer'"));
  CHECK_FALSE(read_facts(before, FactsFor::training).tokenizer);
  io::write_file(before.folder() + "/train.json", "{");
  CHECK_THROWS_WITH(before.weights(), Contains("'train.json' is not as it was written"));

  // What was read once is not read again.
  const OpenedModel opened(folder.path, true);
  CHECK(opened.folder().averaged());
  CHECK(opened.facts().step == 7);
  CHECK(std::get<NetworkConfig>(opened.config()).text_embed_dim ==
        std::get<NetworkConfig>(read_model_config(run)).text_embed_dim);
  std::filesystem::remove_all(run.folder());
  CHECK(opened.facts().step == 7);
  CHECK(std::holds_alternative<NetworkConfig>(opened.config()));
}

TEST_CASE("model folder: what a run began from comes back as it was written") {
  for (const Json& json :
       {Json(), Json{{"path", "/a"}, {"hash", "1"}},
        Json{{"path", "/a"}, {"hash", "1"}, {"adapters", {{"path", "/b"}, {"hash", "2"}}}}})
    CHECK(Origin::from_json(json).to_json() == json);
}
