// SPDX-License-Identifier: Apache-2.0
#include "generate/pipeline.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/file.h"
#include "models/dit/network_json.h"
#include "models/folder/config_json.h"
#include "models/folder/hf_folder.h"
#include "models/folder/hf_sampling.h"
#include "models/folder/load_tensors.h"
#include "models/text_encoder.h"

namespace vfm::generate {
namespace {

// The pipelines' defaults.
constexpr int kFrames = 121, kHeight = 704, kWidth = 1280;
constexpr double kFps = 30;
constexpr double kNoGuidance = 1;  // that much and less is none to them

struct Parts {
  explicit Parts(const std::string& folder)
      : pipeline(folder),
        transformer(pipeline.folder_of("transformer")),
        vae(pipeline.folder_of("vae")),
        text_encoder(pipeline.folder_of("text_encoder")) {
    const std::string& type = pipeline.type();
    if (type != "CosmosTextToWorldPipeline" && type != "CosmosVideoToWorldPipeline")
      fail_usage("'{}' is a {}: there are CosmosTextToWorldPipeline and CosmosVideoToWorldPipeline",
                 folder, type);
    transformer.need_type({"CosmosTransformer3DModel"});
    vae.need_type({"AutoencoderKLCosmos"});
    text_encoder.need_type({"t5", "umt5"});
  }

  models::HfPipeline pipeline;
  models::HfComponent transformer, vae, text_encoder;
};

Json read_json(const std::string& path) {
  return parse_json(io::read_file(path), "'" + path + "'");
}

models::NetworkConfig network_config(const Parts& parts) {
  const std::string path = io::join_path(parts.transformer.folder(), "config.json");
  return models::in_file(
      path, [&] { return models::network_config_from_json(parts.transformer.config()); });
}

Json describe(const Parts& parts, DType compute) {
  const Json& vae = parts.vae.config();
  const std::string what = "'" + io::join_path(parts.vae.folder(), "config.json") + "'";
  const models::NetworkConfig network = network_config(parts);
  const Json sampling = models::hf_sampling(parts.pipeline.folder_of("scheduler"));
  const bool flow = sampling["sampler"] == "flow";
  const int time = static_cast<int>(need_integer(vae, "temporal_compression_ratio", what));
  const int space = static_cast<int>(need_integer(vae, "spatial_compression_ratio", what));
  if (time < 1 || space < 1) fail_usage("{} has compression ratios below 1", what);
  const std::array<int, 3> usual = {1 + (kFrames - 1) / time, kHeight / space, kWidth / space};
  Json trained = {{"fps", {kFps}}}, most;
  const std::array<const char*, 3> names = {"frames", "height", "width"};
  for (std::size_t i = 0; i < 3; ++i) {
    trained[names[i]] = network.max_size[i];
    most[names[i]] = std::min(usual[i], network.max_size[i]);
  }
  trained["usual"] = most;
  return {{"tokenizer", {{"name", "AutoencoderKLCosmos"}, {"path", parts.vae.folder()}}},
          {"text_encoder",
           {{"name", parts.text_encoder.type()}, {"path", parts.text_encoder.folder()}}},
          {"latent_scale", models::hf_latent_scale(vae, flow, what).to_json()},
          {"trained", trained},
          {"sampling", sampling},
          {"text_padding", models::kCosmosTextTokens},
          {"encode_empty", true},
          // The reference hands the time over in the network's own type.
          {"round_time", compute == DType::bf16}};
}

// With its tokenizer's.
std::string text_encoder_hash(const std::string& folder) {
  return models::text_encoder_config(folder, models::kCosmosTextTokens, DType::f32)["hash"];
}

}  // namespace

bool is_pipeline(const std::string& folder) {
  return models::HfPipeline::is_one(folder);
}

Json describe_pipeline(const std::string& folder, DType compute) {
  return describe(Parts(folder), compute);
}

models::LoadedModel load_pipeline(const std::string& folder, std::optional<DType> compute,
                                  Device device) {
  const Parts parts(folder);
  const io::TensorSet& weights = parts.transformer.weights();
  if (!compute)
    compute = weights.tensors().empty() || weights.tensors().front().dtype == "F32" ? DType::f32
                                                                                    : DType::bf16;
  models::LoadedModel loaded{
      models::make_network(network_config(parts), 0, *compute, device, false),
      describe(parts, *compute), folder, false, *compute};
  models::load_parameters(weights, loaded.network->parameters());
  return loaded;
}

std::string model_hash(const std::string& folder) {
  if (!is_pipeline(folder))
    return io::hash_file(io::join_path(models::find_checkpoint(folder), "COMPLETE"));
  const Parts parts(folder);
  Hasher hasher;
  for (const models::HfComponent* part : {&parts.transformer, &parts.vae})
    hasher.update(part->hash());
  hasher.update(text_encoder_hash(parts.text_encoder.folder()));
  return hasher.hex128();
}

void add_part_hashes(Json& train) {
  train["tokenizer"]["hash"] = models::HfComponent(train["tokenizer"]["path"]).hash();
  train["text_encoder"]["hash"] = text_encoder_hash(train["text_encoder"]["path"]);
}

void note_guidance(const std::string& folder, double guidance) {
  if (guidance == 0 || guidance > kNoGuidance || !is_pipeline(folder)) return;
  log_warning(
      "guidance {}: diffusers' pipelines guide only above {}, this program at any but 0; give 0 "
      "for what they make",
      guidance, kNoGuidance);
}

ModelFacts read_facts(const std::string& path) {
  if (is_pipeline(path))
    return ModelFacts::from_json(describe_pipeline(path, DType::f32), "'" + path + "'");
  return models::retry_if_gone(path, [&] {
    const std::string file = io::join_path(models::find_checkpoint(path), "train.json");
    return ModelFacts::from_json(read_json(file), "'" + file + "'");
  });
}

}  // namespace vfm::generate
