// SPDX-License-Identifier: Apache-2.0
#include "models/folder/load_model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "dist/bytes.h"
#include "models/dit/pipeline_stages.h"
#include "models/dit/switched_network.h"
#include "models/folder/adapted_model.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/model_config.h"
#include "models/folder/model_layout.h"

namespace vfm::models {

OpenedModel::OpenedModel(const std::string& path, bool ema, std::string part)
    : folder_(open_model(
          path, {.part = std::move(part), .types = generator_class_names(), .average = ema})),
      ema_(ema) {}

const ModelFacts& OpenedModel::facts() const {
  if (!facts_) facts_ = read_facts(folder_);
  return *facts_;
}

const ModelConfig& OpenedModel::config() const {
  if (!config_) config_ = read_model_config(folder_);
  return *config_;
}

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

LoraFile open_adapters(const std::string& path, bool ema, std::optional<int> network) {
  const auto run = open_checkpoint(path);
  if (!run) return LoraFile(path, network);
  if (!has_adapters(run->folder()))
    fail_usage("'{}' has no adapters: it is a model of its own", run->folder());
  LoraFile file(lora_folder(run->folder()));
  if (auto average = ema ? run->average() : nullptr) file.use_values(std::move(average));
  return file;
}

DType stored_type(const ModelFolder& model) {
  const std::vector<io::TensorView>& tensors = model.tensors().tensors();
  if (std::ranges::any_of(tensors, is_coded)) return DType::bf16;
  return tensors.empty() || tensors.front().dtype == "F32" ? DType::f32 : DType::bf16;
}

namespace {

/// Puts the adapters of choice.sets on the model; `ema`: the averaged ones of a run.
void add_adapters(LoadedModel& model, const AdapterChoice& choice, bool ema, int number) {
  std::optional<int> network;
  if (model.facts.boundary) network = number;
  std::vector<CountedAdapters> adapters;
  for (const AdapterChoice::Set& set : choice.sets) {
    CountedAdapters some = retry_if_gone(set.path, [&]() -> CountedAdapters {
      if (const auto run = open_checkpoint(set.path)) run->verify(0, 1);
      return {open_adapters(set.path, ema, network), set.scale};
    });
    model.adapters.push_back({some.file.hash(), set.scale, choice.separate, some.file.path()});
    if (!some.file.empty()) adapters.push_back(std::move(some));
  }
  if (model.decoder)
    adapt(*model.decoder, adapters, choice.separate);
  else
    adapt(*model.network, adapters, choice.separate);
}

/// A model without values, and where they are.
struct UnfilledModel {
  const ModelFolder* weights = nullptr;
  AdapterChoice adapters;  ///< to put on the model
  LoadedModel loaded;
};

UnfilledModel make_unfilled(const OpenedModel& opened, std::optional<DType> compute, Device device,
                            const AdapterChoice& choice, const LoadingRanks& ranks) {
  const ModelFolder& model = opened.folder();
  model.verify(ranks.rank(), ranks.size());
  UnfilledModel unfilled{
      &model, choice, {nullptr, opened.facts(), model.folder(), model.averaged()}};
  LoadedModel& loaded = unfilled.loaded;
  ModelFacts& facts = loaded.facts;
  if (!compute) compute = model.is_checkpoint() ? facts.trained_in : stored_type(model);
  loaded.compute = *compute;
  loaded.pipeline = model.is_pipeline();
  if (loaded.pipeline && *compute != DType::bf16) facts.round_time = false;
  if (ranks.rank() == 0) loaded.hash = hash_all(model);
  choice.check_for(model);

  if (const ModelFolder* const under = model.under()) {
    under->verify(ranks.rank(), ranks.size());
    hash_under(*under, model.folder());
    unfilled.weights = under;
    unfilled.adapters.sets = {{model.folder()}};
  }
  if (!unfilled.adapters.sets.empty() &&
      (ranks.layout.tp_size() * ranks.layout.pp_size() > 1 || ranks.layout.blocks))
    fail_usage(
        "ranks that share the matrices of a network (tp, pp, shard) take no adapters: share clips "
        "by cfg and cp, or leave the adapters out");
  const ModelConfig config = model.under() ? read_model_config(*unfilled.weights) : opened.config();
  if (const auto* decoder = std::get_if<DecoderConfig>(&config))
    loaded.decoder = std::make_unique<CausalDecoder>(*decoder, 0, *compute, device, false,
                                                     writing_layout(*decoder, ranks.layout));
  else
    loaded.network =
        make_network(std::get<NetworkConfig>(config), 0, *compute, device, false, ranks.layout);
  return unfilled;
}

/// The model with its network of this number.
LoadedModel load_number(int number, const OpenedModel& model, std::optional<DType> compute,
                        Device device, const AdapterChoice& adapters, const LoadingRanks& ranks) {
  UnfilledModel unfilled;
  ranks.agree([&] { unfilled = make_unfilled(model, compute, device, adapters, ranks); });
  LoadedModel& loaded = unfilled.loaded;
  if (ranks.group) loaded.hash = dist::broadcast_bytes(*ranks.group, loaded.hash, 0);
  const io::TensorSet& weights = unfilled.weights->weights();
  if (ranks.group)
    load_parameters(weights, nn::states_of(loaded.parameters()), *ranks.group);
  else
    load_parameters(weights, loaded.parameters());
  const AdapterChoice& sets = unfilled.adapters;
  if (!sets.sets.empty()) ranks.agree([&] { add_adapters(loaded, sets, model.ema(), number); });
  return std::move(loaded);
}

}  // namespace

LoadedModel load_model(const OpenedModel& model, std::optional<DType> compute, Device device,
                       const AdapterChoice& adapters, const LoadingRanks& ranks) {
  LoadedModel loaded = load_number(0, model, compute, device, adapters, ranks);
  if (!loaded.facts.boundary) return loaded;
  LoadingRanks later{.group = ranks.sharing, .layout = ranks.layout};
  const auto load = [=, path = loaded.folder, ema = model.ema(), compute = loaded.compute,
                     hash = loaded.hash, later = std::move(later)](int number) {
    const char* const part = number == 0 ? kFirstNetwork : kSecondNetwork;
    const auto begin = std::chrono::steady_clock::now();
    LoadedModel other =
        load_number(number, OpenedModel(path, ema, part), compute, device, adapters, later);
    if (other.hash != hash)
      fail("'{}' has changed since its first clip was begun: run the command again", path);
    log_info("'{}' of '{}' is in memory, loaded in {:.3g} s", part, path,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return std::move(other.network);
  };
  loaded.network = std::make_unique<SwitchedNetwork>(std::move(loaded.network), load);
  return loaded;
}

}  // namespace vfm::models
