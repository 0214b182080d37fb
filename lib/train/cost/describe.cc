// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "models/folder/checkpoint_folder.h"
#include "tensor/device.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/generation_facts.h"
#include "train/cost/less_memory.h"
#include "train/cost/memory.h"
#include "train/cost/step_work.h"
#include "train/cost/workload.h"
#include "train/data/blend.h"
#include "train/data/dataset.h"
#include "train/data/fetch_ahead.h"
#include "train/data/pack_order.h"
#include "train/encoded/encoded_clips.h"
#include "train/kind.h"
#include "train/plan/plan.h"
#include "train/plan/tp_chunks.h"
#include "train/report/signs.h"
#include "train/run.h"
#include "train/state/beginning.h"
#include "train/step/parallel.h"

namespace vfm::train {
namespace {

using EncoderCosts = std::vector<EncoderCost>;

/// Those of the data, where these are encoded while training.
EncoderCosts costs_of_encoders(const Dataset& data) {
  const auto* const clips = dynamic_cast<const EncodedClips*>(&data);
  return clips != nullptr ? clips->costs() : EncoderCosts();
}

/// The time of a step of packs like `pack` on options.gpu, and the memory that it takes there.
Json predicted_step(const RunOptions& options, const Recipe& recipe, const StepWork& work,
                    const Workload& load, const MemoryNeed& need, const EncoderCosts& encoders) {
  const std::vector<data::Entry>& pack = load.pack;
  SampleFlops flops_of(recipe);
  double tokens = 0, flops = 0;
  for (const data::Entry& sample : pack) {
    tokens += static_cast<double>(token_count(sample, recipe.model)) * recipe.data.packs;
    flops += flops_of.of(sample) * recipe.data.packs;
  }
  const models::Gpu& gpu = *options.gpu;
  std::vector<models::TimeLine> lines = models::predict(gpu, work.packs, work.optimizer);
  const auto encoding = encoder_lines(encoders, load.samples_a_step, 1, gpu);
  lines.insert(lines.end(), encoding.begin(), encoding.end());
  return models::prediction(gpu, std::move(lines), tokens, flops,
                            need.total() + encoder_bytes(encoders),
                            models::copy_time(gpu, work.copies));
}

/// The same of a step of the data's packs on many of them.
Json predicted_step(const RunOptions& options, const Recipe& recipe, const Workload& load,
                    nn::Recompute recompute, int ranks, const EncoderCosts& encoders) {
  const models::Gpu& gpu = *options.gpu;
  if (!recipe.parallel.stages.empty())
    fail_usage(
        "--gpu predicts pipelines with the stages that a run itself chooses: leave out "
        "'parallel.stages'");
  Recipe open = recipe;  // the candidate has the layout
  open.parallel = {};
  open.parallel.reduce = recipe.parallel.reduce;
  const LayoutCost cost(open, load.pack, gpu, gpu.per_node, spread_of_packs(load));
  const Costed costed = cost.of(candidate_of(recipe, ranks, gpu.per_node, recompute), true);
  const StepTime time = costed.fits ? costed.time : cost.time(costed.candidate);
  std::vector<models::TimeLine> lines;
  for (const auto& [term, seconds] : time.terms)
    lines.push_back({term, seconds});
  const auto encoding = encoder_lines(encoders, load.samples_a_step, ranks, gpu);
  lines.insert(lines.end(), encoding.begin(), encoding.end());
  Json predicted = models::prediction(gpu, lines, load.tokens_a_step, load.flops_a_step / ranks,
                                      costed.memory() + encoder_bytes(encoders));
  for (Json& line : predicted["lines"])
    for (const char* counted : {"calls", "flops", "bytes"})
      line.erase(counted);
  return predicted;
}

/// Signs that such a run is worse than it need be.
Json signs_of_cost(const Recipe& recipe, const Workload& load, const Json& cost, int ranks,
                   std::string less_memory) {
  const Json& memory = cost["memory_bytes"];
  const double total = memory["total"].get<double>(), usable = memory["usable"].get<double>();
  const dist::Layout layout = dist::fit_layout(recipe.parallel.sizes(), ranks);
  const RankPacks packs = packs_of_rank(recipe, ranks);
  const PackSpread spread = spread_of_packs(load);
  Signs signs = signs_of_shape(total / usable, layout.pp, recipe.parallel.vpp, packs.passes(),
                               spread.slowest(recipe.data.packs, layout.dp) * layout.dp /
                                   (spread.mean() * recipe.data.packs));
  if (cost.contains("predicted")) {
    const Json& predicted = cost["predicted"];
    Json step = {{"seconds", predicted["seconds"]},
                 {"memory_bytes", total},
                 {"mfu", predicted["mfu"]},
                 {"terms", Json::object()}};
    for (const Json& line : predicted["lines"])
      step["terms"][line["name"].get<std::string>()] = line["seconds"];
    signs = signs_of_plan(step, usable, load.read_seconds / layout.dp);
  }
  signs.less_memory = std::move(less_memory);
  Json words = Json::array();
  for (const Sign& sign : signs_of(signs))
    words.push_back(sign.words);
  return words;
}

/// Ranks along each axis.
Json layout_of(const Recipe& recipe, int ranks) {
  const dist::Layout layout = dist::fit_layout(recipe.parallel.sizes(), ranks);
  Json sizes;
  for (const dist::Axis& axis : dist::all_axes())
    if (const int size = layout.*axis.size; size > 1 || axis.always_named) sizes[axis.name] = size;
  if (layout.tp > 1 && recipe.parallel.chunks() > 1) sizes["tp_chunks"] = recipe.parallel.chunks();
  return sizes;
}

/// Of each stage of a pipeline its blocks and what memory it needs.
Json stages_json(const Recipe& recipe, int ranks, nn::Recompute recompute, Device device,
                 const std::vector<data::Entry>& pack) {
  const std::unique_ptr<dist::World> world = dist::counted_world(0, ranks);
  const Parallel parallel(recipe, *world);
  const std::vector<int>& chunks = parallel.network().stages;
  Json stages = Json::array();
  for (const MemoryNeed& need : memory_of_stages(recipe, ranks, recompute, device, pack)) {
    int blocks = 0;
    for (std::size_t chunk = stages.size(); chunk < chunks.size();
         chunk += static_cast<std::size_t>(recipe.parallel.pp))
      blocks += chunks[chunk];
    const auto rounded = [](double value) { return static_cast<std::int64_t>(value); };
    stages.push_back({{"blocks", blocks},
                      {"weights", rounded(need.weights)},
                      {"activations", rounded(need.activations)},
                      {"pinned", rounded(need.pinned)},
                      {"total", rounded(need.total())}});
  }
  return stages;
}

/// What is on the device beside the model.
struct Beside {
  double encoders = 0, communicators = 0, fetched = 0;
  double all() const { return encoders + communicators + fetched; }
};

Json memory_json(const MemoryNeed& need, double usable, const Beside& beside) {
  const auto rounded = [](double value) { return static_cast<std::int64_t>(value); };
  return {{"weights", rounded(need.weights)},
          {"gradients", rounded(need.gradients)},
          {"moments", rounded(need.moments)},
          {"average", rounded(need.average)},
          {"activations", rounded(need.activations)},
          {"host", rounded(need.host)},
          {"mpi", rounded(need.mpi)},
          {"total", rounded(need.total() + beside.all())},
          {"construction", rounded(need.construction)},
          {"load", rounded(need.load)},
          {"save", rounded(need.save)},
          {"usable", rounded(usable)},
          {"pinned", rounded(need.pinned)},
          {"encoders", rounded(beside.encoders)},
          {"communicators", rounded(beside.communicators)},
          {"fetched", rounded(beside.fetched)}};
}

Json sent_bytes(const StepWork& work) {
  Json sent = Json::object();
  for (const auto& [axis, bytes] : work.sent)
    sent[axis] = static_cast<std::int64_t>(bytes);
  return sent;
}

/// Refuses what a run would that goes on at a checkpoint.
void check_begun(const RunOptions& options, const Recipe& recipe, const Dataset& data) {
  if (options.out.empty() || options.force) return;
  const std::string newest = newest_good_checkpoint(*dist::self_world(), options.out);
  if (newest.empty()) return;
  const Json train = models::read_train_json(newest);
  check_continues(train, options, recipe, data.fingerprint());
  check_packing(train, options.out);
}

}  // namespace

Json training_cost(const RunOptions& options, int ranks) {
  check_offload(options.recipe, options.device);
  check_run(options, options.recipe);
  warn_of_idle_stages(options.recipe, ranks);
  Recipe recipe = options.recipe;
  const Kind& kind = kind_of(recipe.model.type);
  Workload load;
  Json folders;
  EncoderCosts encoders;
  const bool given = !options.data.empty() || !options.synthetic.empty();
  const std::unique_ptr<Dataset> set = given ? open_data(options) : nullptr;
  if (set) {
    set->fit(recipe);
    warn_of_data(*set);
    check_begun(options, recipe, *set);
    const std::string& model = options.init.empty() ? options.earlier : options.init;
    for (const std::string& sentence : other_parts(options.base, set->info(), model))
      log_warning("{}", sentence);
    load = measure(recipe, *set);
    folders = folders_after(*set, load.samples_a_step * static_cast<double>(recipe.train.steps));
    encoders = costs_of_encoders(*set);
    if (options.gpu != nullptr && !options.data.empty())
      load.read_seconds = time_reading(recipe, *set);
  } else {
    kind.fit_without_data(recipe);
    load = assume(recipe);
  }
  const int of_machine = options.gpu != nullptr ? std::min(options.gpu->per_node, ranks) : ranks;
  check_layout(recipe, ranks, of_machine, set.get());
  warn_of_idle_ranks(recipe, ranks);
  settle_tp_chunks(recipe, options.gpu != nullptr ? options.gpu : gpu_here(options.device),
                   of_machine);
  const double usable = options.gpu != nullptr ? options.gpu->usable()
                                               : usable_memory(options.device, options.local_ranks);
  const Beside beside{encoder_bytes(encoders),
                      communicator_bytes(recipe, ranks, of_machine, options.device),
                      set && options.device == Device::cpu ? fetch_bytes(recipe, *set) : 0};
  const double left = usable - beside.all();
  const nn::Recompute recompute = choose_recompute(recipe, ranks, options.device, left, load.pack);
  const MemoryNeed need = memory_need(recipe, ranks, recompute, options.device, load.pack);
  if (recipe.model.recompute == "auto" && need.total() > left)
    log_memory(recipe, ranks, need, recompute, options.device, left);
  const StepWork work = step_work(recipe, ranks, recompute, options.device, load.pack);
  const auto [parameters, trained, kept] = model_numbers(recipe);
  const double learnt = static_cast<double>(trained);
  const double average = recipe.ema.mode == "off" ? 0 : 4 * learnt;
  Json memory = memory_json(need, usable, beside);
  memory["snapshot"] = static_cast<std::int64_t>(snapshot_bytes(recipe, ranks));
  if (need.mpi == 0) memory.erase("mpi");
  if (encoders.empty()) memory.erase("encoders");
  if (beside.communicators == 0) memory.erase("communicators");
  if (beside.fetched == 0) memory.erase("fetched");
  if (recipe.parallel.pp > 1)
    memory["stages"] = stages_json(recipe, ranks, recompute, options.device, load.pack);
  Json cost = {{"kind", "cost"},
               {"data", load.source},
               {"device", options.gpu != nullptr           ? options.gpu->full_title()
                          : options.device == Device::cuda ? describe_gpu()
                                                           : "cpu"}};
  if (!options.init.empty()) cost["init"] = options.init;
  if (!options.earlier.empty()) cost["continues"] = options.earlier;
  cost.update({{"parameters", parameters},
               {"trained", trained},
               {"lora_rank", recipe.lora.rank},
               {"ranks", ranks},
               {"layout", layout_of(recipe, ranks)},
               {"samples_per_step", load.samples_a_step},
               {"tokens_per_step", load.tokens_a_step},
               {"steps", recipe.train.steps},
               {"flops_per_step", load.flops_a_step},
               {"flops", load.flops_a_step * static_cast<double>(recipe.train.steps)},
               {"recompute", nn::recompute_name(recompute)},
               {"offload", recipe.model.offloads(recompute)},
               {"memory_bytes", memory},
               {"checkpoint_bytes", static_cast<std::int64_t>(4 * learnt + kept + average)},
               {"work_per_step", work_by_kind(work)},
               {"sent_bytes_per_step", sent_bytes(work)},
               {"kernels", work_by_kernel(work)}});
  if (!encoders.empty()) cost["encoders"] = encoder_json(encoders, load.samples_a_step);
  if (options.gpu != nullptr)
    cost["predicted"] = ranks == 1
                            ? predicted_step(options, recipe, work, load, need, encoders)
                            : predicted_step(options, recipe, load, recompute, ranks, encoders);
  if (!folders.empty()) cost["folders"] = folders;
  cost["signs"] = signs_of_cost(recipe, load, cost, ranks,
                                less_memory(recipe, ranks, recompute, options.device, need, left));
  return cost;
}

std::string training_words(const Json& cost) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<22} {}\n", name, value);
  };
  const auto count = [](const Json& value) { return format_count(value.get<double>()); };
  const auto bytes = [](const Json& value) { return format_bytes(value.get<double>()); };
  const auto flops = [](const Json& value) {
    return models::count_words(value.get<double>(), "FLOPs");
  };
  const Json& memory = cost["memory_bytes"];
  line("data", cost["data"].get<std::string>());
  line("device", cost["device"] == "cpu" ? "the CPU" : cost["device"].get<std::string>());
  if (cost.contains("init")) line("begins from", cost["init"].get<std::string>());
  if (cost.contains("continues")) line("continues", cost["continues"].get<std::string>());
  line("parameters", fmt::format("{} ({})", cost["parameters"].dump(), count(cost["parameters"])));
  if (cost["lora_rank"] != 0)
    line("  trained",
         fmt::format("{} ({}), adapters of rank {}; the others are frozen", cost["trained"].dump(),
                     count(cost["trained"]), cost["lora_rank"].dump()));
  const Json& layout = cost["layout"];
  std::vector<std::string> sizes;
  for (const dist::Axis& axis : dist::all_axes())
    if (layout.contains(axis.name))
      sizes.push_back(fmt::format("{} {}", axis.name, layout[axis.name].dump()));
  line("ranks", cost["ranks"] == 1
                    ? "1"
                    : fmt::format("{} ({})", cost["ranks"].dump(), fmt::join(sizes, ", ")));
  if (layout.contains("tp_chunks"))
    line("  rows along tp",
         fmt::format("in {} chunks, beside products", layout["tp_chunks"].dump()));
  line("samples per step", fmt::format("{:.1f}", cost["samples_per_step"].get<double>()));
  line("tokens per step", fmt::format("{:.0f}", cost["tokens_per_step"].get<double>()));
  line("steps", cost["steps"].dump());
  if (cost.contains("folders")) {
    line("folders", "in the run");
    for (const Json& one : cost["folders"])
      line(fmt::format("  {}", one["folder"].get<std::string>()).c_str(),
           fmt::format("{:.4g} % of the samples: {}, {:.3g} times its {}",
                       100 * one["share"].get<double>(), count(one["seen"]),
                       one["epochs"].get<double>(), count(one["samples"])));
  }
  line("FLOPs per step", flops(cost["flops_per_step"]));
  line("FLOPs of the run", flops(cost["flops"]));
  for (const Json& encoder : cost.value("encoders", Json::array()))
    line(fmt::format("  {}", encoder["part"].get<std::string>()).c_str(),
         fmt::format("{}: {} per step besides, for encoding clips",
                     encoder["name"].get<std::string>(), flops(encoder["flops_per_step"])));
  line("memory per rank",
       fmt::format("{} ({} usable)", bytes(memory["total"]), bytes(memory["usable"])));
  for (const char* kind : {"weights", "gradients", "moments"})
    line(fmt::format("  {}", kind).c_str(), bytes(memory[kind]));
  if (memory["average"] != 0) line("  average (ema)", bytes(memory["average"]));
  const bool offload = cost["offload"].get<bool>();
  line("  activations",
       fmt::format("{} (recompute {}{})", bytes(memory["activations"]),
                   cost["recompute"].get<std::string>(), offload ? ", offload" : ""));
  if (memory["host"] != 0)
    line("  program and data",
         bytes(memory["host"]) +
             (memory.contains("mpi") ? fmt::format(", of it MPI's {}", bytes(memory["mpi"])) : ""));
  if (memory.contains("encoders")) line("  encoders of clips", bytes(memory["encoders"]));
  if (memory.contains("communicators")) line("  communicators", bytes(memory["communicators"]));
  if (memory.contains("fetched")) line("  fetched ahead", bytes(memory["fetched"]));
  if (memory.contains("stages")) {
    line("memory per stage", "that of the fullest is above");
    long number = 0;
    for (const Json& stage : memory["stages"])
      line(fmt::format("  {}", number++).c_str(),
           fmt::format("{} of {}", bytes(stage["total"]),
                       counted(stage["blocks"].get<std::int64_t>(), "block")));
  }
  if (offload)
    line("pinned memory per rank",
         bytes(memory["pinned"]) + " of the host's, for what is offloaded");
  line("checkpoint", bytes(cost["checkpoint_bytes"]));
  line(
      "snapshot per rank",
      bytes(memory["snapshot"]) +
          " of the host's memory, for the checkpoint that is being written; twice in /dev/shm, and "
          "about as much again while ranks on GPUs send each other the parts that they share");
  line("work per step, rank", "of packs like the fullest, with what is recomputed");
  for (const auto& [kind, work] : cost["work_per_step"].items())
    line(fmt::format("  {}", kind).c_str(),
         (work["flops"] == 0 ? "" : flops(work["flops"]) + ", ") + bytes(work["bytes"]) +
             " of memory read and written");
  if (const Json& sent = cost["sent_bytes_per_step"]; !sent.empty()) {
    line("sent per step, rank", "of the first rank, without samples");
    for (const auto& [axis, bytes_sent] : sent.items())
      line(fmt::format("  {}", axis).c_str(), bytes(bytes_sent));
  }
  if (cost.contains("predicted")) {
    const Json& predicted = cost["predicted"];
    line("predicted step", fmt::format("{:.4g} s", predicted["seconds"].get<double>()));
    text += models::prediction_words(predicted);
  }
  for (const Json& sign : cost["signs"])
    text += fmt::format("note: {}\n", sign.get<std::string>());
  return text;
}

}  // namespace vfm::train
