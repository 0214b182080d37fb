// SPDX-License-Identifier: Apache-2.0
#include "train/run.h"

#include <omp.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "dist/together.h"
#include "io/atomic_file.h"
#include "io/folder_lock.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/lora_file.h"
#include "tensor/device.h"
#include "train/beginning.h"
#include "train/blend.h"
#include "train/checkpoint.h"
#include "train/generation_facts.h"
#include "train/log_sums.h"
#include "train/memory.h"
#include "train/metrics.h"
#include "train/rank_timing.h"
#include "train/recipe_file.h"
#include "train/run_folder.h"
#include "train/signs.h"
#include "train/tp_chunks.h"
#include "train/trainer.h"
#include "train/training_report.h"
#include "train/validations.h"

namespace vfm::train {
namespace {

using Clock = std::chrono::steady_clock;

/// What depends on the machine, since the last line of timing.jsonl.
struct TimingSums {
  Clock::time_point begin = Clock::now();
  std::int64_t tokens = 0, steps = 0;
  double flops = 0, data_seconds = 0, read_bytes = 0;
};

class Run {
 public:
  Run(const RunOptions& options, dist::World& world, io::ManifestWriter& manifest,
      Progress& progress)
      : options_(options),
        recipe_(options.recipe),
        world_(world),
        manifest_(manifest),
        progress_(progress),
        data_(open_data(options)) {
    on_all_ranks(world, [&] { check(); });  // what all refuse alike is said once
    settle_tp_chunks(recipe_, options.device, world);
  }

  long train();

 private:
  bool leader() const { return world_.rank() == 0; }
  void check();
  MemoryNeed need_of(models::Recompute recompute) const {
    return memory_need(recipe_, world_.size(), recompute, options_.device,
                       fullest_pack(recipe_, *data_));
  }
  void open();
  void resume(const std::string& folder, const std::string& train_text);
  void make_trainer();
  void begin();
  void log(const StepResult& result);
  void save();
  void prune();
  Json train_json() const;
  void announce(const std::string& folder);
  void collect_failures();

  const RunOptions& options_;
  Recipe recipe_;
  dist::World& world_;
  io::ManifestWriter& manifest_;
  Progress& progress_;
  std::unique_ptr<Dataset> data_;
  std::optional<Validations> validation_;
  io::File lock_;
  std::optional<Trainer> trainer_;
  std::optional<MetricsLog> metrics_;  // on rank 0
  LogSums sums_;
  TimingSums timing_;
  SignWatch signs_;
  models::Origin init_;                          // what load_initial() remembers
  bool due_ = false;                             // a checkpoint
  std::string newest_;                           // checkpoint
  std::map<std::string, std::string> failures_;  // of all ranks, on rank 0
};

/// What is refused before there is anything of the run.
void Run::check() {
  data_->fit(recipe_);
  check_layout(recipe_, world_.size(), world_.least_local_size());
  check_memory(recipe_,
               memory_need(recipe_, world_.size(), models::Recompute::block, options_.device, {}),
               usable_memory(options_.device, world_.local_size()));
  if (recipe_.model.offload) {
    const double usable = usable_memory(options_.device, world_.local_size());
    const std::vector<data::Entry> pack = fullest_pack(recipe_, *data_);
    check_pinned(need_of(choose_recompute(recipe_, world_.size(), options_.device, usable, pack)),
                 world_.local_size());
  }
}

long Run::train() {
  open();
  timing_.begin = Clock::now();
  timing_.tokens = trainer_->state().tokens;
  const std::int64_t steps = recipe_.train.steps;
  progress_.start("steps", static_cast<std::uint64_t>(
                               std::max<std::int64_t>(0, steps - trainer_->state().step)));
  if (trainer_->state().step >= steps && options_.synthetic.empty()) {
    prune();  // what a kill after the last checkpoint left
    announce(newest_);
  }
  bool ended = false;
  while (!ended && trainer_->state().step < steps) {
    world_.section("step", recipe_.train.step_limit);
    StepResult result;
    try {
      result = trainer_->train_step();
    } catch (const Error&) {  // a step without data still reports the samples that it lacked
      failures_.insert(trainer_->failures().begin(), trainer_->failures().end());
      if (leader()) write_errors(options_.out, failures_);
      throw;
    }
    const std::int64_t step = trainer_->state().step;
    ended = result.wind_up || step == steps;
    log(result);
    if (!validation_->empty() && (step % recipe_.validation.every == 0 || step == steps)) {
      trainer_->swap_ema();
      Json record = {{"step", step}};
      record.update(validation_->run(trainer_->objective(), trainer_->parallel()));
      if (leader() && !std::isfinite(record["val_loss"].get<double>()))
        log_warning("step {}: the validation loss is not a number", step);
      trainer_->swap_ema();
      if (leader()) metrics_->metrics(record);
      if (leader()) log_info("{}", validation_words(record));
    }
    if (result.stop) throw Stopped();
    due_ = due_ || ended || step % recipe_.train.checkpoint_every == 0;
    if (due_) save();
  }
  world_.section("checkpoint", recipe_.train.checkpoint_limit);  // rank 0 may write a report
  if (trainer_->state().skips_in_row > 0 && trainer_->state().step >= steps)
    fail("the gradient was not finite in the last {} steps: {}, start over with a lower one",
         trainer_->state().skips_in_row, describe_setting(recipe_, "optimizer.lr"));
  collect_failures();
  if (leader()) write_errors(options_.out, failures_);
  if (leader() && !options_.report.empty())
    write_training_report(options_, recipe_, *trainer_, validation_->first());
  if (trainer_->state().step < steps)
    log_info("asked to end at step {} of {}; the same command continues", trainer_->state().step,
             steps);
  return std::stol(dist::broadcast(world_, std::to_string(failures_.size())));
}

/// Folder, lock, logs; and the state to continue from.
void Run::open() {
  std::string train_text;
  // Before anything is cleared: it may find the data wanting.
  validation_.emplace(options_, recipe_, *data_, leader());
  if (leader()) {
    check_run(options_, recipe_);
    warn_of_idle_stages(recipe_, world_.size());
    lock_ = io::lock_folder(options_.out);
    io::make_directories(io::join_path(options_.out, "checkpoints"));
  }
  if (!options_.force) newest_ = newest_good_checkpoint(world_, options_.out);
  if (leader() && !newest_.empty())
    train_text = io::read_file(io::join_path(newest_, "train.json"));
  train_text = dist::broadcast(world_, train_text);
  if (newest_.empty())
    begin();
  else
    resume(newest_, train_text);
  if (leader()) {
    if (newest_.empty())
      clear_run(options_.out);  // now that nothing is wrong with what replaces it
    io::update_file(io::join_path(options_.out, "recipe.yaml"), kRecipeHead + to_yaml(recipe_));
    if (trainer_->state().step < recipe_.train.steps)
      metrics_.emplace(options_.out, world_.host(), trainer_->state().step);
  }
}

void Run::resume(const std::string& folder, const std::string& train_text) {
  const std::string what = fmt::format("'{}'", io::join_path(folder, "train.json"));
  const Json train = parse_json(train_text, what);
  if (!train.contains("recipe") || !train.contains("state") || !train.contains("log"))
    fail("{} is not what vfm-train writes", what);
  on_all_ranks(world_, [&] {
    check_continues(train, options_, recipe_, data_->fingerprint());
    recipe_.data.packing = packing_of(train, options_);
  });
  make_trainer();
  const nn::ParameterList& frozen = trainer_->objective().frozen();
  init_ = models::Origin::from_json(train.value("init", Json()));
  if (!frozen.empty()) init_ = load_base(world_, options_, init_, nn::states_of(frozen));
  read_checkpoint(world_, folder, trainer_->optimizer());
  trainer_->restore(RunState::from_json(train["state"], what));
  sums_ = LogSums::from_json(train["log"]);
  if (leader() && train.contains("errors"))
    for (const Json& error : train["errors"])
      failures_[need_string(error, "input", what)] = need_string(error, "error", what);
  log_info("continuing from '{}'", folder);
  if (const char* const way = old_packs(recipe_.data.packing, data_->size()))
    log_info("with packs {}, as the run began", way);
  if (const auto changed = changed_settings(train["recipe"], recipe_, true); !changed.empty())
    log_info("with {}", fmt::join(changed, "; "));
}

/// A new run.
void Run::begin() {
  make_trainer();
  if (options_.init.empty()) return;
  const auto &frozen = trainer_->objective().frozen(), &own = trainer_->shards().states();
  init_ = load_initial(world_, options_, frozen.empty() ? own : nn::states_of(frozen), own);
  if (leader()) {
    log_info("beginning from '{}'", options_.init);
    for (const std::string& words : other_parts(options_.base, data_->info(), options_.init))
      log_warning("{}", words);
    if (const int tokens = recipe_.diffusion.text_padding; tokens > 0)
      log_info("texts are filled up to {} tokens ('diffusion.text_padding')", tokens);
  }
  trainer_->optimizer().restart_ema();
  trainer_->shards().gather();
}

/// Says what it does not keep.
void Run::make_trainer() {
  const Device device = options_.device;
  trainer_.emplace(recipe_, *data_, world_, device);
  trainer_->parallel().mesh().warn_of_slow_tp();
  if (!leader() || (recipe_.model.recompute != "auto" && !recipe_.model.offload)) return;
  const models::Recompute recompute = trainer_->recompute();
  const MemoryNeed need = need_of(recompute);
  if (recipe_.model.recompute == "auto")
    log_memory(recipe_, need, recompute, device, usable_memory(device, world_.local_size()));
  log_offload(recipe_, need, recompute);
}

void Run::log(const StepResult& result) {
  const RunState& state = trainer_->state();
  if (result.skipped && leader())
    log_warning("step {}: the gradient is not finite, the update is skipped", state.step);
  sums_.add(result);
  timing_.flops += result.flops;
  timing_.data_seconds += result.data_seconds;
  timing_.read_bytes += result.own_read_bytes;
  ++timing_.steps;
  progress_.note(fmt::format("loss {:.4f}", result.loss.mean()));
  progress_.add(1);
  if (state.step % recipe_.train.log_every != 0 && state.step != recipe_.train.steps) return;

  Json record = sums_.record(state);
  for (std::size_t i = 0; i < state.of_sources.size(); ++i)
    record["folder_samples"][data_->sources()[i].name] = state.of_sources[i];
  sums_ = {};
  const double seconds = std::chrono::duration<double>(Clock::now() - timing_.begin).count();
  const double tokens = static_cast<double>(state.tokens - timing_.tokens);
  Json timing = {
      {"step", state.step},
      {"seconds_per_step", seconds / static_cast<double>(timing_.steps)},
      {"tokens_per_second", tokens / seconds},
      {"tflops", timing_.flops / seconds * 1e-12},
      {"data_wait", timing_.data_seconds / seconds},
      {"memory_peak", options_.device == Device::cuda ? cuda_memory().peak : cpu_memory().peak}};
  if (const double peak = peak_tflops(recipe_, options_.device); peak > 0)
    timing["mfu"] = timing_.flops / seconds * 1e-12 / (peak * static_cast<double>(world_.size()));
  const RankTiming own{.steps = timing_.steps,
                       .seconds = seconds,
                       .data_seconds = timing_.data_seconds,
                       .read_bytes = timing_.read_bytes,
                       .memory_peak = timing["memory_peak"].get<double>()};
  if (world_.size() > 1) timing.update(timing_of_ranks(world_, own));
  timing_ = {};
  timing_.tokens = state.tokens;
  if (!leader()) return;
  metrics_->metrics(record);
  metrics_->timing(timing);
  const double usable = usable_memory(options_.device, world_.local_size());
  for (const std::string& sign : signs_.news(timing, usable))
    log_warning("step {}: {}", state.step, sign);
  log_info("step {}  loss {:.4f}  grad norm {:.3f}  {} tokens/s", state.step,
           record.value("loss", std::nan("")), record.value("grad_norm", std::nan("")),
           format_count(timing["tokens_per_second"].get<double>()));
}

Json Run::train_json() const {
  Json errors = Json::array();
  for (const auto& [key, message] : failures_)
    errors.push_back({{"input", key}, {"error", message}});
  Json recipe = to_json(recipe_);
  recipe.erase("parallel");  // a checkpoint has the same bytes however the ranks share the work
  Json train = {{"version", 1},
                {"step", trainer_->state().step},
                {"seed", recipe_.train.seed},
                {"state", trainer_->state().to_json()},
                {"packing", static_cast<int>(recipe_.data.packing)},
                {"recipe", std::move(recipe)},
                {"init", init_.to_json()}};
  train.update(generation_facts(recipe_, *data_, options_.base));
  train.update(
      {{"data_fingerprint", data_->fingerprint()}, {"log", sums_.to_json()}, {"errors", errors}});
  return train;
}

/// Not among steps that were skipped: the weights before them are the last that are known to be
/// good, and going back to them must stay possible.
void Run::save() {
  if (trainer_->state().skips_in_row > 0) {
    if (leader())
      log_warning("step {}: no checkpoint while the gradient is not finite",
                  trainer_->state().step);
    return;
  }
  due_ = false;
  if (!options_.synthetic.empty()) return;
  world_.section("checkpoint", recipe_.train.checkpoint_limit);
  collect_failures();
  if (leader()) metrics_->sync();
  Checkpoint checkpoint{.step = trainer_->state().step,
                        .config = trainer_->objective().config(),
                        .train = leader() ? train_json() : Json(),
                        .optimizer = trainer_->optimizer()};
  if (recipe_.lora.rank > 0)
    checkpoint.adapters = models::lora_metadata(recipe_.model.dit, recipe_.lora);
  newest_ = write_checkpoint(trainer_->parallel().mesh(), options_.out, checkpoint);
  prune();
  announce(newest_);
  world_.barrier();
}

void Run::prune() {
  if (!leader()) return;
  prune_checkpoints(options_.out, trainer_->state().step, recipe_.train.checkpoint_every,
                    recipe_.train.steps, recipe_.train.keep);
}

void Run::announce(const std::string& folder) {
  if (!leader()) return;
  const std::int64_t step = trainer_->state().step;
  manifest_.write({{"kind", "checkpoint"},
                   {"path", folder},
                   {"step", step},
                   {"steps", recipe_.train.steps},
                   {"final", step >= recipe_.train.steps}});
}

/// Rank 0 learns of every rank's failures. A collective.
void Run::collect_failures() {
  std::map<std::string, std::string> mine = trainer_->failures();
  mine.merge(validation_->failures());
  for (const std::string& text : world_.gather(dump_json(Json(mine)))) {
    const Json failures = parse_json(text, "a rank's list of failures");
    for (const auto& [key, message] : failures.items())
      failures_.emplace(key, message.get<std::string>());
  }
}

}  // namespace

long run(const RunOptions& options, dist::World& world, io::ManifestWriter& manifest,
         Progress& progress) {
  if (options.threads > 0) omp_set_num_threads(options.threads);
  check_offload(options.recipe, options.device);
  world.section("setup", options.recipe.train.setup_limit);
  return Run(options, world, manifest, progress).train();
}

}  // namespace vfm::train
