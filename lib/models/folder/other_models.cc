// SPDX-License-Identifier: Apache-2.0
#include "models/folder/other_models.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/listed.h"
#include "io/file.h"
#include "io/folder.h"
#include "models/dit/architecture.h"
#include "models/dit/network_json.h"
#include "models/folder/hf_folder.h"

namespace vfm::models {
namespace {

constexpr std::string_view kWords =
    "captions come from Qwen2.5-VL, SmolVLM2 and Idefics3, and Qwen2 and Qwen2.5 rewrite them";
constexpr std::string_view kPictures =
    "its code comes with its weights and is in no library, so results could not be compared; of "
    "encoders CLIP, SigLIP, SigLIP 2, DINOv2 and V-JEPA 2 are";

/// A family, and how the names of its classes begin: pipelines, networks, tokenizers, what its
/// authors' own folders have, and model types of transformers. Of two that fit the longer one
/// counts. A class that an architecture lists is supported, whatever is here. `instead` is what is
/// supported; empty: video models.
struct Family {
  std::string_view beginning, name, instead = {};
};

constexpr Family kFamilies[] = {
    {"Cosmos2", "Cosmos-Predict2"},
    {"Cosmos2_5_Predict", "Cosmos-Predict2.5"},
    {"Cosmos2_5_Transfer", "Cosmos-Transfer2.5"},
    {"CosmosControlNet", "Cosmos-Transfer2.5"},
    {"Cosmos3", "Cosmos 3"},
    {"WanAnimate", "Wan 2.2 Animate"},
    {"WanVACE", "Wan VACE"},
    {"VaceWan", "Wan VACE"},
    {"WanModel_S2V", "Wan 2.2 S2V"},
    {"WanSpeechToVideo", "Wan 2.2 S2V"},
    {"CausalWan", "a causal Wan"},
    {"SkyReelsV2", "SkyReels-V2, a Wan"},
    {"ChronoEdit", "ChronoEdit, a Wan"},
    {"LucyEdit", "Lucy Edit, a Wan"},
    {"AnyFlow", "AnyFlow, a Wan"},
    {"Krea", "Krea"},
    {"HunyuanVideo", "HunyuanVideo"},
    {"HunyuanVideoFramepack", "FramePack, a HunyuanVideo"},
    {"HYVideo", "HunyuanVideo"},
    {"HunyuanSkyreels", "SkyReels-V1, a HunyuanVideo"},
    {"HunyuanVideo15", "HunyuanVideo-1.5"},
    {"HunyuanVideo_1_5", "HunyuanVideo-1.5"},
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
    {"Kandinsky5", "Kandinsky 5"},
    {"Kandinsky6", "Kandinsky 6"},
    {"AutoencoderKLKVAE", "Kandinsky"},
    {"Latte", "Latte"},
    {"MiniMaxH3", "MiniMax-H3"},
    {"AutoencoderKLMiniMaxH3", "MiniMax-H3"},
    {"MotifVideo", "Motif-Video"},
    {"STDiT", "Open-Sora"},
    {"OpenSora", "Open-Sora"},
    {"StepVideo", "Step-Video"},
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
    {"SD3Transformer", "Stable Diffusion"},
    {"StableDiffusion", "Stable Diffusion"},
    {"cosmos-embed1", "Cosmos-Embed1", kPictures},
    {"CosmosEmbed1", "Cosmos-Embed1", kPictures},
    {"qwen2_vl", "Qwen2-VL", kWords},
    {"qwen3_vl", "Qwen3-VL", kWords},
    {"llava", "LLaVA", kWords},
    {"internvl", "InternVL", kWords},
};

/// Parts of tensors' names of models without a configuration that tells them apart. Of two that fit
/// the first one counts: several relatives of Wan have the image embedding of the last one.
constexpr std::pair<std::string_view, std::string_view> kTensorSigns[] = {
    {"blocks.0.adaln_modulation_self_attn.", "Cosmos-Predict2"},
    {"vace_patch_embedding.", "Wan VACE"},
    {"pose_patch_embedding.", "Wan 2.2 Animate"},
    {"casual_audio_encoder.", "Wan 2.2 S2V"},
    {"control_adapter.conv.", "Wan Fun with a camera"},
    {"ref_conv.", "Wan Fun Control"},
    {"audio_proj.audio_proj_glob_1.", "HuMo, a Wan"},
    {"img_emb.proj.", "Wan 2.1 I2V, whose image encoder is CLIP"},
    {"txt_in.individual_token_refiner.", "HunyuanVideo"},
};

constexpr const char* kPipelineIndex = "model_index.json";
constexpr const char* kModelConfig = "config.json";

/// What of video models is supported.
std::string video_models() {
  std::vector<std::string_view> names;
  for (const Architecture* one : architectures())
    if (one->foreign && one->foreign->pipeline) names.push_back(one->foreign->pipeline->models);
  return fmt::format(
      "of video models {} are, as diffusers and their authors publish them, and what vfm-train "
      "makes",
      listed(names, " and "));
}

[[noreturn]] void refuse(const std::string& what, std::string_view name, std::string_view sign,
                         std::string_view instead = {}) {
  fail_usage("'{}' is of {} ({}), which is not supported: {}", what, name, sign,
             instead.empty() ? video_models() : std::string(instead));
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
  for (const std::string& name : names) {
    if (architecture_of_class(name) || architecture_of_pipeline(name)) continue;
    if (const Family* family = family_of(name)) refuse(folder, family->name, name, family->instead);
  }
}

/// Models that are not supported may have the class of an architecture.
void refuse_others_of_class(const std::string& folder, const Architecture& architecture,
                            const Json& config) {
  if (architecture.foreign == nullptr) return;
  for (const ForeignField& field : architecture.foreign->fields)
    if (const std::string sign = other_value(field, config); !sign.empty())
      refuse(folder, field.otherwise, sign);
  if (architecture.foreign->other == nullptr) return;
  OtherModel other;
  try {
    other = architecture.foreign->other(network_config_from_json(config));
  } catch (const Error&) {
    return;  // whoever reads the configuration says so
  }
  if (!other.name.empty()) refuse(folder, other.name, other.sign);
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
  if (io::path_exists(path)) return;
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
  const std::string above = folder_above(folder);
  // A network that was trained here may have positions of any kind.
  if (io::file_exists(io::join_path(folder, kExportMark)) ||
      io::file_exists(io::join_path(above, kExportMark)))
    return;
  refuse_classes(folder, classes_in(object_in(above, kPipelineIndex)));
  const Json config = object_in(folder, kModelConfig);
  if (const std::vector<std::string> classes = classes_in(config); classes.size() == 1)
    if (const Architecture* const found = architecture_of_class(classes[0]))
      refuse_others_of_class(folder, *found, config);
}

void refuse_other_tensors(const io::TensorSet& tensors) {
  for (const auto& [part, name] : kTensorSigns)
    for (const io::TensorView& tensor : tensors.tensors())
      if (tensor.name.find(part) != std::string::npos)
        refuse(tensors.path(), name, "its tensors have '" + tensor.name + "'");
}

}  // namespace vfm::models
