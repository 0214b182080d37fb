// What other programs know of the networks: every architecture there and back, and one that a test
// makes up, from which lib/ is told everything by its one entry.
// SPDX-License-Identifier: Apache-2.0
#include "models/dit/architecture.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/dit/network_json.h"
#include "models/folder/hf_defaults.h"
#include "models/folder/lora_names.h"
#include "models/folder/model_config.h"
#include "models/folder/model_facts.h"
#include "models/folder/tensor_form.h"
#include "support/made_up_network.h"
#include "support/small_networks.h"
#include "support/temporary_folder.h"
#include "support/usage_error.h"

using namespace vfm;
using namespace vfm::models;
using Catch::Contains;

namespace {

/// The weights of a network, as a checkpoint has them.
class WeightsOfNetwork final : public io::TensorSet {
 public:
  explicit WeightsOfNetwork(const NetworkConfig& config) : network_(make_network(config, 3)) {
    randomise(network_->parameters());
    for (const nn::Parameter* parameter : network_->parameters()) {
      values_.push_back(parameter->read());
      add({parameter->name,
           "F32",
           parameter->shape(),
           {values_.back().data<std::byte>(), values_.back().bytes()}});
    }
  }

 private:
  std::unique_ptr<DiffusionNetwork> network_;
  std::vector<Tensor> values_;
};

/// The class's own folder of it, as an export writes it.
void write_foreign(const std::string& folder, const NetworkConfig& config,
                   const io::TensorSet& weights) {
  std::vector<io::TensorView> views;
  std::vector<Tensor> held;
  for (const WrittenTensor& tensor :
       written_tensors(config.architecture->foreign->written, config, weights)) {
    // In two pieces, as large tensors are written.
    const std::int64_t all = element_count(tensor.shape), half = all / 2;
    const Tensor values({all});
    for (const auto& [begin, count] : {std::pair{std::int64_t{0}, half}, {half, all - half}})
      std::ranges::copy(written_values(tensor, weights, begin, count).floats(),
                        values.floats().begin() + begin);
    held.push_back(values);
    views.push_back({tensor.name, "F32", tensor.shape, {values.data<std::byte>(), values.bytes()}});
  }
  io::make_directories(folder);
  io::write_safetensors(folder, "model", std::move(views));
}

std::vector<float> values_of(const io::TensorView& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

}  // namespace

TEST_CASE("architectures: a configuration is the same there and back, in each class") {
  const MadeUpNetwork made;
  for (const Architecture* one : architectures()) {
    INFO(one->name);
    NetworkConfig config = default_config(*one);
    config.num_layers = 5;
    config.in_channels = 7;
    config.mlp_ratio = 2.5;
    config.max_size = {3, 5, 7};
    const Json json = network_config_to_json(config);
    CHECK(json["_class_name"] == one->class_name);
    const NetworkConfig back = network_config_from_json(json);
    CHECK(back.architecture == one);
    CHECK(network_config_to_json(back) == json);
    // Nothing is lost if the file has the defaults of the class alone.
    CHECK(network_config_to_json(network_config_from_json({{"_class_name", one->class_name}})) ==
          network_config_to_json(default_config(*one)));
  }
}

TEST_CASE("architectures: names are the same there and back, in each form") {
  const MadeUpNetwork made;
  for (const Architecture* one : architectures()) {
    if (!one->foreign) continue;
    NetworkConfig config = default_config(*one);
    config.num_layers = 12;
    const auto network = make_network(config, 0, DType::bf16, Device::cpu, false);
    for (const TensorForm& form : one->foreign->tensors) {
      INFO(one->name << ", " << form.sign);
      std::set<std::string> all;
      bool signs = false;
      for (const nn::Parameter* parameter : network->parameters()) {
        const std::string there = name_there(form, parameter->name);
        CHECK(name_here(form, there) == parameter->name);
        CHECK(all.insert(there).second);
        signs = signs || there.find(form.sign) != std::string::npos;
        CHECK(parameter->name.find(form.sign) == std::string::npos);
      }
      CHECK(signs);
    }
  }
}

TEST_CASE("architectures: adapters are known by every spelling of their matrices") {
  const MadeUpNetwork made;
  const auto module = [](const std::string& name) { return parse_adapter_name(name).module; };
  const std::string theirs = "blocks.block3.blocks.1.block.attn.to_v.0",
                    here = "transformer_blocks.3.attn2.to_v";
  CHECK(module("diffusion_model." + theirs + ".lora_A.weight") == here);
  CHECK(module("lora_unet_blocks_block3_blocks_1_block_attn_to_v_0.lora_down.weight") == here);
  CHECK(module("transformer." + here + ".lora_A.weight") == here);
  CHECK(module("lora_transformer_transformer_blocks_3_attn2_to_v.lora_down.weight") == here);
  CHECK(module("layer_14.self.q.lora_B.weight") == "transformer_blocks.14.attn1.to_q");
  CHECK(module("lora_unet_layer_14_self_q.lora_up.weight") == "transformer_blocks.14.attn1.to_q");
  CHECK(module("layer_x.self.q.lora_B.weight") == "layer_x.self.q");
}

TEST_CASE("architectures: a made-up one is written for its class and read back") {
  const TemporaryFolder folder;
  const MadeUpNetwork made;
  const NetworkConfig config = made.config();
  const WeightsOfNetwork weights(config);
  write_foreign(folder.path, config, weights);
  folder.write("config.json", dump_json(network_config_to_json(config)));

  // What is written has the class's names and shapes.
  const io::SafetensorsSet file(folder.path, "model");
  REQUIRE(file.find("core.stem.weight"));
  CHECK(file.find("core.stem.weight")->shape == std::vector<std::int64_t>{24, 4, 1, 2, 2});
  REQUIRE(file.find("core.layer_1.attn2.kv.weight"));
  CHECK(file.find("core.layer_1.attn2.kv.weight")->shape == std::vector<std::int64_t>{48, 10});
  REQUIRE(file.find("core.layer_0.ff.net.2.weight"));
  CHECK(file.find("core.layer_0.ff.net.2.weight")->shape == std::vector<std::int64_t>{96, 24});
  CHECK(file.find("core.layer_0.norm3.linear_1.weight"));

  const ModelFolder model(folder.path, {.types = model_class_names()});
  const ModelConfig read = read_model_config(model);
  REQUIRE(std::get_if<NetworkConfig>(&read));
  CHECK(std::get<NetworkConfig>(read).architecture == &made.architecture);
  CHECK_NOTHROW(check_headers(model, read));
  for (const io::TensorView& tensor : weights.tensors()) {
    INFO(tensor.name);
    const io::TensorView* const found = model.weights().find(tensor.name);
    REQUIRE(found);
    CHECK(found->shape == tensor.shape);
    CHECK(values_of(*found) == values_of(tensor));
  }
  CHECK(with_defaults("WanMadeUp3DModel", Json::object())["note"] == 7);
  CHECK(read_facts(model, FactsFor::training).text_padding == 20);
}

TEST_CASE("architectures: classes of a made-up one are supported, and its relatives are not") {
  const TemporaryFolder folder;
  const MadeUpNetwork made;
  const auto refused = [&](const char* config) {
    folder.write("config.json", config);
    return usage_error([&] { ModelFolder(folder.path).component(); });
  };
  folder.write("config.json", R"({"_class_name":"OldMadeUpModel","layers":4})");
  const ModelFolder older(folder.path, {.types = model_class_names()});
  CHECK(std::get<NetworkConfig>(read_model_config(older)).num_layers == 4);
  CHECK_THAT(refused(R"({"_class_name":"WanMadeUp3DModel","gated":true})"),
             Contains("is of Gated Made-Up ('gated'), which is not supported"));
  CHECK_THAT(refused(R"({"_class_name":"WanMadeUp3DModel","depth":13})"),
             Contains("is of Unlucky ('depth' 13), which is not supported"));
  CHECK_THAT(refused(R"({"_class_name":"WanAnimateTransformer3DModel"})"),
             Contains("is of Wan 2.2 Animate (WanAnimateTransformer3DModel), which is not "
                      "supported: of video models Cosmos-1.0's, Wan's and Made-Up's are"));
}

TEST_CASE("architectures: a pipeline with two networks has a boundary and a guidance for each") {
  const TemporaryFolder folder;
  const MadeUpNetwork made;
  const std::string golden = VFM_GOLDEN;
  folder.write("model_index.json",
               R"({"_class_name":"MadeUpPipeline","boundary_ratio":0.9,)"
               R"("scheduler":["diffusers","FlowMatchEulerDiscreteScheduler"],)"
               R"("transformer":["diffusers","WanMadeUp3DModel"],)"
               R"("transformer_2":["diffusers","WanMadeUp3DModel"],)"
               R"("vae":["diffusers","X"],"text_encoder":["transformers","X"]})");
  const auto write_network = [&](const char* part, const NetworkConfig& config) {
    folder.write(std::string(part) + "/config.json", dump_json(network_config_to_json(config)));
  };
  write_network("transformer", made.config());
  write_network("transformer_2", made.config());
  folder.write("scheduler/scheduler_config.json",
               R"({"_class_name":"FlowMatchEulerDiscreteScheduler"})");
  for (const auto& [part, place] :
       {std::pair{"vae", "/cosmos_vae"}, std::pair{"text_encoder", "/t5/v1_0/text_encoder"}})
    std::filesystem::create_directory_symlink(golden + place, folder / part);
  const auto facts = [&] {
    return read_facts(ModelFolder(folder.path, {.types = model_class_names()}));
  };
  const ModelFacts two = facts();
  CHECK(two.networks() == 2);
  CHECK(two.boundary == 0.9);
  CHECK(two.sampling.guidance == 4.0);
  CHECK(two.sampling.guidance_low == 2.0);
  CHECK_THAT(usage_error([&] { read_facts(ModelFolder(folder.path), FactsFor::training); }),
             Contains("a run trains one: give the folder of that one"));
  NetworkConfig larger = made.config();
  ++larger.num_layers;
  write_network("transformer_2", larger);
  CHECK_THAT(usage_error(facts), Contains("must have one configuration"));
}

TEST_CASE("architectures: a pipeline has its architecture's parts and sampling") {
  const TemporaryFolder folder;
  const MadeUpNetwork made;
  folder.write("model_index.json", R"({"_class_name":"MadeUpPipeline",)"
                                   R"("scheduler":["diffusers","FlowMatchEulerDiscreteScheduler"],)"
                                   R"("transformer":["diffusers","WanMadeUp3DModel"]})");
  folder.write("transformer/config.json", dump_json(network_config_to_json(made.config())));
  folder.write("scheduler/scheduler_config.json",
               R"({"_class_name":"FlowMatchEulerDiscreteScheduler"})");
  const ModelFolder model(folder.path, {.types = model_class_names()});
  const ModelFacts facts = read_facts(model, FactsFor::training);
  CHECK(facts.fps == 12);
  CHECK(facts.text_padding == 20);
  CHECK(facts.sampling.process == Process::flow);
  CHECK(facts.sampling.to_json() == Json{{"steps", 11},
                                         {"guidance", 3.0},
                                         {"process", "flow"},
                                         {"sampler", "flow"},
                                         {"shift", 5.0}});
  // What a run has of it is written so again.
  CHECK(hf_scheduler(facts.sampling, *kDit.foreign->pipeline) ==
        Json{{"_class_name", "FlowMatchEulerDiscreteScheduler"},
             {"num_train_timesteps", 1000},
             {"shift", 5.0}});
  folder.write("scheduler/scheduler_config.json", R"({"_class_name":"EDMEulerScheduler"})");
  CHECK_THAT(usage_error([&] { read_facts(model, FactsFor::training); }),
             Contains("only FlowMatchEulerDiscreteScheduler is supported"));
  // One that a pipeline lists by mistake is not read as another.
  folder.write("scheduler/scheduler_config.json", R"({"_class_name":"DDIMScheduler"})");
  constexpr std::string_view kListed[] = {"DDIMScheduler"};
  PipelineForm listing = *kDit.foreign->pipeline;
  listing.schedulers = kListed;
  CHECK_THROWS_WITH(hf_sampling(folder.path + "/scheduler", listing),
                    Contains("DDIMScheduler, which cannot be read"));
}

namespace {

constexpr std::string_view kFlowSchedulers[] = {
    "FlowMatchEulerDiscreteScheduler", "UniPCMultistepScheduler", "DPMSolverMultistepScheduler"};

/// A pipeline whose authors' program has a shift of 12.
PipelineForm pipeline_with_reference() {
  PipelineForm pipeline = *kDit.foreign->pipeline;
  pipeline.schedulers = kFlowSchedulers;
  pipeline.shift = 12;
  pipeline.in_diffusers = InDiffusers{.steps = 50, .guidance = 4, .shift = 5};
  return pipeline;
}

/// What a scheduler_config.json says to it.
SamplingFacts sampling_of_scheduler(const Json& config) {
  const TemporaryFolder folder;
  folder.write("scheduler_config.json", dump_json(config));
  return hf_sampling(folder.path, pipeline_with_reference());
}

Json multistep_scheduler(const char* name) {
  return {{"_class_name", name},
          {"prediction_type", "flow_prediction"},
          {"use_flow_sigmas", true},
          {"flow_shift", 3.0}};
}

}  // namespace

TEST_CASE("architectures: schedulers of flow matching are read and written") {
  Json unipc = multistep_scheduler("UniPCMultistepScheduler");
  const Json dpm = multistep_scheduler("DPMSolverMultistepScheduler");
  const auto check = [](const Json& config, Sampler sampler) {
    const SamplingFacts facts = sampling_of_scheduler(config);
    CHECK(facts.process == Process::flow);
    CHECK(facts.sampler == sampler);
    CHECK(facts.shift == 12);
    CHECK(facts.diffusers == InDiffusers{50, 4, 3});
    // diffusers has its own shift, whatever the authors' program has.
    Json written = hf_scheduler(facts, pipeline_with_reference());
    for (const auto& [name, value] : config.items())
      CHECK(written.at(name) == value);
    const SamplingFacts again = sampling_of_scheduler(written);
    CHECK((again.sampler == sampler && again.scheduler_shift() == 3 &&
           again.process == Process::flow));
    CHECK(again.shift == 12);
    // A run that is sampled in one way, with a shift of its own, or as its authors' program with
    // another shift.
    SamplingFacts own = facts;
    own.shift = 4;
    CHECK(sampling_of_scheduler(hf_scheduler(own, pipeline_with_reference())).shift == 4);
    own.shift.reset();  // which is 1
    const SamplingFacts unshifted =
        sampling_of_scheduler(hf_scheduler(own, pipeline_with_reference()));
    CHECK((unshifted.shift == 1 && unshifted.diffusers == InDiffusers{50, 4, 3}));
    own.shift = 4;
    own.diffusers.reset();
    written = hf_scheduler(own, pipeline_with_reference());
    CHECK(sampling_of_scheduler(written).shift == 4);
    CHECK(!sampling_of_scheduler(written).diffusers);
    written["reference_shift"] = -1;
    CHECK_THAT(usage_error([&] { sampling_of_scheduler(written); }), Contains("reference_shift"));
  };
  check(unipc, Sampler::unipc);
  check(dpm, Sampler::dpm);
  check({{"_class_name", "FlowMatchEulerDiscreteScheduler"}, {"shift", 3.0}}, Sampler::flow);
  unipc["solver_order"] = 1;
  check(unipc, Sampler::unipc1);
  unipc["solver_order"] = 3;
  check(unipc, Sampler::unipc3);
  // As the folders of Wan have it: all settings, most without effect on flow matching.
  unipc.update({{"solver_order", 2},
                {"beta_end", 0.02},
                {"disable_corrector", Json::array()},
                {"final_sigmas_type", "zero"},
                {"lower_order_final", true},
                {"num_train_timesteps", 1000},
                {"predict_x0", true},
                {"sample_max_value", 1.0},
                {"solver_p", nullptr},
                {"solver_type", "bh2"},
                {"thresholding", false},
                {"time_shift_type", "exponential"},
                {"timestep_spacing", "linspace"},
                {"trained_betas", nullptr},
                {"use_beta_sigmas", false},
                {"use_dynamic_shifting", false},
                {"use_exponential_sigmas", false},
                {"use_karras_sigmas", false}});
  CHECK(sampling_of_scheduler(unipc).sampler == Sampler::unipc);
  unipc.erase("flow_shift");
  CHECK(sampling_of_scheduler(unipc).scheduler_shift() == 1);  // diffusers' own default
}

TEST_CASE("architectures: unsupported settings of schedulers are refused by name") {
  const auto refused = [](const char* scheduler, const char* name, const Json& value) {
    Json config = multistep_scheduler(scheduler);
    if (value.is_discarded())
      config.erase(name);
    else
      config[name] = value;
    INFO(config.dump());
    CHECK_THAT(usage_error([&] { sampling_of_scheduler(config); }), Contains(name));
  };
  for (const char* scheduler : {"UniPCMultistepScheduler", "DPMSolverMultistepScheduler"}) {
    for (const char* name : {"thresholding", "use_karras_sigmas", "use_exponential_sigmas",
                             "use_beta_sigmas", "use_dynamic_shifting"})
      refused(scheduler, name, true);
    refused(scheduler, "use_flow_sigmas", false);
    refused(scheduler, "prediction_type", "epsilon");
    refused(scheduler, "solver_order", 4);
    refused(scheduler, "solver_type", "heun");
    refused(scheduler, "final_sigmas_type", "sigma_min");
    refused(scheduler, "num_train_timesteps", 999);
    refused(scheduler, "shift_terminal", 0.02);
    for (const char* name : {"use_flow_sigmas", "prediction_type"})
      refused(scheduler, name, Json(Json::value_t::discarded));
  }
  refused("UniPCMultistepScheduler", "predict_x0", false);
  refused("UniPCMultistepScheduler", "lower_order_final", false);
  refused("UniPCMultistepScheduler", "disable_corrector", {0});
  refused("UniPCMultistepScheduler", "solver_p", "DPMSolverMultistepScheduler");
  refused("UniPCMultistepScheduler", "solver_order", 1.5);
  refused("DPMSolverMultistepScheduler", "solver_order", 3);
  refused("DPMSolverMultistepScheduler", "algorithm_type", "sde-dpmsolver++");
  refused("DPMSolverMultistepScheduler", "use_lu_lambdas", true);
  refused("DPMSolverMultistepScheduler", "variance_type", "learned");
  Json config = multistep_scheduler("UniPCMultistepScheduler");
  config["flow_shift"] = 0;
  CHECK_THAT(usage_error([&] { sampling_of_scheduler(config); }), Contains("shift 0"));
}
