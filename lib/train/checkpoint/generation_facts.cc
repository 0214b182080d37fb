// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/generation_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "models/text_encoder.h"

namespace vfm::train {
namespace {

/// What the recipe says goes before what the model began with.
Json sampling_of(const Recipe& recipe, models::SamplingFacts sampling) {
  const SamplingRecipe& own = recipe.sampling;
  sampling.process = recipe.diffusion.process;
  if (own.steps > 0) sampling.steps = own.steps;
  if (own.guidance >= 0) sampling.guidance = own.guidance;
  if (sampling.diffusers && own.steps > 0) sampling.diffusers->steps = static_cast<int>(own.steps);
  if (sampling.diffusers && own.guidance >= 0) sampling.diffusers->guidance = own.guidance;
  if (own.sigma_min > 0) sampling.sigma_min = own.sigma_min;
  if (own.sigma_max > 0) sampling.sigma_max = own.sigma_max;
  const double shift = own.shift > 0 ? own.shift : recipe.diffusion.shift;
  // The shifts of two programs are of the noise levels that the model began with, not of others.
  if (own.shift > 0 || shift != sampling.scheduler_shift()) {
    sampling.diffusers.reset();
    sampling.shift = shift;
  }
  if (sampling.shift == 1.0) sampling.shift.reset();
  return sampling.to_json();
}

/// Of a part of a pipeline without one: its weights tell. "" if there are none.
template <class Config>
std::string hash_of(const Config& part) {
  if (!part.hash.empty() || part.path.empty()) return part.hash;
  try {
    if constexpr (std::is_same_v<Config, text::EncoderConfig>)
      return models::text_encoder_hash(part.path);
    else
      return models::HfComponent(part.path).hash();
  } catch (const Error&) {
    return "";  // not all of a pipeline need be there to train its transformer
  }
}

/// Whether two parts are known to be different ones.
template <class Config>
bool differ(const Config& base, const Config& data) {
  if (base.name != data.name) return true;
  const std::string known = hash_of(base), used = hash_of(data);
  if (!known.empty() && !used.empty()) return known != used;
  // Those that are built in have no folder, and are what they say.
  return base.path.empty() && data.path.empty() && base != data;
}

/// The sentence `text` about a part, `key` in latents.json; "" if there is nothing to say.
template <class Config>
std::string compare(const char* key, const std::optional<Config>& known, const Json& data,
                    Config (*read)(const Json&), const std::string& init, const char* text) {
  const auto found = data.is_object() ? data.find(key) : data.end();
  if (!known || !data.is_object() || found == data.end() || !found->is_object()) return "";
  const Config used = read(*found);
  if (!as_usage([&] { return differ(*known, used); })) return "";
  const auto name_of = [](const Config& part) { return part.name.empty() ? "?" : part.name; };
  // The pipeline of a part will do where the part would.
  std::string place = known->path.empty() ? name_of(*known) : known->path;
  for (const char* part : {"vae", "text_encoder"})
    if (place == io::join_path(init, part)) place = init;
  return fmt::format(fmt::runtime(text), name_of(used), init, name_of(*known), place);
}

}  // namespace

Json generation_facts(const Recipe& recipe, const Dataset& data, const models::ModelFacts& base) {
  Json facts = data.facts();
  if (facts.empty()) return facts;
  // Positions lie as far apart as in the base: its sizes have not been forgotten.
  const std::pair<const char*, int> known[] = {{"frames", base.largest.frames},
                                               {"height", base.largest.height},
                                               {"width", base.largest.width}};
  for (const auto& [name, extent] : known)
    facts["trained"][name] = std::max(facts["trained"][name].get<int>(), extent);
  if (const Json sampling = sampling_of(recipe, base.sampling); !sampling.is_null())
    facts["sampling"] = sampling;
  if (recipe.text_padding() > 0) {
    facts["text_padding"] = recipe.text_padding();
    // Zero vectors alone are what a dropped text was. Where none is dropped, an empty prompt is
    // still what the model began with: the encoder's.
    facts["encode_empty"] = recipe.text_dropout() == 0 && base.encode_empty;
  }
  return facts;
}

std::vector<std::string> other_parts(const models::ModelFacts& base, const Json& data,
                                     const std::string& init) {
  std::vector<std::string> sentences = {
      compare("tokenizer", base.tokenizer, data, models::TokenizerConfig::from_json, init,
              "the latents are of another tokenizer, {}, than those of '{}', {}: the model has to "
              "learn them; 'vfm-pack --tokenizer {}' makes those that it knows"),
      compare("text_encoder", base.text_encoder, data, models::text_config_from_json, init,
              "the texts are of another encoder, {}, than those of '{}', {}: the model has to "
              "learn them; 'vfm-embed --text {}' makes those that it knows")};
  std::erase(sentences, "");
  return sentences;
}

}  // namespace vfm::train
