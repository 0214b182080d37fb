// SPDX-License-Identifier: Apache-2.0
#include "models/folder/load_model.h"

#include "base/error.h"
#include "dist/bytes.h"
#include "models/folder/adapted_model.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/model_config.h"
#include "models/folder/model_layout.h"

namespace vfm::models {
const nn::ParameterList& LoadedModel::parameters() const {
  return decoder ? decoder->parameters() : network->parameters();
}

Device LoadedModel::device() const {
  return decoder ? decoder->device() : network->device();
}

void AdapterChoice::check_for(const ModelFolder& model) const {
  const bool adapted = model.has_adapters();
  if (separate && sets.empty() && !adapted)
    fail_usage("'{}' has no adapters to keep apart: leave out --no-merge, or give some (--lora)",
               model.folder());
  if (!sets.empty() && adapted)
    fail_usage("'{}' has adapters of its own: to add others, give the model under them",
               model.folder());
}

LoraFile open_adapters(const std::string& path, bool ema) {
  const auto run = open_checkpoint(path);
  if (!run) return LoraFile(path);
  if (!has_adapters(run->folder()))
    fail_usage("'{}' has no adapters: it is a model of its own", run->folder());
  LoraFile file(lora_folder(run->folder()));
  if (auto average = ema ? run->average() : nullptr) file.use_values(std::move(average));
  return file;
}

DType stored_type(const ModelFolder& model) {
  const std::vector<io::TensorView>& tensors = model.tensors().tensors();
  return tensors.empty() || tensors.front().dtype == "F32" ? DType::f32 : DType::bf16;
}

namespace {

/// Puts the adapters of choice.sets on the model; `ema`: the averaged ones of a run.
void add_adapters(LoadedModel& model, const AdapterChoice& choice, bool ema) {
  std::vector<CountedAdapters> adapters;
  for (const AdapterChoice::Set& set : choice.sets) {
    adapters.push_back(retry_if_gone(set.path, [&]() -> CountedAdapters {
      if (const auto run = open_checkpoint(set.path)) run->verify(0, 1);
      return {open_adapters(set.path, ema), set.scale};
    }));
    const LoraFile& file = adapters.back().file;
    model.adapters.push_back({file.hash(), set.scale, choice.separate, file.path()});
  }
  if (model.decoder)
    adapt(*model.decoder, adapters, choice.separate);
  else
    adapt(*model.network, adapters, choice.separate);
}

/// A model without values, and where they are.
struct Opening {
  Opening(const std::string& path, bool ema)
      : model(open_model(path, {.types = generator_class_names(), .average = ema})) {}
  const ModelFolder& whole() const { return under ? *under : model; }

  ModelFolder model;
  std::optional<ModelFolder> under;  ///< of adapters
  AdapterChoice adapters;            ///< to put on the model
  LoadedModel loaded;
};

std::unique_ptr<Opening> open_for(const std::string& path, bool ema, std::optional<DType> compute,
                                  Device device, const AdapterChoice& choice,
                                  const LoadingRanks& ranks) {
  auto opening = std::make_unique<Opening>(path, ema);
  const ModelFolder& model = opening->model;
  model.verify(ranks.rank(), ranks.size());
  LoadedModel& loaded = opening->loaded;
  loaded = {nullptr, read_facts(model), model.folder(), model.averaged()};
  ModelFacts& facts = loaded.facts;
  if (!compute) compute = model.is_checkpoint() ? facts.trained_in : stored_type(model);
  loaded.compute = *compute;
  // The reference hands the time over in the network's own type.
  if (model.is_pipeline()) facts.round_time = *compute == DType::bf16;
  loaded.pipeline = model.is_pipeline();
  if (ranks.rank() == 0) loaded.hash = hash_all(model);
  choice.check_for(model);

  opening->adapters = choice;
  if (model.has_adapters()) {
    opening->under.emplace(open_under(model.folder(), "", {.types = generator_class_names()}));
    opening->under->verify(ranks.rank(), ranks.size());
    hash_under(*opening->under, model.folder());
    opening->adapters.sets = {{model.folder()}};
  }
  if (!opening->adapters.sets.empty() && (ranks.layout.tp_size() > 1 || ranks.layout.blocks))
    fail_usage(
        "ranks that share the matrices of a network (tp, shard) take no adapters: share clips by "
        "cfg and cp, or leave the adapters out");
  const ModelConfig config = read_model_config(opening->whole());
  if (const auto* decoder = std::get_if<DecoderConfig>(&config))
    loaded.decoder = std::make_unique<CausalDecoder>(*decoder, 0, *compute, device, false);
  else
    loaded.network =
        make_network(std::get<NetworkConfig>(config), 0, *compute, device, false, ranks.layout);
  return opening;
}

LoadedModel load_once(const std::string& path, bool ema, std::optional<DType> compute,
                      Device device, const AdapterChoice& choice, const LoadingRanks& ranks) {
  std::unique_ptr<Opening> opening;
  ranks.agree([&] { opening = open_for(path, ema, compute, device, choice, ranks); });
  LoadedModel& loaded = opening->loaded;
  if (ranks.group) loaded.hash = dist::broadcast_bytes(*ranks.group, loaded.hash, 0);
  const io::TensorSet& weights = opening->whole().weights();
  if (ranks.group)
    load_parameters(weights, nn::states_of(loaded.parameters()), *ranks.group);
  else
    load_parameters(weights, loaded.parameters());
  const AdapterChoice& adapters = opening->adapters;
  if (!adapters.sets.empty()) ranks.agree([&] { add_adapters(loaded, adapters, ema); });
  return std::move(loaded);
}

}  // namespace

LoadedModel load_model(const std::string& path, bool ema, std::optional<DType> compute,
                       Device device, const AdapterChoice& adapters, const LoadingRanks& ranks) {
  // Ranks would not go the same way when a checkpoint is gone.
  if (ranks.group) return load_once(path, ema, compute, device, adapters, ranks);
  return retry_if_gone(path,
                       [&] { return load_once(path, ema, compute, device, adapters, ranks); });
}

}  // namespace vfm::models
