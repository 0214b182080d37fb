// What the two networks of dit.h are beside their forward pass.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/format.h"
#include "models/config_limits.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"

namespace vfm::models {
namespace {

void visit_dit(NetworkConfig& config, ConfigFields& fields) {
  visit_common(config, fields);
  DitFields& own = config.own<DitFields>();
  fields.modulation("adaln", own.adaln, "adaln_lora_dim", own.adaln_lora_dim);
  fields.scales("rope_scale", own.rope_scale);
  fields.word("learnable_positions", own.learnable_positions, "extra_pos_embed_type", "learnable");
}

void check_dit(const NetworkConfig& c) {
  const DitFields& own = c.own<DitFields>();
  need_field(c.attention_head_dim >= 12 && c.attention_head_dim % 2 == 0, "attention_head_dim",
             c.attention_head_dim, "even and at least 12, so that it can be split over three axes");
  need_field(own.adaln_lora_dim >= 0 && own.adaln_lora_dim <= kMostWidth, "adaln_lora_dim",
             own.adaln_lora_dim, "0 to 1048576");
  for (const double scale : own.rope_scale)
    need_field(scale > 0 && std::isfinite(scale), "rope_scale", scale, "positive");
}

// As diffusers rounds.
std::int64_t hidden_dit(const NetworkConfig& c) {
  return static_cast<std::int64_t>(c.mlp_ratio * c.width());
}

bool has_learned_positions(const NetworkConfig& c) {
  return c.own<DitFields>().learnable_positions;
}

std::vector<TpProduct> products_dit(const NetworkConfig& c) {
  const double width = c.width(), hidden = static_cast<double>(c.hidden());
  return {{width, 3 * width}, {width, width},  {width, width},
          {width, width},     {width, hidden}, {width, hidden}};
}

// Not the products of a temporal layer: it gathers rows in another order.
std::vector<TpProduct> products_stdit(const NetworkConfig& c) {
  const double width = c.width();
  std::vector<TpProduct> all = products_dit(c);
  all.insert(all.end(), {{width, 3 * width}, {width, width}, {width, width}});
  return all;
}

std::unique_ptr<DiffusionNetwork> make_dit(const NetworkConfig& config, std::uint64_t seed,
                                           DType compute, Device device, bool trainable,
                                           const nn::NetworkLayout& layout) {
  return std::make_unique<Dit>(config, seed, compute, device, trainable, layout);
}

// The embedded noise level, and a shift, scale and gate that are added to those of each block.
std::int64_t shared_of_dit(const NetworkConfig& c) {
  return std::int64_t{4} * c.width();
}

constexpr std::string_view kDitTargets[] = {"to_q", "to_k", "to_v", "to_out.0"};

constexpr FieldNote kDitNotes[] = {
    {"adaln",
     "How shift, scale and gate are computed from the noise level. *lora*: by two matrices with a "
     "small width between them, as in Cosmos. *full*: by one matrix, with many more parameters. "
     "diffusers cannot open a model with *full*."},
    {"adaln_lora_dim", "The small width of *lora* in _model.adaln_. With *full*: 0."},
    {"rope_scale", "Factors that stretch the rotary positions in time, height and width.", "",
     true},
    {"learnable_positions", "Add learned position tables to the rotary positions."},
};

constexpr Architecture of_dit() {
  return {
      .name = "dit",
      .class_name = "CosmosTransformer3DModel",
      .words = "is the diffusion transformer of Cosmos-1.0.",
      .foreign = &kCosmosInDiffusers,
      .notes = kDitNotes,
      .fp8 = true,
      .text_norm = ".norm2.",
      .lora_targets = kDitTargets,
      .visit = visit_dit,
      .check = check_dit,
      .hidden = hidden_dit,
      .has_tables = has_learned_positions,
      .shared_values = shared_of_dit,
      .tp_products = products_dit,
      .make = make_dit,
  };
}

constexpr Architecture of_stdit() {
  Architecture stdit = of_dit();
  stdit.name = "stdit";
  stdit.class_name = "SpaceTimeTransformer3DModel";
  stdit.words =
      "has three self-attentions in each block: within a frame, over all tokens, and over time at "
      "each position.";
  stdit.cp_words = "Without _parallel.hybrid_, type *stdit* takes only *all_to_all*.";
  stdit.foreign = nullptr;
  stdit.space_time = true;
  stdit.tp_products = products_stdit;
  return stdit;
}

}  // namespace

constinit const Architecture kDit = of_dit();
constinit const Architecture kStdit = of_stdit();

}  // namespace vfm::models
