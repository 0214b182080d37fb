// SPDX-License-Identifier: Apache-2.0
#include "models/folder/model_facts.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/listed.h"
#include "io/file.h"
#include "models/decoder/decoder_json.h"
#include "models/dit/architecture.h"
#include "models/dit/network_json.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/config_json.h"
#include "models/folder/weight_files.h"
#include "models/text_encoder.h"
#include "models/tokenizer_family.h"

namespace vfm::models {
namespace {

constexpr std::int64_t kMost = 100000;  // of any extent, and of tokens

// In train.json, and in the config.json of an export.
constexpr const char* kProcess = "process";
constexpr const char* kTextPadding = "text_padding";
constexpr const char* kEncodeEmpty = "encode_empty";
constexpr const char* kDiffusers = "diffusers";

/// The pipeline that a network is published in; null if it is published in none.
const PipelineForm* pipeline_of(const NetworkConfig& config) {
  return config.architecture->foreign ? config.architecture->foreign->pipeline : nullptr;
}

/// To which length the texts of published models are padded.
struct UsualTextPadding {
  int operator()(const NetworkConfig& config) const {
    const PipelineForm* const pipeline = pipeline_of(config);
    return pipeline ? pipeline->text_tokens : 0;
  }
  int operator()(const DecoderConfig& config) const {
    return config.text_embed_dim > 0 ? kDecoderTextTokens : 0;
  }
  int operator()(const CosmosConfig& /*config*/) const { return 0; }
};

/// The process of published models.
struct UsualProcess {
  Process operator()(const NetworkConfig& config) const { return config.architecture->process; }
  Process operator()(const DecoderConfig& /*config*/) const { return Process::edm; }
  Process operator()(const CosmosConfig& /*config*/) const { return Process::edm; }
};

struct TakesText {
  bool operator()(const NetworkConfig& config) const { return config.text_embed_dim > 0; }
  bool operator()(const DecoderConfig& config) const { return config.text_embed_dim > 0; }
  bool operator()(const CosmosConfig& /*config*/) const { return false; }
};

int small_integer(const Json& object, const char* name, std::int64_t least,
                  const std::string& what) {
  const std::int64_t value = need_integer(object, name, what);
  if (value < least || value > kMost) fail("{} has {} {}", what, value, name);
  return static_cast<int>(value);
}

double number_of(const Json& object, const char* name, const std::string& what) {
  const std::optional<double> value = get_number(object, name);
  if (!value) fail("{} has no '{}'", what, name);
  return *value;
}

Extents read_extents(const Json& object, const std::string& what) {
  return {small_integer(object, "frames", 1, what), small_integer(object, "height", 1, what),
          small_integer(object, "width", 1, what)};
}

SamplingFacts read_sampling(const Json& object, const std::string& what) {
  SamplingFacts facts;
  if (object.contains("steps")) facts.steps = small_integer(object, "steps", 1, what);
  facts.guidance = get_number(object, "guidance");
  facts.guidance_low = get_number(object, "guidance_low");
  if (const auto name = get_string(object, kProcess)) facts.process = parse_process(*name);
  if (const std::string name = get_string(object, "sampler").value_or(""); !name.empty()) {
    facts.sampler = parse_sampler(name);
    check_sampler(*facts.sampler, facts.process);
  }
  facts.sigma_min = get_number(object, "sigma_min");
  facts.sigma_max = get_number(object, "sigma_max");
  facts.shift = get_number(object, "shift");
  if (const auto found = object.find(kDiffusers); found != object.end()) {
    const std::string of = "'" + std::string(kDiffusers) + "' of " + what;
    facts.diffusers = InDiffusers{.steps = small_integer(*found, "steps", 1, of),
                                  .guidance = number_of(*found, "guidance", of),
                                  .shift = number_of(*found, "shift", of)};
  }
  return facts;
}

Json member(const Json& value, const char* name) {
  return value.is_object() ? value.value(name, Json()) : Json();
}

/// Two networks that are chosen by noise level, and take each other's place in memory.
void check_alike(const HfComponent& first, const HfComponent& second) {
  const auto config = [](const HfComponent& one) {
    return in_file(one.config_path(),
                   [&] { return network_config_to_json(network_config_from_json(one.config())); });
  };
  const Json one = config(first), other = config(second);
  for (const auto& [name, value] : one.items())
    if (other.value(name, Json()) != value)
      fail_usage(
          "'{}' has {} {}, and '{}' has {}: networks that are chosen by noise level must have one "
          "configuration",
          first.config_path(), name, value.dump(), second.config_path(),
          other.value(name, Json()).dump());
}

/// The parts of a pipeline that somebody generates with.
void check_parts(const ModelFolder& model) {
  const std::string type = model.layout().type();
  const Architecture* const architecture = architecture_of_pipeline(type);
  if (architecture == nullptr) {
    std::vector<std::string_view> known;
    for (const Architecture* one : architectures())
      if (one->foreign && one->foreign->pipeline)
        for (const std::string_view name : one->foreign->pipeline->classes)
          if (!name.empty()) known.push_back(name);
    fail_usage("'{}' is a {}: only {} are supported", model.folder(), type, listed(known, " and "));
  }
  const PipelineForm& pipeline = *architecture->foreign->pipeline;
  const HfComponent &vae = model.part("vae"), &text = model.part("text_encoder");
  std::vector<std::string_view> networks = {architecture->class_name};
  for (const ForeignClass& one : architecture->foreign->classes)
    networks.push_back(one.name);
  const std::vector<std::string> parts = model.layout().networks();
  for (const std::string& part : parts)
    model.part(part).need_type(networks);
  if (parts.size() > 1) check_alike(model.part(parts[0]), model.part(parts[1]));
  vae.need_type({pipeline.vaes.begin(), pipeline.vaes.end()});
  text.need_type({pipeline.text_encoders.begin(), pipeline.text_encoders.end()});
}

[[noreturn]] void refuse_alone(const ModelFolder& model) {
  const std::string beside = as_usage([&] { return beside_transformer(model.folder()); });
  fail_usage("'{}' is a network alone, {}, without tokenizer and text encoder: {}", model.folder(),
             model.type(),
             beside.empty()
                 ? "give the pipeline that it is a part of, or the run or run of "
                   "adapters that it was exported from"
                 : fmt::format("put {} beside it in one folder, and give that folder", beside));
}

/// The size that most videos have, as latents.
Extents usual_latent(const LatentFacts& latents, const PipelineForm& pipeline,
                     const Extents& most) {
  return {std::min(1 + (pipeline.frames - 1) / latents.time_factor, most.frames),
          std::min(pipeline.height / latents.space_factor, most.height),
          std::min(pipeline.width / latents.space_factor, most.width)};
}

/// The form of the model in a pipeline, among those of its class.
const PipelineForm& form_of_model(const PipelineForm& pipeline, const ModelFolder& model,
                                  const NetworkConfig& network) {
  if (pipeline.of_model == nullptr) return pipeline;
  return pipeline.of_model({.network = network,
                            .clean_time = model.layout().flag("expand_timesteps"),
                            .experts = model.layout().networks().size() > 1});
}

/// The boundary between two networks in the levels of the model's process.
void add_boundary(ModelFacts& facts, const ModelLayout& layout, const PipelineForm& pipeline) {
  const Process flow = Process::flow, own = facts.sampling.process;
  const double t = layout.boundary();
  facts.boundary = own == flow ? t : own.level_of(flow.sigma_of(t));
  if (!pipeline.guidance_of_two) return;
  facts.sampling.guidance = pipeline.guidance_of_two->front();
  facts.sampling.guidance_low = pipeline.guidance_of_two->back();
}

void add_pipeline(ModelFacts& facts, const ModelFolder& model, const PipelineForm& pipeline,
                  bool all) {
  const auto is_there = [&](const char* part) {
    if (all || !model.layout().has(part)) return all;
    const std::string path = model.layout().folder_of(part);
    return is_weight_file(path) || io::file_exists(io::join_path(path, "config.json"));
  };
  if (model.layout().is_files())
    facts.sampling = usual_sampling(pipeline);
  else if (all || model.layout().has("scheduler"))
    facts.sampling = hf_sampling(model.layout().folder_of("scheduler"), pipeline);
  if (model.layout().networks().size() > 1) add_boundary(facts, model.layout(), pipeline);
  if (is_there("vae")) {
    const HfComponent& vae = model.part("vae");
    facts.tokenizer = {.name = vae.type(), .path = vae.folder()};
    vae.need_type(tokenizer_class_names());
    LatentFacts latents =
        find_tokenizer_family(vae.type())->latents(vae.config(), "'" + vae.config_path() + "'");
    if (all) facts.usual = usual_latent(latents, pipeline, facts.largest);
    facts.scale = std::move(latents.scale);
  }
  if (is_there("text_encoder")) {
    const HfComponent& text = model.part("text_encoder");
    facts.text_encoder = text_config_from_json({{"name", text.type()}, {"path", text.folder()}});
    facts.text_encoder->clean = pipeline.clean_texts;
  }
  facts.fps = pipeline.fps;
  facts.clean_time = model.layout().flag("expand_timesteps");
  facts.round_time = pipeline.rounds_level;
  facts.no_guidance = pipeline.no_guidance;
}

/// What a config.json says of training, and for what it leaves out what published models do.
void read_training(ModelFacts& facts, const ModelConfig& model, const Json& config,
                   const std::string& what) {
  facts.sampling.process = std::visit(UsualProcess(), model);
  if (const auto name = get_string(config, kProcess)) facts.sampling.process = parse_process(*name);
  facts.text_padding = std::visit(UsualTextPadding(), model);
  if (config.contains(kTextPadding))
    facts.text_padding = small_integer(config, kTextPadding, 0, what);
  facts.encode_empty = get_bool(config, kEncodeEmpty).value_or(true);
}

}  // namespace

void tell_of_training(const ModelFacts& facts, const ModelConfig& model, Json& json) {
  json.erase(kProcess);
  if (facts.sampling.process != std::visit(UsualProcess(), model))
    json[kProcess] = facts.sampling.process.name();
  json.erase(kTextPadding);
  json.erase(kEncodeEmpty);
  if (!std::visit(TakesText(), model)) return;
  if (facts.text_padding != std::visit(UsualTextPadding(), model))
    json[kTextPadding] = facts.text_padding;
  if (!facts.encode_empty) json[kEncodeEmpty] = false;
}

Json SamplingFacts::to_json() const {
  Json json;
  const auto add = [&](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  add("steps", steps);
  add("guidance", guidance);
  add("guidance_low", guidance_low);
  if (process != Process::edm) json[kProcess] = process.name();
  if (sampler) json["sampler"] = to_string(*sampler);
  add("sigma_min", sigma_min);
  add("sigma_max", sigma_max);
  add("shift", shift);
  if (diffusers)
    json[kDiffusers] = {{"steps", diffusers->steps},
                        {"guidance", diffusers->guidance},
                        {"shift", diffusers->shift}};
  return json;
}

Origin Origin::from_json(const Json& value) {
  const auto text = [](const Json& object, const char* name) {
    return object.is_object() ? get_string(object, name).value_or("") : "";
  };
  const Json adapters = member(value, "adapters");
  return {text(value, "path"), text(value, "hash"), text(adapters, "path"), text(adapters, "hash")};
}

Json Origin::to_json() const {
  if (path.empty()) return nullptr;
  Json json = {{"path", path}, {"hash", hash}};
  if (!adapters_path.empty()) json["adapters"] = {{"path", adapters_path}, {"hash", adapters_hash}};
  return json;
}

ModelFacts ModelFacts::from_json(const Json& train, const std::string& what, FactsFor use) {
  // Null says that there is none, where that may be. Left out it is a mistake.
  const auto object = [&](const char* name, bool may_be_null) -> const Json* {
    const auto found = train.find(name);
    if (found != train.end() && found->is_object()) return &*found;
    const bool null = found != train.end() && found->is_null();
    if (use == FactsFor::generation && !(null && may_be_null))
      fail("{} has no '{}': the checkpoint cannot generate", what, name);
    return nullptr;
  };
  ModelFacts facts;
  if (const Json* json = object("tokenizer", false))
    facts.tokenizer = TokenizerConfig::from_json(*json);
  if (const Json* json = object("text_encoder", true))
    facts.text_encoder = text_config_from_json(*json);
  if (const Json* json = object("latent_scale", true))
    facts.scale = LatentScale::from_json(*json, what);
  if (const Json* json = object("trained", false)) {
    facts.largest = read_extents(*json, "'trained' of " + what);
    // A checkpoint of another program may not say what is usual.
    facts.usual = json->contains("usual") ? read_extents((*json)["usual"], "'usual' of " + what)
                                          : facts.largest;
    // Of several rates the first: vfm-train lists the most frequent one first.
    const auto rates = json->find("fps");
    if (rates != json->end() && rates->is_array() && !rates->empty() && rates->front().is_number())
      facts.fps = rates->front().get<double>();
  }
  if (train.contains("sampling"))
    if (const Json* json = object("sampling", false))
      facts.sampling = read_sampling(*json, "'sampling' of " + what);
  if (train.contains(kTextPadding))
    facts.text_padding = small_integer(train, kTextPadding, 0, what);
  facts.encode_empty = get_bool(train, kEncodeEmpty).value_or(false);
  facts.round_time = get_bool(train, "round_time").value_or(false);
  facts.step = get_integer(train, "step");
  if (const auto seed = train.find("seed"); seed != train.end() && seed->is_number_integer())
    facts.seed = seed->get<std::uint64_t>();
  const Json compute = member(member(member(train, "recipe"), "model"), "compute");
  facts.trained_in = compute == "bf16" ? DType::bf16 : DType::f32;
  facts.origin = Origin::from_json(member(train, "init"));
  return facts;
}

ModelFacts read_facts(const ModelFolder& model, FactsFor use) {
  if (model.is_checkpoint())
    return ModelFacts::from_json(read_train_json(model.folder()), train_json_name(model.folder()),
                                 use);
  const bool all = use == FactsFor::generation;
  if (all && !model.is_pipeline()) refuse_alone(model);
  if (!all && model.layout().networks().size() > 1)
    fail_usage(
        "'{}' has two networks that are chosen by noise level, and a run trains one: give the "
        "folder of that one, '{}' or '{}'",
        model.folder(), model.layout().folder_of(kFirstNetwork),
        model.layout().folder_of(kSecondNetwork));
  if (all) check_parts(model);
  ModelFacts facts;
  const ModelConfig config = read_model_config(model);
  as_usage([&] { read_training(facts, config, model.config(), "'" + model.config_path() + "'"); });
  const auto* network = std::get_if<NetworkConfig>(&config);
  const PipelineForm* const pipeline = network ? pipeline_of(*network) : nullptr;
  if (pipeline == nullptr) return facts;
  facts.largest = {network->max_size[0], network->max_size[1], network->max_size[2]};
  if (model.is_pipeline())
    add_pipeline(facts, model, form_of_model(*pipeline, model, *network), all);
  return facts;
}

std::string text_encoder_hash(const std::string& folder) {
  constexpr int kAnyLength = 512;  // the hash does not depend on it
  return text_encoder_config(folder, kAnyLength, DType::f32).hash;
}

std::string hash_all(const ModelFolder& model) {
  if (model.is_checkpoint()) return io::hash_file(io::join_path(model.folder(), "COMPLETE"));
  Hasher hasher;
  std::vector<std::string> parts = model.layout().networks();
  if (parts.size() > 1) hasher.update(fmt::format("boundary {} ", model.layout().boundary()));
  parts.emplace_back("vae");
  for (const std::string& part : parts)
    hasher.update(model.part(part).hash());
  hasher.update(text_encoder_hash(model.layout().folder_of("text_encoder")));
  return hasher.hex128();
}

void add_part_hashes(ModelFacts& facts) {
  if (facts.tokenizer) facts.tokenizer->hash = HfComponent(facts.tokenizer->path).hash();
  if (facts.text_encoder) facts.text_encoder->hash = text_encoder_hash(facts.text_encoder->path);
}

}  // namespace vfm::models
