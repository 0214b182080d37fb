// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/export_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "io/safetensors.h"
#include "models/dit/architecture.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/weight_files.h"
#include "models/process/process.h"
#include "models/text_encoder.h"
#include "models/tokenizer_family.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

/// The pipeline of a network that has one.
const models::PipelineForm& pipeline_of(const models::NetworkConfig& config) {
  return *config.architecture->foreign->pipeline;
}

/// Why there is no pipeline; "" if there is one.
std::string why_not(const models::ModelFacts& facts, const models::NetworkConfig& config,
                    const ExportOptions& options) {
  if (options.parts == ExportOptions::Parts::none) return "only the network was asked for";
  std::vector<std::string> reasons;
  const models::ForeignNetwork* const foreign = config.architecture->foreign;
  if (!foreign || !foreign->pipeline)
    reasons.push_back(
        fmt::format("diffusers has no class for a network of type {}", config.architecture->name));
  else if (foreign->why_not)
    reasons.push_back(foreign->why_not(config));
  const std::string tokenizer = facts.tokenizer ? facts.tokenizer->name : "";
  const auto* tokenizers = models::find_tokenizer_family(tokenizer);
  const bool in_pipeline =
      !foreign || !foreign->pipeline ||
      std::ranges::find(foreign->pipeline->vaes, tokenizer) != foreign->pipeline->vaes.end();
  if (!tokenizers || !tokenizers->in_diffusers)
    reasons.push_back(fmt::format("diffusers has no class for the tokenizer {}", tokenizer));
  else if (!in_pipeline)
    reasons.push_back(fmt::format("no pipeline of diffusers has a network of type {} and {}",
                                  config.architecture->name, tokenizer));
  const std::string text = facts.text_encoder ? facts.text_encoder->name : "";
  if (!facts.text_encoder)
    reasons.push_back("the model was trained without text");
  else if (const auto* family = models::find_text_encoder_family(text);
           !family || family->class_name.empty())
    reasons.push_back(fmt::format("diffusers has no class for the text encoder {}", text));
  std::erase(reasons, "");
  return fmt::format("{}", fmt::join(reasons, ", and "));
}

/// Of the tokenizer or the text encoder: where it is now.
std::string place_of(const std::string& was, const std::string& given, const char* what,
                     const char* option) {
  const std::string& path = given.empty() ? was : given;
  if (!path.empty() && io::path_exists(path)) return path;
  fail_usage(
      "the {} is not in '{}' any more; give its folder with {} DIR, or write the network alone "
      "with --parts none",
      what, path, option);
}

/// diffusers counts as many latent frames of statistics as a clip has, or one for all.
std::vector<double> statistics(const std::vector<double>& values, int known, int most_frames) {
  if (known <= 1) return values;
  const auto frames = static_cast<std::size_t>(known);
  const std::size_t wanted = std::max(frames, static_cast<std::size_t>(most_frames));
  std::vector<double> longer;
  for (std::size_t channel = 0; channel < values.size() / frames; ++channel)
    for (std::size_t t = 0; t < wanted; ++t)
      longer.push_back(values[channel * frames + std::min(t, frames - 1)]);
  return longer;
}

void write_json(const std::string& folder, const char* name, const Json& json) {
  io::make_directories(folder);
  io::write_file(io::join_path(folder, name), dump_json_pretty(json));
}

void write_vae(const std::string& vae, const models::ModelFacts& facts, int most_frames,
               const std::string& folder) {
  const models::LatentScale& scale = facts.scale.value();
  const models::ModelFolder model(vae, {.part = "vae", .types = {facts.tokenizer->name}});
  Json config = model.config();
  config["latents_mean"] = statistics(scale.mean, scale.frames, most_frames);
  config["latents_std"] = statistics(scale.std, scale.frames, most_frames);
  write_json(folder, "config.json", config);
  io::write_safetensors(folder, models::kWeightsName, model.weights().tensors());
}

/// Copies a file from or to a bucket.
void copy_object(const std::string& from, const std::string& to) {
  io::File file = io::File::open_regular(from);
  io::AtomicFile copy(to);
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const auto buffer = std::make_unique_for_overwrite<char[]>(kBytes);
  while (const std::size_t got = file.read_some(buffer.get(), kBytes)) {
    check_stop();
    copy.write(buffer.get(), got);
  }
  copy.commit();
}

/// A folder with what `wanted` takes of another one.
void take_files(const std::string& from, const std::string& to, bool copy, bool weights) {
  io::make_directories(to);
  for (const io::FolderEntry& entry : io::entries(from)) {
    const std::string extension = io::extension(entry.name);
    const bool of_tokenizer = entry.name.find("token") != std::string::npos || extension == "model";
    const std::string source = io::join_path(from, entry.name);
    const std::string target = io::join_path(to, entry.name);
    if (!io::is_file(source) || (!weights && !of_tokenizer)) continue;
    if (io::is_remote(from) || io::is_remote(to))
      copy_object(source, target);
    else if (copy)
      fs::copy_file(source, target);
    else
      fs::create_symlink(fs::canonical(source), target);
  }
}

/// As the tokenizer's own settings have it.
std::string tokenizer_class(const std::string& folder, std::string_view usual) {
  const std::string path = io::join_path(folder, "tokenizer_config.json");
  if (!io::file_exists(path)) return std::string(usual);
  const Json settings =
      parse_json(io::read_file(path, io::kMostModelJson), fmt::format("'{}'", path));
  return get_string(settings, "tokenizer_class").value_or(std::string(usual));
}

}  // namespace

PipelineParts find_parts(const models::ModelFacts& facts, const models::NetworkConfig& config,
                         const ExportOptions& options) {
  PipelineParts parts;
  parts.why_not = why_not(facts, config, options);
  if (!parts.why_not.empty()) return parts;
  const models::GivenFramesBy given = models::given_by(config);
  const bool continues = given == models::GivenFramesBy::mark ||
                         given == models::GivenFramesBy::mask_and_latent;
  parts.type = pipeline_of(config).classes[continues ? 1 : 0];
  models::TokenizerConfig tokenizer = *facts.tokenizer;
  parts.vae = place_of(tokenizer.path, options.tokenizer, "tokenizer", "--tokenizer");
  tokenizer.path = parts.vae;
  models::inspect_tokenizer(tokenizer);  // refuses another one
  if (!facts.scale) fail_usage("the run does not say the scale of its latents");
  const text::EncoderConfig& text = *facts.text_encoder;
  const std::string path =
      place_of(text.path, options.text_encoder, "text encoder", "--text-encoder");
  if (const std::string found = models::text_encoder_hash(path);
      !text.hash.empty() && found != text.hash)
    fail_usage("'{}' is not the text encoder that the run was trained with", path);
  const models::TextFolders folders = models::text_encoder_folders(path);
  parts.text_model = folders.model;
  parts.tokenizer = folders.tokenizer;
  for (const std::string& part : {parts.vae, parts.text_model})
    if (models::is_weight_file(part))
      fail_usage("'{}' is one file: a pipeline is made of folders, as diffusers writes them", part);
  return parts;
}

void write_parts(const PipelineParts& parts, const models::ModelFacts& facts,
                 const models::NetworkConfig& config, const std::string& folder, bool copy) {
  write_vae(parts.vae, facts, config.max_size[0], io::join_path(folder, "vae"));
  const models::PipelineForm& pipeline = pipeline_of(config);
  const Json scheduler = models::hf_scheduler(facts.sampling, pipeline);
  write_json(io::join_path(folder, "scheduler"), "scheduler_config.json", scheduler);
  take_files(parts.text_model, io::join_path(folder, "text_encoder"), copy, true);
  take_files(parts.tokenizer, io::join_path(folder, "tokenizer"), copy, false);
  const models::HfComponent text(parts.text_model);
  text.need_type({pipeline.text_encoders.begin(), pipeline.text_encoders.end()});
  const auto entry = [](const char* library, std::string_view name) {
    return Json::array({library, name});
  };
  Json index = {{"_class_name", parts.type},
                {"scheduler", entry("diffusers", scheduler["_class_name"].get<std::string>())},
                {"text_encoder",
                 entry("transformers", models::find_text_encoder_family(text.type())->class_name)},
                {"tokenizer",
                 entry("transformers", tokenizer_class(parts.tokenizer, pipeline.text_tokenizer))},
                {"transformer", entry("diffusers", config.architecture->class_name)},
                {"vae", entry("diffusers", facts.tokenizer->name)}};
  for (const std::string_view part : pipeline.left_out)
    index[part] = Json::array({nullptr, nullptr});
  write_json(folder, "model_index.json", sorted(std::move(index)));
}

}  // namespace vfm::train
