// An architecture that other programs know in ways that no real one has all of: its own names of
// fields, a second class, tensors in stacks, transposed and in other shapes, and a pipeline. It
// computes what kDit computes. Nothing of lib/ knows it: a test adds it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "models/dit/foreign.h"

namespace vfm {

namespace made_up {

using namespace models;

inline void visit_class(NetworkConfig& c, ConfigFields& fields) {
  fields.integer("dim_in", c.in_channels, 0, 4096);
  fields.integer("dim_out", c.out_channels, 0, 4096);
  fields.integer("heads", c.num_attention_heads, 1, 1024);
  fields.integer("head_dim", c.attention_head_dim, 2, 1024);
  fields.integer("depth", c.num_layers, 1, 1024);
  fields.number("ffn", c.mlp_ratio, 0.1, 64);
  fields.integer("text_dim", c.text_embed_dim, 0, 65536);
  fields.sizes("table", c.max_size, 1, 65536);
  fields.sizes("patch", c.patch_size, 1, 64);
  fields.flag("mask", c.concat_padding_mask, true);
  DitFields& own = c.own<DitFields>();
  fields.modulation("adaln", own.adaln, "rank", own.adaln_lora_dim);
  fields.scales("rope", own.rope_scale);
  fields.word("learnable_positions", own.learnable_positions, "positions", "learned");
}

inline void visit_older_class(NetworkConfig& c, ConfigFields& fields) {
  fields.integer("layers", c.num_layers, 1, 1024);
}

inline void set_defaults(NetworkConfig& config) {
  config.num_layers = 3;
  config.num_attention_heads = 2;
  config.attention_head_dim = 12;
}

inline std::vector<std::int64_t> patch_shape(const NetworkConfig& c) {
  return {c.width(), c.in_channels + 1, c.patch_size[0], c.patch_size[1], c.patch_size[2]};
}

inline OtherModel other_model(const NetworkConfig& config) {
  if (config.num_layers == 13) return {"Unlucky", "'depth' 13"};
  return {};
}

inline constexpr Renaming kNames[] = {
    {"stem.", "patch_embed.proj."}, {".self.q.", ".attn1.to_q."}, {".norm1.", ".norm_swap."},
    {".norm3.", ".norm1."},         {".norm_swap.", ".norm3."},   {"layer_", "transformer_blocks."},
};
inline constexpr StackedRows kStacks[] = {
    {".attn2.kv.", {".attn2.to_k.", ".attn2.to_v."}},
};
inline constexpr std::string_view kTransposed[] = {".ff.net.2."};
inline constexpr ReshapedTensor kReshaped[] = {{"patch_embed.proj.", patch_shape}};
inline constexpr TensorForm kForms[] = {{
    .sign = "layer_",
    .prefix = "core.",
    .renamings = kNames,
    .stacks = kStacks,
    .transposed = kTransposed,
    .reshaped = kReshaped,
}};
inline constexpr ForeignClass kClasses[] = {{"OldMadeUpModel", visit_older_class}};
inline constexpr ForeignField kFields[] = {{"gated", "false", "Gated Made-Up"}, {"note", "7"}};
inline constexpr std::string_view kVaes[] = {"AutoencoderKLCosmos"};
inline constexpr std::string_view kTexts[] = {"t5"};
inline constexpr std::string_view kSchedulers[] = {"FlowMatchEulerDiscreteScheduler"};
inline constexpr PipelineForm kPipeline = {
    .models = "Made-Up's",
    .classes = {"MadeUpPipeline", "MadeUpVideoPipeline"},
    .vaes = kVaes,
    .text_encoders = kTexts,
    .schedulers = kSchedulers,
    .text_tokenizer = "T5Tokenizer",
    .frames = 9,
    .height = 32,
    .width = 64,
    .fps = 12,
    .text_tokens = 20,
    .steps = 11,
    .guidance = 3,
    .guidance_of_two = {{4, 2}},
    .shift = 5,
};
inline constexpr ForeignNetwork kForeign = {
    .classes = kClasses,
    .fields = kFields,
    .tensors = kForms,
    .written = &kForms[0],
    .other = other_model,
    .pipeline = &kPipeline,
};
inline constexpr FieldNote kNotes[] = {{"adaln", "One word."},
                                       {"rope_scale", "How far.", "turns", true}};

}  // namespace made_up

/// The architecture, while this lives.
struct MadeUpNetwork {
  models::Architecture architecture = [] {
    models::Architecture made = models::kDit;
    made.name = "made-up";
    made.class_name = "WanMadeUp3DModel";  // begins as a family that is refused
    made.words = "is in no list.";
    made.cp_words = "Type *made-up* takes all.";
    made.foreign = &made_up::kForeign;
    made.notes = made_up::kNotes;
    made.process = models::Process::flow;
    made.defaults = made_up::set_defaults;
    made.visit_json = made_up::visit_class;
    return made;
  }();
  models::AddedArchitecture added{architecture};

  /// A small network of it.
  models::NetworkConfig config() const {
    models::NetworkConfig c = models::default_config(architecture);
    c.in_channels = c.out_channels = 3;
    c.num_layers = 2;
    c.text_embed_dim = 10;
    c.max_size = {4, 8, 12};
    c.own<models::DitFields>().adaln_lora_dim = 6;
    c.own<models::DitFields>().rope_scale = {2, 1, 3};
    return c;
  }
};

}  // namespace vfm
