// What diffusers, Wan's authors and ComfyUI know of Wan's transformer. Sources: diffusers
// transformer_wan.py, scripts/convert_wan_to_diffusers.py; Wan-Video/Wan2.1 and Wan2.2,
// wan/modules/model.py and wan/configs.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "models/dit/architecture.h"
#include "models/wan/wan.h"

namespace vfm::models {
namespace {

// The fields of the authors' config.json.
void visit_authors(NetworkConfig& c, ConfigFields& fields) {
  WanFields& own = c.own<WanFields>();
  int width = c.width();
  fields.integer("dim", width, 2, 1 << 17);
  fields.integer("num_heads", c.num_attention_heads, 1, 1024);
  fields.integer("num_layers", c.num_layers, 1, 1024);
  fields.integer("ffn_dim", own.ffn_dim, 1, 1048576);
  fields.integer("freq_dim", own.freq_dim, 2, 65536);
  fields.integer("text_dim", c.text_embed_dim, 0, 65536);
  fields.integer("in_dim", c.in_channels, 0, 4096);
  fields.integer("out_dim", c.out_channels, 0, 4096);
  if (c.num_attention_heads < 1 || width % c.num_attention_heads != 0)
    fail_usage("model configuration: a 'dim' of {} is not made of {} heads", width,
               c.num_attention_heads);
  c.attention_head_dim = width / c.num_attention_heads;
}

constexpr ForeignClass kWanClasses[] = {{"WanModel", visit_authors}};

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

// Values that are not in the tensors are those of all published models.
NetworkConfig published_wan(const TensorSizes& sizes) {
  constexpr int kHeadDim = 128, kLongestSide = 64;  // of a patch
  const std::string block = "transformer_blocks.0.", patch = "patch_embed.proj.weight";
  const int width = sizes.size(patch, 0);
  if (width % kHeadDim != 0)
    sizes.refuse(vfm::format("a width of {} is not made of heads of {}", width, kHeadDim));
  NetworkConfig c = default_config(kWan);
  c.in_channels = sizes.size(patch, 1);
  std::int64_t values = 1;  // of a channel in a patch
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const int side = c.patch_size[axis] = sizes.size(patch, axis + 2);
    if (side > kLongestSide)
      sizes.refuse(vfm::format("a patch has a side of {}: at most {} can be", side, kLongestSide));
    values *= side;
  }
  const std::int64_t out = sizes.size("proj_out.weight", 0);
  if (out % values != 0)
    sizes.refuse(vfm::format("an output of {} values is not made of patches of {}x{}x{}", out,
                             c.patch_size[0], c.patch_size[1], c.patch_size[2]));
  c.out_channels = static_cast<int>(out / values);
  c.num_attention_heads = width / kHeadDim;
  c.attention_head_dim = kHeadDim;
  c.num_layers = sizes.count("transformer_blocks.", ".attn1.norm_q.weight");
  c.text_embed_dim = sizes.size("condition_embedder.text_embedder.linear_1.weight", 1);
  WanFields& own = c.own<WanFields>();
  own.freq_dim = sizes.size("condition_embedder.time_embedder.linear_1.weight", 1);
  own.ffn_dim = sizes.size(block + "ffn.net.0.proj.weight", 0);
  return c;
}

constexpr std::string_view kWanVaes[] = {"AutoencoderKLWan"};
constexpr std::string_view kWanTexts[] = {"umt5"};
constexpr std::string_view kWanSchedulers[] = {
    "UniPCMultistepScheduler", "FlowMatchEulerDiscreteScheduler", "DPMSolverMultistepScheduler"};
constexpr std::string_view kWanLeftOut[] = {"transformer_2"};

const PipelineForm& form_of_wan(const PipelineModel& model);

// Sizes and sampling are those of the authors' own programs. Guidance here is theirs less 1.
// diffusers has 50 steps of guidance 5 for all. Its shift is that with which its conversion of
// published models writes their schedulers.
constexpr PipelineForm wan_form(int steps, double guidance, double shift,
                                std::optional<std::array<double, 2>> of_two = {}) {
  return {
      .models = "Wan's",
      .classes = {"WanPipeline", "WanImageToVideoPipeline"},
      .vaes = kWanVaes,
      .text_encoders = kWanTexts,
      .schedulers = kWanSchedulers,
      .left_out = kWanLeftOut,
      .text_tokenizer = "T5TokenizerFast",
      .clean_texts = true,
      .frames = 81,
      .height = 480,
      .width = 832,
      .fps = 16,
      .text_tokens = 512,
      .steps = steps,
      .guidance = guidance,
      .guidance_of_two = of_two,
      .shift = shift,
      .in_diffusers = InDiffusers{.steps = 50, .guidance = 4, .shift = 3},
      .of_model = form_of_wan,
  };
}

// The 5B of 2.2 makes larger videos.
constexpr PipelineForm larger_wan(PipelineForm form) {
  form.frames = 121;
  form.height = 704;
  form.width = 1280;
  form.fps = 24;
  form.in_diffusers->shift = 5;
  return form;
}

constexpr PipelineForm kWanT2v = wan_form(50, 4, 5), kWanT2vSmall = wan_form(50, 5, 8),
                       kWanT2vExperts = wan_form(40, 3, 12, {{3, 2}}),
                       kWanI2vExperts = wan_form(40, 2.5, 5, {{2.5, 2.5}}),
                       kWanTi2v = larger_wan(wan_form(50, 4, 5));

const PipelineForm& form_of_wan(const PipelineModel& model) {
  constexpr int kSmallWidth = 1536;  // of the 1.3B
  if (model.clean_time) return kWanTi2v;
  if (given_by(model.network) == GivenFramesBy::mask_and_latent) return kWanI2vExperts;
  if (model.experts) return kWanT2vExperts;
  return model.network.width() <= kSmallWidth ? kWanT2vSmall : kWanT2v;
}

}  // namespace

constinit const ForeignNetwork kWanInDiffusers = {
    .classes = kWanClasses,
    .fields = kWanFields,
    .tensors = kWanForms,
    .written = &kWanForms[1],
    .other = other_wan,
    .published = published_wan,
    .pipeline = &kWanT2v,
};

}  // namespace vfm::models
