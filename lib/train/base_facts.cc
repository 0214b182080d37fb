// SPDX-License-Identifier: Apache-2.0
#include "train/base_facts.h"

#include "base/error.h"
#include "io/file.h"
#include "models/folder/hf_folder.h"
#include "models/folder/hf_sampling.h"
#include "models/text_encoder.h"

namespace vfm::train {
namespace {

constexpr std::int64_t kMostExtent = 100000;

Json object_in(const Json& object, const char* name) {
  const Json value = object.is_object() ? object.value(name, Json()) : Json();
  return value.is_object() ? value : Json();
}

void take_scale(BaseFacts& facts, models::LatentScale scale, const models::NetworkConfig& model,
                const std::string& what) {
  if (scale.channels() != static_cast<std::size_t>(model.out_channels))
    fail_usage("{} has a scale of {} channels, and the network makes {}", what, scale.channels(),
               model.out_channels);
  facts.scale = std::move(scale);
}

/// The folder of a part with its configuration; "" if it is not there.
std::string part_of(const models::HfPipeline& pipeline, const char* name) {
  if (!pipeline.has(name)) return "";
  const std::string folder = pipeline.folder_of(name);
  return io::file_exists(io::join_path(folder, "config.json")) ? folder : "";
}

/// Of a part of a pipeline without one: its weights decide. "" if there are none.
std::string hash_of(const Json& part, bool is_text) {
  if (const auto hash = get_string(part, "hash")) return *hash;
  const auto path = get_string(part, "folder");
  if (!path) return "";
  try {
    if (!is_text) return models::HfComponent(*path).hash();
    return models::text_encoder_config(*path, models::kCosmosTextTokens, DType::f32)["hash"];
  } catch (const Error&) {
    return "";  // not all of a pipeline need be there to train its transformer
  }
}

/// Whether two parts are known to be different ones.
bool differ(const Json& base, const Json& data, bool is_text) {
  if (!base.is_object() || !data.is_object()) return false;
  if (get_string(base, "name") != get_string(data, "name")) return true;
  const std::string known = hash_of(base, is_text), used = hash_of(data, is_text);
  if (!known.empty() && !used.empty()) return known != used;
  // Those that are built in have no folder, and are what they say.
  return !base.contains("path") && !data.contains("path") && base != data;
}

std::string name_of(const Json& part) {
  return get_string(part, "name").value_or("?");
}

}  // namespace

BaseFacts facts_of_run(const Json& train, const models::NetworkConfig& model,
                       const std::string& what) {
  return as_usage([&] {
    BaseFacts facts;
    if (const Json scale = object_in(train, "latent_scale"); scale.is_object())
      take_scale(facts, models::LatentScale::from_json(scale, what), model, what);
    if (const Json trained = object_in(train, "trained"); trained.is_object())
      for (std::size_t i = 0; i < 3; ++i) {
        const std::int64_t extent = need_integer(trained, kExtents[i], what);
        if (extent < 1 || extent > kMostExtent) fail("{} has {} {}", what, extent, kExtents[i]);
        facts.trained[i] = static_cast<int>(extent);
      }
    facts.tokenizer = object_in(train, "tokenizer");
    facts.text_encoder = object_in(train, "text_encoder");
    facts.sampling = object_in(train, "sampling");
    facts.encode_empty = get_bool(train, "encode_empty").value_or(false);
    return facts;
  });
}

BaseFacts facts_of_pipeline(const std::string& folder, const models::NetworkConfig& model) {
  const models::HfPipeline pipeline(folder);
  BaseFacts facts;
  facts.trained = model.max_size;
  if (pipeline.has("scheduler"))
    facts.sampling = as_usage([&] { return models::hf_sampling(pipeline.folder_of("scheduler")); });
  if (facts.sampling.is_object() && facts.sampling["sampler"] == "flow")
    fail_usage("'{}' is a model of flow matching, and vfm-train trains by EDM's loss", folder);
  if (const std::string vae = part_of(pipeline, "vae"); !vae.empty()) {
    const models::HfComponent part(vae);
    const std::string what = fmt::format("'{}'", io::join_path(vae, "config.json"));
    take_scale(facts, as_usage([&] { return models::hf_latent_scale(part.config(), false, what); }),
               model, what);
    facts.tokenizer = {{"name", part.type()}, {"path", folder}, {"folder", vae}};
  }
  if (const std::string text = part_of(pipeline, "text_encoder"); !text.empty())
    facts.text_encoder = {
        {"name", models::HfComponent(text).type()}, {"path", folder}, {"folder", text}};
  return facts;
}

std::vector<std::string> other_parts(const BaseFacts& base, const Json& data,
                                     const std::string& init) {
  std::vector<std::string> sentences;
  const auto compare = [&](const char* name, const Json& known, const char* text) {
    const bool is_text = std::string_view(name) == "text_encoder";
    const Json used = object_in(data, name);
    if (as_usage([&] { return differ(known, used, is_text); }))
      sentences.push_back(fmt::format(fmt::runtime(text), name_of(used), init, name_of(known),
                                      get_string(known, "path").value_or(name_of(known))));
  };
  compare(
      "tokenizer", base.tokenizer,
      "the latents are of another tokenizer, {}, than those of '{}', {}: the model will have to "
      "learn them anew; 'vfm-pack --tokenizer {}' makes those that it knows");
  compare("text_encoder", base.text_encoder,
          "the texts are of another encoder, {}, than those of '{}', {}: the model will have to "
          "learn them anew; 'vfm-embed --text {}' makes those that it knows");
  return sentences;
}

}  // namespace vfm::train
