// The JSON files of model folders: config.json of every component, model_index.json,
// scheduler_config.json. Whatever passes is a configuration that can be counted.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"
#include "models/decoder/decoder_json.h"
#include "models/dit/architecture.h"
#include "models/dit/network_cost.h"
#include "models/dit/network_json.h"
#include "models/folder/hf_folder.h"
#include "models/folder/model_facts.h"
#include "models/t5/t5.h"
#include "support/temporary_folder.h"

namespace {

using namespace vfm;

template <class Act>
void attempt(Act act) {
  try {
    act();
  } catch (const Error&) {
  }
}

void count(const models::NetworkConfig& config) {
  models::network_config_from_json(models::network_config_to_json(config));
  const auto& patch = config.patch_size;
  models::forward_cost(config, {}, {{patch[0], patch[1], patch[2]}}, DType::f32, {}, Device::cpu);
}

void count(const models::DecoderConfig& config) {
  models::decoder_config_from_json(models::decoder_config_to_json(config));
  models::writing_cost(config, {}, {1, 2, 3, 10}, DType::f32, Device::cpu);
}

constexpr std::string_view kSchedulers[] = {"EDMEulerScheduler", "FlowMatchEulerDiscreteScheduler",
                                            "UniPCMultistepScheduler",
                                            "DPMSolverMultistepScheduler"};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"config.json", "model_index.json", "scheduler_config.json"})
    folder.write(name, text);
  attempt([&] {
    const models::HfComponent component(folder.path);
    const Json& config = component.config();
    attempt([&] { count(models::network_config_from_json(config)); });
    attempt([&] { count(models::decoder_config_from_json(config)); });
    attempt([&] { models::T5Config::from_json(config, component.type(), "input"); });
    attempt([&] { component.weights(); });  // there are none
  });
  attempt([&] {
    const models::ModelFolder pipeline(folder.path);
    for (const char* name : {"transformer", "vae", "text_encoder", "tokenizer"})
      if (pipeline.layout().has(name)) attempt([&] { pipeline.layout().folder_of(name); });
  });
  models::PipelineForm pipeline = *models::kDit.foreign->pipeline;
  pipeline.schedulers = kSchedulers;
  attempt([&] { models::hf_scheduler(models::hf_sampling(folder.path, pipeline), pipeline); });
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {dump_json(models::network_config_to_json({})),
          dump_json(models::decoder_config_to_json({})),
          R"({"_class_name":"AutoencoderKLCosmos","latents_mean":[0.5],"latents_std":[2]})",
          R"({"model_type":"t5","d_model":16,"d_kv":8,"num_heads":3,"d_ff":40,"num_layers":2,
          "feed_forward_proj":"gated-gelu","vocab_size":99})",
          R"({"model_type":"umt5","layer_norm_epsilon":1e-6,"relative_attention_num_buckets":32})",
          R"({"_class_name":"UniPCMultistepScheduler","prediction_type":"flow_prediction",
          "use_flow_sigmas":true,"flow_shift":3,"solver_order":3,"disable_corrector":[]})",
          R"({"_class_name":"CosmosTextToWorldPipeline","transformer":["diffusers",
          "CosmosTransformer3DModel"],"vae":[null,null],"scheduler":["diffusers","x"]})",
          R"({"_class_name":"EDMEulerScheduler","sigma_max":80,"sigma_min":0.002,"sigma_data":0.5,
          "final_sigmas_type":"zero","rho":7.0,"sigma_schedule":"karras"})",
          R"({"_class_name":"FlowMatchEulerDiscreteScheduler","shift":1.5,"shift_terminal":null})"};
}
