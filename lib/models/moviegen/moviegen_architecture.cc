// What MovieGen-Llama is beside its forward pass.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/format.h"
#include "models/config_limits.h"
#include "models/dit/architecture.h"
#include "models/moviegen/moviegen.h"

namespace vfm::models {
namespace {

void visit_moviegen(NetworkConfig& config, ConfigFields& fields) {
  visit_common(config, fields);
  MovieGenFields& own = config.own<MovieGenFields>();
  fields.integer("num_key_value_heads", own.num_key_value_heads, 0, 1024,
                 config.num_attention_heads);
  fields.flag("qk_norm", own.qk_norm, false);
}

int key_value_heads_moviegen(const NetworkConfig& c) {
  const int heads = c.own<MovieGenFields>().num_key_value_heads;
  return heads > 0 ? heads : c.num_attention_heads;
}

void check_moviegen(const NetworkConfig& c) {
  const int key_heads = c.own<MovieGenFields>().num_key_value_heads;
  need_field(c.attention_head_dim > 0 && c.width() % 4 == 0, "attention_head_dim",
             c.attention_head_dim,
             vfm::format("positive, and times 'num_attention_heads', {}, a multiple of 4",
                         c.num_attention_heads));
  need_field(key_heads >= 0 && c.num_attention_heads % c.key_value_heads() == 0,
             "num_key_value_heads", key_heads,
             vfm::format("0 or a divisor of 'num_attention_heads', {}", c.num_attention_heads));
}

// 16,384 of 6,144 is no ratio that a recipe could write exactly.
std::int64_t hidden_moviegen(const NetworkConfig& c) {
  return std::llround(c.mlp_ratio * c.width());
}

bool has_learned_tables(const NetworkConfig& /*config*/) {
  return true;
}

std::vector<TpProduct> products_moviegen(const NetworkConfig& c) {
  const double width = c.width(), keys = c.key_value_heads() * c.attention_head_dim,
               hidden = static_cast<double>(c.hidden());
  return {{width, width + 2 * keys}, {width, width},      {width, width},
          {width, width},            {width, 2 * hidden}, {width, hidden}};
}

// The embedded noise level.
std::int64_t shared_of_moviegen(const NetworkConfig& c) {
  return c.width();
}

constexpr std::string_view kMovieGenTargets[] = {"to_q", "to_k", "to_v", "to_out"};

constexpr FieldNote kMovieGenNotes[] = {
    {"num_key_value_heads", ""},
    {"qk_norm",
     "RMS norms of queries and keys in both attentions, as in NeMo's DiT layer. Types without this "
     "key always have these norms."},
};

}  // namespace

constinit const Architecture kMovieGen = {
    .name = "moviegen",
    .class_name = "MovieGenTransformer3DModel",
    .words =
        "is MovieGen-Llama, with fewer key heads, SwiGLU, RMS norms, and learned positions at "
        "every layer.",
    .notes = kMovieGenNotes,
    .lora_targets = kMovieGenTargets,
    .visit = visit_moviegen,
    .check = check_moviegen,
    .key_value_heads = key_value_heads_moviegen,
    .hidden = hidden_moviegen,
    .has_tables = has_learned_tables,
    .shared_values = shared_of_moviegen,
    .tp_products = products_moviegen,
    .make = make_moviegen,
};

}  // namespace vfm::models
