// What diffusers, Wan's authors and ComfyUI know of Wan's transformer. Sources: diffusers
// transformer_wan.py, scripts/convert_wan_to_diffusers.py; Wan-Video/Wan2.1 and Wan2.2,
// wan/modules/model.py and wan/configs.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "models/dit/architecture.h"
#include "models/wan/wan.h"

namespace vfm::models {
namespace {

constexpr ForeignField kWanFields[] = {
    {"pos_embed_seq_len", "null", "Wan 2.1 FLF2V"},
    {"image_dim", "null", "Wan 2.1 I2V"},
    {"added_kv_proj_dim", "null", "Wan 2.1 I2V"},
    {"cross_attn_norm", "true", "a Wan without a norm before cross-attention"},
    {"eps", "1e-06", "a Wan with another epsilon"},
    {"qk_norm", "\"rms_norm_across_heads\""},
    {"rope_max_seq_len", "1024"},
};

// Those of the authors' files, and of ComfyUI's, whose prefix is "model.diffusion_model.".
constexpr Renaming kAuthorsNames[] = {
    {"patch_embedding.", "patch_embed.proj."},
    {"time_embedding.0.", "condition_embedder.time_embedder.linear_1."},
    {"time_embedding.2.", "condition_embedder.time_embedder.linear_2."},
    {"time_projection.1.", "condition_embedder.time_proj."},
    {"text_embedding.0.", "condition_embedder.text_embedder.linear_1."},
    {"text_embedding.2.", "condition_embedder.text_embedder.linear_2."},
    {"head.modulation", "scale_shift_table"},
    {".modulation", ".scale_shift_table"},
    {"head.head.", "proj_out."},
    {".self_attn.", ".attn1."},
    {".cross_attn.", ".attn2."},
    {".q.", ".to_q."},
    {".k.", ".to_k."},
    {".v.", ".to_v."},
    {".o.", ".to_out.0."},
    {".norm3.", ".norm2."},  // the only norm of a block with weights; others have no tensors
    {".ffn.0.", ".ffn.net.0.proj."},
    {".ffn.2.", ".ffn.net.2."},
    {"blocks.", "transformer_blocks."},
};

constexpr Renaming kDiffusersNames[] = {
    {"patch_embedding.", "patch_embed.proj."},
    {"blocks.", "transformer_blocks."},
};

std::vector<std::int64_t> patch_shape_wan(const NetworkConfig& c) {
  return {c.width(), c.in_channels, c.patch_size[0], c.patch_size[1], c.patch_size[2]};
}

constexpr ReshapedTensor kWanReshaped[] = {{"patch_embed.proj.weight", patch_shape_wan}};

constexpr TensorForm kWanForms[] = {
    {.sign = "time_projection.",
     .prefix = "diffusion_model.",
     .renamings = kAuthorsNames,
     .reshaped = kWanReshaped},
    {.sign = "patch_embedding.", .renamings = kDiffusersNames, .reshaped = kWanReshaped},
};

// A mask of 4 channels and a latent go in besides the state, or nothing does.
OtherModel other_wan(const NetworkConfig& c) {
  if (c.in_channels == c.out_channels || given_by(c) == GivenFramesBy::mask_and_latent) return {};
  return {"a Wan with inputs of its own, such as Wan Fun",
          vfm::format("'in_channels' {}, 'out_channels' {}", c.in_channels, c.out_channels)};
}

// Tensors of relatives, under the names that kAuthorsNames gives them. Several relatives have the
// image embedding of the last one.
constexpr std::pair<const char*, const char*> kRelatives[] = {
    {"vace_patch_embed.proj.weight", "Wan VACE"},
    {"pose_patch_embed.proj.weight", "Wan 2.2 Animate"},
    {"casual_audio_encoder.weights", "Wan 2.2 S2V"},
    {"control_adapter.conv.weight", "Wan Fun with a camera"},
    {"ref_conv.weight", "Wan Fun Control"},
    {"audio_proj.audio_proj_glob_1.layer.bias", "HuMo, a Wan"},
    {"img_emb.proj.1.weight", "Wan 2.1 I2V"},
};

// Values that are not in the tensors are those of all published models.
NetworkConfig published_wan(const TensorSizes& sizes) {
  for (const auto& [tensor, name] : kRelatives)
    if (sizes.has(tensor)) sizes.refuse(vfm::format("it is of {}, which is not supported", name));
  constexpr int kHeadDim = 128;
  const std::string block = "transformer_blocks.0.", patch = "patch_embed.proj.weight";
  const int width = sizes.size(patch, 0);
  if (width % kHeadDim != 0)
    sizes.refuse(vfm::format("a width of {} is not made of heads of {}", width, kHeadDim));
  NetworkConfig c = default_config(kWan);
  c.in_channels = sizes.size(patch, 1);
  c.patch_size = {sizes.size(patch, 2), sizes.size(patch, 3), sizes.size(patch, 4)};
  c.out_channels =
      sizes.size("proj_out.weight", 0) / (c.patch_size[0] * c.patch_size[1] * c.patch_size[2]);
  c.num_attention_heads = width / kHeadDim;
  c.attention_head_dim = kHeadDim;
  c.num_layers = sizes.count("transformer_blocks.", ".attn1.norm_q.weight");
  c.text_embed_dim = sizes.size("condition_embedder.text_embedder.linear_1.weight", 1);
  WanFields& own = c.own<WanFields>();
  own.freq_dim = sizes.size("condition_embedder.time_embedder.linear_1.weight", 1);
  own.ffn_dim = sizes.size(block + "ffn.net.0.proj.weight", 0);
  return c;
}

}  // namespace

constinit const ForeignNetwork kWanInDiffusers = {
    .fields = kWanFields,
    .tensors = kWanForms,
    .written = &kWanForms[1],
    .other = other_wan,
    .published = published_wan,
};

}  // namespace vfm::models
