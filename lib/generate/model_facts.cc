// SPDX-License-Identifier: Apache-2.0
#include "generate/model_facts.h"

#include "base/error.h"

namespace vfm::generate {
namespace {

constexpr std::int64_t kMost = 100000;  // of any extent, and of tokens

const Json& need_object(const Json& train, const char* name, const std::string& what) {
  const auto found = train.find(name);
  if (found == train.end() || !found->is_object())
    fail("{} has no '{}': the checkpoint cannot generate", what, name);
  return *found;
}

bool is_null_field(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_null();
}

int small_integer(const Json& object, const char* name, std::int64_t least,
                  const std::string& what) {
  const std::int64_t value = need_integer(object, name, what);
  if (value < least || value > kMost) fail("{} has {} {}", what, value, name);
  return static_cast<int>(value);
}

Extents read_extents(const Json& object, const std::string& what) {
  return {small_integer(object, "frames", 1, what), small_integer(object, "height", 1, what),
          small_integer(object, "width", 1, what)};
}

SampleOptions read_sampling(const Json& object, const std::string& what) {
  SampleOptions options;
  if (const auto name = get_string(object, "sampler")) options.sampler = parse_sampler(*name);
  if (object.contains("steps")) options.steps = small_integer(object, "steps", 1, what);
  options.sigma_min = get_number(object, "sigma_min").value_or(options.sigma_min);
  options.sigma_max = get_number(object, "sigma_max").value_or(options.sigma_max);
  options.shift = get_number(object, "shift").value_or(options.shift);
  options.guidance = get_number(object, "guidance").value_or(options.guidance);
  try {
    options.validate();
  } catch (const Error& error) {
    fail("{}: {}", what, error.what());
  }
  return options;
}

}  // namespace

ModelFacts ModelFacts::from_json(const Json& train, const std::string& what) {
  ModelFacts facts;
  facts.tokenizer = need_object(train, "tokenizer", what);
  // null: trained without text. Left out it is a mistake.
  if (!is_null_field(train, "text_encoder"))
    facts.text_encoder = need_object(train, "text_encoder", what);
  // null: of codes.
  if (!is_null_field(train, "latent_scale"))
    facts.scale = models::LatentScale::from_json(need_object(train, "latent_scale", what), what);
  const Json& trained = need_object(train, "trained", what);
  facts.largest = read_extents(trained, "'trained' of " + what);
  // A checkpoint of another program may not say what is usual.
  facts.usual = facts.largest;
  if (trained.contains("usual")) facts.usual = read_extents(trained["usual"], "'usual' of " + what);
  // Of several rates the first: vfm-train lists the most frequent one first.
  const auto rates = trained.find("fps");
  if (rates != trained.end() && rates->is_array() && !rates->empty() && rates->front().is_number())
    facts.fps = rates->front().get<double>();
  if (train.contains("sampling"))
    facts.sampling = read_sampling(need_object(train, "sampling", what), "'sampling' of " + what);
  if (train.contains("text_padding"))
    facts.text_padding = small_integer(train, "text_padding", 0, what);
  facts.encode_empty = get_bool(train, "encode_empty").value_or(false);
  facts.round_time = get_bool(train, "round_time").value_or(false);
  return facts;
}

}  // namespace vfm::generate
