// What diffusers and NVIDIA know of Cosmos-1.0's diffusion transformer. Its names and fields here
// are those of diffusers. Sources: diffusers transformer_cosmos.py, pipeline_cosmos_text2world.py,
// pipeline_cosmos_video2world.py, scripts/convert_cosmos_to_diffusers.py; NVIDIA's cosmos-predict1,
// config/inference.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "base/format.h"
#include "models/dit/dit.h"
#include "models/dit/foreign.h"

namespace vfm::models {
namespace {

constexpr ForeignField kCosmosFields[] = {
    {"use_crossattn_projection", "false", "Cosmos-Predict2.5"},
    {"crossattn_proj_in_channels", "1024"},
    {"encoder_hidden_states_channels", "1024"},
    {"controlnet_block_every_n", "null", "Cosmos-Transfer2.5"},
    {"img_context_dim_in", "null", "Cosmos-Transfer2.5"},
    {"img_context_num_tokens", "256"},
    {"img_context_dim_out", "2048"},
};

constexpr Renaming kNvidiaNames[] = {
    {"t_embedder.1.", "time_embed.t_embedder."},
    {"affline_norm.", "time_embed.norm."},  // sic
    {".blocks.0.block.attn.", ".attn1."},
    {".blocks.1.block.attn.", ".attn2."},
    {".blocks.2.block.", ".ff."},
    {".blocks.0.adaLN_modulation.", ".norm1.linear_"},
    {".blocks.1.adaLN_modulation.", ".norm2.linear_"},
    {".blocks.2.adaLN_modulation.", ".norm3.linear_"},
    {".to_q.0.", ".to_q."},
    {".to_q.1.", ".norm_q."},
    {".to_k.0.", ".to_k."},
    {".to_k.1.", ".norm_k."},
    {".to_v.0.", ".to_v."},
    {".layer1.", ".net.0.proj."},
    {".layer2.", ".net.2."},
    {"x_embedder.proj.1.", "patch_embed.proj."},
    {"extra_pos_embedder.", "learnable_pos_embed."},
    {"final_layer.adaLN_modulation.", "norm_out.linear_"},
    {"final_layer.linear.", "proj_out."},
    {"blocks.block", "transformer_blocks."},
};

constexpr TensorForm kCosmosForms[] = {{.sign = "blocks.block", .renamings = kNvidiaNames}};

std::string why_not_in_diffusers(const NetworkConfig& c) {
  return c.own<DitFields>().adaln_lora_dim > 0
             ? ""
             : "diffusers' class cannot be made without an 'adaln_lora_dim' (model.adaln: full)";
}

// No Cosmos-1.0 is without learned positions and has these scales.
OtherModel predict2(const NetworkConfig& c) {
  constexpr std::array<double, 3> kTheirs[] = {{1, 4, 4}, {1, 3, 3}, {20. / 24, 2, 2}};
  const DitFields& own = c.own<DitFields>();
  const std::array<double, 3>& scale = own.rope_scale;
  for (const std::array<double, 3>& theirs : kTheirs) {
    bool same = !own.learnable_positions;
    for (std::size_t i = 0; i < 3; ++i)
      same = same && std::abs(scale[i] - theirs[i]) < 1e-3;
    if (same)
      return {"Cosmos-Predict2",
              vfm::format("'extra_pos_embed_type' null and 'rope_scale' {}, {}, {}", scale[0],
                          scale[1], scale[2])};
  }
  return {};
}

// Values that are not in the tensors are those of the published models.
NetworkConfig published_dit(const TensorSizes& sizes) {
  const std::string block = "transformer_blocks.0.";
  const int patch = 1 * 2 * 2, width = sizes.size("patch_embed.proj.weight", 0);
  const int head = sizes.size(block + "attn1.norm_q.weight", 0);
  const int channels = sizes.size("patch_embed.proj.weight", 1) / patch;
  if (width % head != 0)
    sizes.refuse(vfm::format("a width of {} is not made of heads of {}", width, head));
  if (channels < 2) sizes.refuse(vfm::format("{} channels go in", channels));
  NetworkConfig config;
  config.in_channels = channels - 1;  // the padding mask is one more
  config.out_channels = sizes.size("proj_out.weight", 0) / patch;
  config.num_attention_heads = width / head;
  config.attention_head_dim = head;
  config.num_layers = sizes.count("transformer_blocks.", ".attn1.norm_q.weight");
  config.mlp_ratio = static_cast<double>(sizes.size(block + "ff.net.0.proj.weight", 0)) / width;
  config.text_embed_dim = sizes.size(block + "attn2.to_k.weight", 1);
  DitFields& own = config.own<DitFields>();
  own.adaln_lora_dim = sizes.size(block + "norm1.linear_1.weight", 0);
  if (width == 5120) own.rope_scale = {2.0, 2.0, 2.0};
  const std::string tables = "learnable_pos_embed.pos_emb_";
  own.learnable_positions = sizes.has(tables + "t");
  if (own.learnable_positions)
    config.max_size = {sizes.size(tables + "t", 0), 2 * sizes.size(tables + "h", 0),
                       2 * sizes.size(tables + "w", 0)};
  return config;
}

constexpr std::string_view kCosmosVaes[] = {"AutoencoderKLCosmos"};
constexpr std::string_view kCosmosTexts[] = {"t5", "umt5"};
constexpr std::string_view kCosmosSchedulers[] = {"EDMEulerScheduler",
                                                  "FlowMatchEulerDiscreteScheduler"};
constexpr std::string_view kCosmosLeftOut[] = {"safety_checker"};
constexpr int kCosmosConditions[] = {0, 1, 2};

constexpr PipelineForm kCosmosPipeline = {
    .models = "Cosmos-1.0's",
    .classes = {"CosmosTextToWorldPipeline", "CosmosVideoToWorldPipeline"},
    .vaes = kCosmosVaes,
    .text_encoders = kCosmosTexts,
    .schedulers = kCosmosSchedulers,
    .left_out = kCosmosLeftOut,
    .text_tokenizer = "T5TokenizerFast",
    .rounds_level = true,
    .no_guidance = 1,
    .frames = 121,
    .height = 704,
    .width = 1280,
    .fps = 30,
    .text_tokens = 512,
    .steps = 36,
    .guidance = 7,
    .sigma_min = 0.002,
    .sigma_max = 80,
    .condition_frames = kCosmosConditions,
};

}  // namespace

constinit const ForeignNetwork kCosmosInDiffusers = {
    .fields = kCosmosFields,
    .tensors = kCosmosForms,
    .why_not = why_not_in_diffusers,
    .other = predict2,
    .published = published_dit,
    .pipeline = &kCosmosPipeline,
};

}  // namespace vfm::models
