// SPDX-License-Identifier: Apache-2.0
#include "train/export_pipeline.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/cosmos/autoencoder.h"
#include "models/cosmos/tokenizer.h"
#include "models/dit/edm.h"
#include "models/dit/network_json.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/hf_folder.h"
#include "models/folder/hf_sampling.h"
#include "models/folder/initial_model.h"
#include "models/text_encoder.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

// Noise levels of vfm-generate where a run says nothing of them.
constexpr double kSigmaMin = 0.02, kSigmaMax = 40;

Json object_in(const Json& train, const char* name) {
  const Json value = train.value(name, Json());
  return value.is_object() ? value : Json::object();
}

std::string name_of(const Json& part) {
  return get_string(part, "name").value_or("");
}

/// Why there is no pipeline; "" if there is one.
std::string why_not(const Json& train, const models::NetworkConfig& config,
                    const ExportOptions& options) {
  if (options.parts == ExportOptions::Parts::none) return "only the network was asked for";
  std::vector<std::string> reasons;
  if (config.type != models::NetworkType::dit)
    reasons.push_back(fmt::format("it has no class for a network of type {}",
                                  models::network_type_name(config.type)));
  const Json tokenizer = object_in(train, "tokenizer"), text = object_in(train, "text_encoder");
  if (name_of(tokenizer) != models::kCosmosContinuous)
    reasons.push_back(fmt::format("it has no class for the tokenizer {}", name_of(tokenizer)));
  if (text.empty())
    reasons.push_back("the model was trained without text");
  else if (name_of(text) != "t5" && name_of(text) != "umt5")
    reasons.push_back(fmt::format("it has no class for the text encoder {}", name_of(text)));
  return fmt::format("{}", fmt::join(reasons, ", and "));
}

/// Of the tokenizer or the text encoder: where it is now.
std::string place_of(const Json& part, const std::string& given, const char* what,
                     const char* option) {
  const std::string path = given.empty() ? get_string(part, "path").value_or("") : given;
  if (!path.empty() && io::file_exists(path)) return path;
  fail_usage(
      "the {} is not in '{}' any more: give its folder with {} DIR, or take the network alone "
      "with --parts none",
      what, path, option);
}

Json scheduler_of(const Json& train) {
  const Json sampling = object_in(train, "sampling");
  const bool ends_at_minimum = get_string(sampling, "sampler").value_or("euler") == "edm-euler";
  return {{"_class_name", "EDMEulerScheduler"},
          {"final_sigmas_type", ends_at_minimum ? "sigma_min" : "zero"},
          {"num_train_timesteps", 1000},
          {"prediction_type", "epsilon"},
          {"rho", 7.0},
          {"sigma_data", models::kSigmaData},
          {"sigma_max", get_number(sampling, "sigma_max").value_or(kSigmaMax)},
          {"sigma_min", get_number(sampling, "sigma_min").value_or(kSigmaMin)},
          {"sigma_schedule", "karras"}};
}

/// diffusers counts as many latent frames of statistics as a clip has, or one for all.
Json statistics(const Json& scale, const char* name, int most_frames) {
  const Json values = scale.at(name);
  const auto frames = static_cast<std::size_t>(get_integer(scale, "frames").value_or(1));
  if (frames <= 1) return values;
  const std::size_t wanted = std::max(frames, static_cast<std::size_t>(most_frames));
  Json longer = Json::array();
  for (std::size_t channel = 0; channel < values.size() / frames; ++channel)
    for (std::size_t t = 0; t < wanted; ++t)
      longer.push_back(values[channel * frames + std::min(t, frames - 1)]);
  return longer;
}

void write_json(const std::string& folder, const char* name, const Json& json) {
  io::make_directories(folder);
  io::write_file(io::join_path(folder, name), dump_json_pretty(json));
}

void write_vae(const PipelineParts& parts, int most_frames, const std::string& folder) {
  const models::InitialModel model(parts.vae, "vae", {models::kCosmosContinuous});
  Json config = model.config();
  config["latents_mean"] = statistics(parts.scale, "mean", most_frames);
  config["latents_std"] = statistics(parts.scale, "std", most_frames);
  write_json(folder, "config.json", config);
  io::write_safetensors(folder, models::kWeightsName, model.weights().tensors());
}

/// A folder with what `wanted` takes of another one.
void take_files(const std::string& from, const std::string& to, bool copy, bool weights) {
  io::make_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = io::extension(name);
    const bool of_tokenizer = name.find("token") != std::string::npos || extension == "model";
    if (!entry.is_regular_file() || (!weights && !of_tokenizer)) continue;
    const std::string target = io::join_path(to, name);
    if (copy)
      fs::copy_file(entry.path(), target);
    else
      fs::create_symlink(fs::canonical(entry.path()), target);
  }
}

/// As the tokenizer's own settings have it.
std::string tokenizer_class(const std::string& folder) {
  const std::string path = io::join_path(folder, "tokenizer_config.json");
  if (!io::file_exists(path)) return "T5TokenizerFast";
  const Json settings = parse_json(io::read_file(path), fmt::format("'{}'", path));
  return get_string(settings, "tokenizer_class").value_or("T5TokenizerFast");
}

}  // namespace

PipelineParts find_parts(const Json& train, const models::NetworkConfig& config,
                         const ExportOptions& options) {
  PipelineParts parts;
  parts.why_not = why_not(train, config, options);
  if (!parts.why_not.empty()) return parts;
  parts.type = config.video_to_world() ? "CosmosVideoToWorldPipeline" : "CosmosTextToWorldPipeline";
  Json tokenizer = object_in(train, "tokenizer");
  parts.vae = place_of(tokenizer, options.tokenizer, "tokenizer", "--tokenizer");
  tokenizer["path"] = parts.vae;
  models::inspect_cosmos(tokenizer);  // refuses another one
  const Json text = object_in(train, "text_encoder");
  const std::string path = place_of(text, options.text_encoder, "text encoder", "--text-encoder");
  const Json found = as_usage(
      [&] { return models::text_encoder_config(path, models::kCosmosTextTokens, DType::f32); });
  if (const auto hash = get_string(text, "hash"); hash && found["hash"] != *hash)
    fail_usage("'{}' is not the text encoder that the run was trained with", path);
  const models::TextFolders folders = models::text_encoder_folders(path);
  parts.text_model = folders.model;
  parts.tokenizer = folders.tokenizer;
  parts.scale = train.at("latent_scale");
  parts.scheduler = scheduler_of(train);
  return parts;
}

void write_parts(const PipelineParts& parts, const models::NetworkConfig& config,
                 const std::string& folder, bool copy) {
  write_vae(parts, config.max_size[0], io::join_path(folder, "vae"));
  write_json(io::join_path(folder, "scheduler"), "scheduler_config.json", parts.scheduler);
  take_files(parts.text_model, io::join_path(folder, "text_encoder"), copy, true);
  take_files(parts.tokenizer, io::join_path(folder, "tokenizer"), copy, false);
  const bool umt5 = models::HfComponent(parts.text_model).type() == "umt5";
  const auto entry = [](const char* library, const std::string& name) {
    return Json::array({library, name});
  };
  write_json(folder, "model_index.json",
             {{"_class_name", parts.type},
              {"safety_checker", Json::array({nullptr, nullptr})},
              {"scheduler", entry("diffusers", "EDMEulerScheduler")},
              {"text_encoder", entry("transformers", umt5 ? "UMT5EncoderModel" : "T5EncoderModel")},
              {"tokenizer", entry("transformers", tokenizer_class(parts.tokenizer))},
              {"transformer", entry("diffusers", "CosmosTransformer3DModel")},
              {"vae", entry("diffusers", "AutoencoderKLCosmos")}});
}

}  // namespace vfm::train
