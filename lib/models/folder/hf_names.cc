// SPDX-License-Identifier: Apache-2.0
#include "models/folder/hf_names.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/json.h"
#include "models/dit/architecture.h"
#include "models/wan_vae/names.h"

namespace vfm::models {
namespace {

// Applied in this order, wherever they occur.
constexpr Renaming kTokenizer[] = {
    {".mid.block_1.", ".mid_block.resnets.0."},
    {".mid.block_2.", ".mid_block.resnets.1."},
    {".mid.attn_1.0.", ".mid_block.attentions.0."},
    {".mid.attn_1.1.", ".mid_block.temp_attentions.0."},
    {".block.", ".resnets."},
    {".downsample.", ".downsamplers.0."},
    {".upsample.", ".upsamplers.0."},
    {".q.conv3d.", ".to_q."},
    {".k.conv3d.", ".to_k."},
    {".v.conv3d.", ".to_v."},
    {".proj_out.conv3d.", ".to_out.0."},
    {".0.conv3d.", ".conv_s."},
    {".1.conv3d.", ".conv_t."},
    {".nin_shortcut.conv3d.", ".conv_shortcut."},
    {"conv1.conv3d.", "conv1."},
    {"conv2.conv3d.", "conv2."},
    {"conv3.conv3d.", "conv3."},
    {"quant_conv.conv3d.", "quant_conv."},
    {"encoder.down.", "encoder.down_blocks."},
    {"decoder.up.", "decoder.up_blocks."},
};
constexpr TensorForm kTokenizerForm = {.sign = ".conv3d.", .renamings = kTokenizer};

// umT5 as Wan's authors have it. Its last norm has a name that is the end of others.
constexpr Renaming kAuthorsText[] = {
    {"token_embedding.", "shared."},
    {"blocks.", "encoder.block."},
    {".norm1.", ".layer.0.layer_norm."},
    {".norm2.", ".layer.1.layer_norm."},
    {".attn.", ".layer.0.SelfAttention."},
    {".pos_embedding.embedding.", ".layer.0.SelfAttention.relative_attention_bias."},
    {".ffn.gate.0.", ".layer.1.DenseReluDense.wi_0."},
    {".ffn.fc1.", ".layer.1.DenseReluDense.wi_1."},
    {".ffn.fc2.", ".layer.1.DenseReluDense.wo."},
};
constexpr const char* kAuthorsLastNorm = "norm.weight";

// The names of llama.cpp.
constexpr Renaming kGgufText[] = {
    {"token_embd.", "shared."},
    {"enc.output_norm.", "encoder.final_layer_norm."},
    {"enc.blk.", "encoder.block."},
    {".attn_norm.", ".layer.0.layer_norm."},
    {".ffn_norm.", ".layer.1.layer_norm."},
    {".attn_q.", ".layer.0.SelfAttention.q."},
    {".attn_k.", ".layer.0.SelfAttention.k."},
    {".attn_v.", ".layer.0.SelfAttention.v."},
    {".attn_o.", ".layer.0.SelfAttention.o."},
    {".attn_rel_b.", ".layer.0.SelfAttention.relative_attention_bias."},
    {".ffn_gate.", ".layer.1.DenseReluDense.wi_0."},
    {".ffn_up.", ".layer.1.DenseReluDense.wi_1."},
    {".ffn_down.", ".layer.1.DenseReluDense.wo."},
};
constexpr TensorForm kTextForms[] = {{.sign = ".pos_embedding.", .renamings = kAuthorsText},
                                     {.sign = "enc.blk.", .renamings = kGgufText}};

// Buffers and counters that training leaves in a state dict.
constexpr std::array<std::string_view, 7> kNoWeights = {"_extra_state",     "accum_",    "logvar.",
                                                        "pos_embedder.seq", ".wavelets", "._arange",
                                                        "patch_size_buffer"};

// Up-sampling levels are counted from the finest by NVIDIA, from the coarsest by diffusers.
void turn_levels(std::string& name, std::int64_t levels) {
  constexpr std::string_view kUp = "decoder.up_blocks.";
  if (!name.starts_with(kUp)) return;
  const char digit = kUp.size() < name.size() ? name[kUp.size()] : ' ';
  if (digit >= '0' && digit - '0' < levels)
    name[kUp.size()] = static_cast<char>('0' + levels - 1 - (digit - '0'));
}

// A prefix that all weights share is a wrapper's, not the model's.
void drop_wrappers(std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 6> kWrappers = {
      "module.", "_orig_mod.", "model.", "net.", "transformer.", "diffusion_model."};
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view wrapper : kWrappers) {
      bool some = false, all = true;
      for (const std::string& name : names) {
        some = some || !name.empty();
        all = all && (name.empty() || name.starts_with(wrapper));
      }
      if (!some || !all) continue;
      for (std::string& name : names)
        name.erase(0, wrapper.size());
      again = true;
    }
  }
}

bool is_weight(std::string_view name) {
  return std::ranges::none_of(
      kNoWeights, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

void rename_tokenizer(std::vector<std::string>& names, const Json& config) {
  if (!form_of({&kTokenizerForm, 1}, names)) return;
  const auto channels = config.find("decode_block_out_channels");
  const std::int64_t levels = channels != config.end() && channels->is_array()
                                  ? static_cast<std::int64_t>(channels->size()) - 1
                                  : 3;
  for (std::string& name : names) {
    name = name_here(kTokenizerForm, std::move(name));
    turn_levels(name, levels);
  }
}

void rename_text(std::vector<std::string>& names) {
  if (const TensorForm* const form = form_of(kTextForms, names))
    for (std::string& name : names)
      name = name == kAuthorsLastNorm ? "encoder.final_layer_norm.weight"
                                      : name_here(*form, std::move(name));
  const bool shared = std::ranges::find(names, "shared.weight") != names.end();
  for (std::string& name : names) {
    if (name == "encoder.embed_tokens.weight") name = shared ? "" : "shared.weight";
    if (name.starts_with("decoder.") || name == "lm_head.weight" || name == kInnerTokenizer)
      name.clear();
  }
}

}  // namespace

std::vector<std::string> names_today(std::string_view type, const Json& config,
                                     const std::vector<std::string>& names) {
  std::vector<std::string> today = names;
  for (std::string& name : today)
    if (!is_weight(name)) name.clear();
  drop_wrappers(today);
  if (const Architecture* const architecture = architecture_of_class(type);
      architecture && architecture->foreign)
    if (const TensorForm* const form = form_of(architecture->foreign->tensors, today))
      for (std::string& name : today)
        name = name_here(*form, std::move(name));
  if (type == "AutoencoderKLCosmos" || type == "CausalDiscreteVideoTokenizer")
    rename_tokenizer(today, config);
  if (type == kWanVaeClass) rename_wan_vae(today);
  if (type == "t5" || type == "umt5") rename_text(today);
  return today;
}

std::string name_in_file(std::string_view type, const std::vector<std::string>& names,
                         const std::string& name) {
  std::span<const TensorForm> forms;
  if (const Architecture* const architecture = architecture_of_class(type);
      architecture && architecture->foreign)
    forms = architecture->foreign->tensors;
  else if (type == "t5" || type == "umt5")
    forms = kTextForms;
  const TensorForm* const form = form_of(forms, names);
  return form ? name_there(*form, name).substr(form->prefix.size()) : name;
}

}  // namespace vfm::models
