// SPDX-License-Identifier: Apache-2.0
#include "models/folder/other_models.h"

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"

namespace vfm::models {
namespace {

constexpr std::string_view kVideo =
    "of video models Cosmos-1.0's are, as diffusers and NVIDIA publish them, and what vfm-train "
    "makes";
constexpr std::string_view kWords =
    "captions come from Qwen2.5-VL, SmolVLM2 and Idefics3, and Qwen2 and Qwen2.5 rewrite them";
constexpr std::string_view kPictures =
    "its code comes with its weights and is in no library, so results could not be compared; of "
    "encoders CLIP, SigLIP, SigLIP 2 and DINOv2 are";

/// A family, and how the names of its classes begin: pipelines, networks, tokenizers, what its
/// authors' own folders have, and model types of transformers. Of two that fit the longer one
/// counts. `instead` is what is supported.
struct Family {
  std::string_view beginning, name, instead = kVideo;
};

constexpr Family kFamilies[] = {
    {"Cosmos2", "Cosmos-Predict2"},
    {"Cosmos2_5_Predict", "Cosmos-Predict2.5"},
    {"Cosmos2_5_Transfer", "Cosmos-Transfer2.5"},
    {"CosmosControlNet", "Cosmos-Transfer2.5"},
    {"Cosmos3", "Cosmos 3"},
    {"Wan", "Wan"},
    {"AutoencoderKLWan", "Wan"},
    {"SkyReelsV2", "SkyReels-V2, a Wan"},
    {"ChronoEdit", "ChronoEdit, a Wan"},
    {"LucyEdit", "Lucy Edit, a Wan"},
    {"AnyFlow", "AnyFlow, a Wan"},
    {"HunyuanVideo", "HunyuanVideo"},
    {"HunyuanSkyreels", "SkyReels-V1, a HunyuanVideo"},
    {"HunyuanVideo15", "HunyuanVideo-1.5"},
    {"HunyuanImage", "HunyuanImage"},
    {"HunyuanDiT", "Hunyuan-DiT"},
    {"AutoencoderKLHunyuanVideo", "HunyuanVideo"},
    {"AutoencoderKLHunyuanVideo15", "HunyuanVideo-1.5"},
    {"AutoencoderKLHunyuanImage", "HunyuanImage"},
    {"LTX", "LTX-Video"},
    {"LTX2", "LTX-2"},
    {"LTX25", "LTX-2.5"},
    {"AutoencoderKLLTXVideo", "LTX-Video"},
    {"AutoencoderKLLTX2", "LTX-2"},
    {"Mochi", "Mochi"},
    {"AutoencoderKLMochi", "Mochi"},
    {"CogVideoX", "CogVideoX"},
    {"ConsisID", "ConsisID, a CogVideoX"},
    {"AutoencoderKLCogVideoX", "CogVideoX"},
    {"Allegro", "Allegro"},
    {"AutoencoderKLAllegro", "Allegro"},
    {"EasyAnimate", "EasyAnimate"},
    {"AutoencoderKLMagvit", "EasyAnimate"},
    {"Helios", "Helios"},
    {"Kandinsky", "Kandinsky"},
    {"AutoencoderKLKVAE", "Kandinsky"},
    {"Latte", "Latte"},
    {"MiniMaxH3", "MiniMax-H3"},
    {"AutoencoderKLMiniMaxH3", "MiniMax-H3"},
    {"MotifVideo", "Motif-Video"},
    {"SanaVideo", "SANA-Video"},
    {"SanaImageToVideo", "SANA-Video"},
    {"StableVideoDiffusion", "Stable Video Diffusion"},
    {"UNetSpatioTemporal", "Stable Video Diffusion"},
    {"AutoencoderKLTemporalDecoder", "Stable Video Diffusion"},
    {"AutoencoderVidTok", "VidTok"},
    {"AnimateDiff", "AnimateDiff"},
    {"TextToVideo", "ModelScope's text to video"},
    {"QwenImage", "Qwen-Image"},
    {"AutoencoderKLQwenImage", "Qwen-Image"},
    {"Flux", "FLUX"},
    {"StableDiffusion", "Stable Diffusion"},
    {"cosmos-embed1", "Cosmos-Embed1", kPictures},
    {"CosmosEmbed1", "Cosmos-Embed1", kPictures},
    {"qwen2_vl", "Qwen2-VL", kWords},
    {"qwen3_vl", "Qwen3-VL", kWords},
    {"llava", "LLaVA", kWords},
    {"internvl", "InternVL", kWords},
};

constexpr const char* kPipelineIndex = "model_index.json";
constexpr const char* kModelConfig = "config.json";

[[noreturn]] void refuse(const std::string& what, std::string_view name, const std::string& sign,
                         std::string_view instead = kVideo) {
  fail_usage("'{}' is of {} ({}), which is not supported: {}", what, name, sign, instead);
}

/// Null where there is none that can be read.
Json object_in(const std::string& folder, const char* name) {
  const std::string path = io::join_path(folder, name);
  if (!io::file_exists(path)) return {};
  try {
    return parse_json(io::read_file(path, io::kMostModelJson), path);
  } catch (const Error&) {
    return {};
  }
}

/// What diffusers and transformers call the class.
std::vector<std::string> classes_in(const Json& config) {
  std::vector<std::string> names;
  if (!config.is_object()) return names;
  const auto add = [&](const Json& name) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  };
  for (const char* key : {"_class_name", "model_type"})
    if (const auto found = config.find(key); found != config.end()) add(*found);
  if (const auto found = config.find("architectures"); found != config.end() && found->is_array())
    for (const Json& name : *found)
      add(name);
  return names;
}

const Family* family_of(std::string_view name) {
  const Family* best = nullptr;
  for (const Family& family : kFamilies)
    if (name.starts_with(family.beginning) &&
        (!best || family.beginning.size() > best->beginning.size()))
      best = &family;
  return best;
}

void refuse_classes(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (const Family* family = family_of(name)) refuse(folder, family->name, name, family->instead);
}

/// Whether a network without learned positions has those of one of the Cosmos-Predict2, which no
/// Cosmos-1.0 has.
bool has_positions_of_predict2(const Json& config) {
  const auto learned = config.find("extra_pos_embed_type");
  const auto scale = config.find("rope_scale");
  if (learned == config.end() || !learned->is_null() || scale == config.end()) return false;
  constexpr std::array<double, 3> kTheirs[] = {{1, 4, 4}, {1, 3, 3}, {20. / 24, 2, 2}};
  for (const std::array<double, 3>& theirs : kTheirs) {
    bool same = scale->is_array() && scale->size() == theirs.size();
    for (std::size_t i = 0; same && i < theirs.size(); ++i)
      same = (*scale)[i].is_number() && std::abs((*scale)[i].get<double>() - theirs[i]) < 1e-3;
    if (same) return true;
  }
  return false;
}

/// Cosmos-1.0 and those after it have one class.
void refuse_later_cosmos(const std::string& folder, const Json& config) {
  const auto has = [&](const char* name, const Json& not_this) {
    const auto found = config.find(name);
    return found != config.end() && !found->is_null() && *found != not_this;
  };
  if (has("controlnet_block_every_n", nullptr))
    refuse(folder, "Cosmos-Transfer2.5", "'controlnet_block_every_n'");
  if (has("use_crossattn_projection", false))
    refuse(folder, "Cosmos-Predict2.5", "'use_crossattn_projection'");
  if (has_positions_of_predict2(config))
    refuse(folder, "Cosmos-Predict2",
           fmt::format("'extra_pos_embed_type' null and 'rope_scale' {}",
                       dump_json(config["rope_scale"])));
}

/// "org/name", where there is no folder org.
bool looks_like_hub_name(const std::string& path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == path.size() ||
      path.find('/', slash + 1) != std::string::npos || path.front() == '.' || path.front() == '~')
    return false;
  return !io::file_exists(path.substr(0, slash));
}

}  // namespace

void need_model_folder(const std::string& path, std::string_view what) {
  if (io::file_exists(path)) return;
  if (looks_like_hub_name(path))
    fail_usage(
        "no such {}: '{}'; if that is a name on a hub: nothing is downloaded here, so download it "
        "yourself (hf download {} --local-dir DIR) and give DIR",
        what, path, path);
  fail_usage("no such {}: '{}'", what, path);
}

void refuse_other_models(const std::string& folder) {
  for (const char* name : {kPipelineIndex, kModelConfig})
    refuse_classes(folder, classes_in(object_in(folder, name)));
}

void refuse_part_of_other(const std::string& folder) {
  const std::string above = io::join_path(folder, "..");
  // A network that was trained here may have positions of any kind.
  if (io::file_exists(io::join_path(folder, kExportMark)) ||
      io::file_exists(io::join_path(above, kExportMark)))
    return;
  refuse_classes(folder, classes_in(object_in(above, kPipelineIndex)));
  const Json config = object_in(folder, kModelConfig);
  if (classes_in(config) == std::vector<std::string>{"CosmosTransformer3DModel"})
    refuse_later_cosmos(folder, config);
}

void refuse_other_tensors(const io::TensorSet& tensors) {
  for (const io::TensorView& tensor : tensors.tensors())
    if (tensor.name.find("blocks.0.adaln_modulation_self_attn.") != std::string::npos)
      refuse(tensors.path(), "Cosmos-Predict2", "its tensors have '" + tensor.name + "'");
}

}  // namespace vfm::models
