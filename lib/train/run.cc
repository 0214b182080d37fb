// SPDX-License-Identifier: Apache-2.0
#include "train/run.h"

#include <fmt/format.h>
#include <omp.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "dist/together.h"
#include "io/atomic_file.h"
#include "io/folder_lock.h"
#include "io/held_begin.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/lora_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/generation_facts.h"
#include "train/cost/memory.h"
#include "train/data/blend.h"
#include "train/data/shared_files.h"
#include "train/kind.h"
#include "train/plan/tp_chunks.h"
#include "train/recipe/recipe_file.h"
#include "train/report/run_log.h"
#include "train/report/training_report.h"
#include "train/run_folder.h"
#include "train/state/beginning.h"
#include "train/state/next_stage.h"
#include "train/step/folder_validations.h"
#include "train/step/trainer.h"

namespace vfm::train {
namespace {

class Run {
 public:
  Run(const RunOptions& options, dist::World& world, io::ManifestWriter& manifest,
      Progress& progress)
      : options_(options),
        recipe_(options.recipe),
        world_(world),
        manifest_(manifest),
        progress_(progress),
        log_(options, recipe_, world) {
    given_.emplace(share_small_files(world, options));
    on_all_ranks(world, [&] {  // what all refuse alike is said once
      data_ = open_data(options);
      check();
    });
    settle_tp_chunks(recipe_, options.device, world);
  }

  /// Opens the folder and the state to continue from.
  void start();
  /// Begins the time of the next step. Returns false if there is none.
  bool next_step();
  Trainer& trainer() { return *trainer_; }
  /// A step without data still reports the samples that it lacked.
  void say_failures();
  /// What follows a step: log, validation, checkpoint.
  void finish_step(const StepResult& result);
  /// Returns the number of samples that could not be read.
  long end();
  /// Of a run that a signal ends.
  void say_stopped() const {
    if (leader() && trainer_)
      train::say_stopped(options_, trainer_->state().step, last_step(), newest_);
  }

 private:
  bool leader() const { return world_.rank() == 0; }
  void check();
  MemoryNeed need_of(nn::Recompute recompute) const {
    return memory_need(recipe_, world_.size(), recompute, options_.device,
                       fullest_pack(recipe_, *data_));
  }
  double usable() const { return memory_beside(recipe_, *data_, options_.device, world_); }
  void open();
  void resume(const std::string& folder, const std::string& train_text);
  void take_over(const std::string& folder, const Json& train, const RunState& state,
                 Tables tables);
  void make_trainer();
  void begin();
  void begin_stage();
  void validate();
  void log(const StepResult& result);
  std::int64_t first_step() const { return first_step_after(stages_); }
  std::int64_t last_step() const { return first_step() + recipe_.train.steps; }
  void save();
  void prune();
  Json train_json() const;
  void announce(const std::string& folder);
  void collect_failures();

  const RunOptions& options_;
  Recipe recipe_;
  const Kind& kind_ = kind_of(recipe_.model.type);
  dist::World& world_;
  io::ManifestWriter& manifest_;
  Progress& progress_;
  std::optional<data::GivenTexts> given_;  // until all data are open
  std::unique_ptr<Dataset> data_;
  std::optional<FolderValidations> validation_;
  io::FolderLock lock_;
  std::optional<Trainer> trainer_;
  RunLog log_;
  models::Origin init_;                          // what load_initial() remembers
  Json stages_ = Json::array();                  // those before this one (train/state/next_stage.h)
  bool due_ = false, ended_ = false;             // a checkpoint; the run
  std::string newest_;                           // checkpoint
  std::map<std::string, std::string> failures_;  // of all ranks, on rank 0
};

/// What is refused before there is anything of the run.
void Run::check() {
  check_offload(recipe_, options_.device);
  data_->fit(recipe_);
  check_layout(recipe_, world_.size(), world_.least_local_size(), &*data_);
  check_memory(recipe_, world_.size(), options_.device,
               memory_need(recipe_, world_.size(), nn::Recompute::block, options_.device, {}),
               usable());
  if (!recipe_.model.offload) return;
  const std::vector<data::Entry> pack = fullest_pack(recipe_, *data_);
  check_pinned(need_of(choose_recompute(recipe_, world_.size(), options_.device, usable(), pack)),
               world_.local_size());
}

void Run::start() {
  open();
  io::write_held_begin();
  world_.section("step", recipe_.train.step_limit);
  // What the stage begins with, on its data: the earlier run's average.
  if (!validation_->empty() && first_step() > 0 && trainer_->state().step == first_step())
    validate();
  log_.start(*trainer_);
  progress_.start("steps", static_cast<std::uint64_t>(
                               std::max<std::int64_t>(0, last_step() - trainer_->state().step)));
  if (trainer_->state().step >= last_step() && options_.synthetic.empty()) {
    prune();  // what a kill after the last checkpoint left
    announce(newest_);
  }
}

bool Run::next_step() {
  if (ended_ || trainer_->state().step >= last_step()) return false;
  world_.section("step", recipe_.train.step_limit);
  return true;
}

void Run::say_failures() {
  failures_.insert(trainer_->failures().begin(), trainer_->failures().end());
  if (leader()) write_errors(options_.out, failures_);
}

void Run::finish_step(const StepResult& result) {
  const std::int64_t step = trainer_->state().step, steps = last_step();
  ended_ = result.wind_up || step == steps;
  log(result);
  if (!validation_->empty() && (step % recipe_.validation.every == 0 || step == steps)) validate();
  if (result.stop) throw Stopped();
  due_ = due_ || ended_ || step % recipe_.train.checkpoint_every == 0;
  if (due_) save();
}

long Run::end() {
  world_.section("checkpoint", recipe_.train.checkpoint_limit);  // rank 0 may write a report
  if (trainer_->state().skips_in_row > 0 && trainer_->state().step >= last_step())
    fail("the gradient was not finite in the last {}: {}, start over with a lower one",
         counted(trainer_->state().skips_in_row, "step"),
         describe_setting(recipe_, "optimizer.lr"));
  collect_failures();
  if (leader()) {
    write_errors(options_.out, failures_);
    log_.sync();
  }
  if (leader() && !options_.report.empty())
    write_training_report(options_, recipe_, stages_, *trainer_, validation_->first());
  return std::stol(dist::broadcast(world_, std::to_string(failures_.size())));
}

/// Folder, lock, logs; and the state to continue from.
void Run::open() {
  std::string train_text;
  on_all_ranks(world_, [&] {
    // Before anything is cleared: it may find the data wanting.
    validation_.emplace(options_, recipe_, *data_, leader());
    if (leader()) check_run(options_, recipe_);
  });
  given_.reset();
  if (leader()) {
    warn_of_data(*data_);
    lock_ = io::lock_folder(options_.out);
    io::make_directories(io::join_path(options_.out, "checkpoints"));
    models::remove_unfinished_checkpoints(options_.out);
  }
  if (!options_.force) newest_ = newest_good_checkpoint(world_, options_.out);
  if (leader() && !newest_.empty())
    train_text = io::read_file(io::join_path(newest_, "train.json"));
  train_text = dist::broadcast(world_, train_text);
  if (leader()) {
    warn_of_idle_ranks(recipe_, world_.size(), !newest_.empty());
    warn_of_idle_stages(recipe_, world_.size(), !newest_.empty());
  }
  if (!newest_.empty())
    resume(newest_, train_text);
  else if (!options_.earlier.empty())
    begin_stage();
  else
    begin();
  if (leader()) {
    if (newest_.empty()) {
      say_begins_again(options_);
      clear_run(options_.out);  // now that nothing is wrong with what replaces it
    }
    io::update_file(io::join_path(options_.out, "recipe.yaml"), kRecipeHead + to_yaml(recipe_));
    if (trainer_->state().step < last_step()) log_.open(trainer_->state().step);
  }
}

void Run::resume(const std::string& folder, const std::string& train_text) {
  const std::string what = fmt::format("'{}'", io::join_path(folder, "train.json"));
  const Json train = parse_json(train_text, what);
  if (!train.contains("recipe") || !train.contains("state") || !train.contains("log"))
    fail("{} is not what vfm-train writes", what);
  on_all_ranks(world_, [&] {
    check_continues(train, options_, recipe_, data_->fingerprint());
    check_packing(train, options_.out);
  });
  stages_ = earlier_stages(train);
  data_->settle(world_, train);
  make_trainer();
  RunState state = RunState::from_json(train["state"], what);
  state.first_step = first_step();
  take_over(folder, train, state, Tables::same);
  log_.sums = LogSums::from_json(train["log"]);
  if (leader() && train.contains("errors"))
    for (const Json& error : train["errors"])
      failures_[need_string(error, "input", what)] = need_string(error, "error", what);
  if (leader()) say_goes_on(train, recipe_, folder, last_step());
}

/// Weights, moments and average of a checkpoint, and what is under adapters; and where it is.
void Run::take_over(const std::string& folder, const Json& train, const RunState& state,
                    Tables tables) {
  const nn::ParameterList& frozen = trainer_->objective().frozen();
  init_ = models::Origin::from_json(train.value("init", Json()));
  if (!frozen.empty()) init_ = load_base(world_, options_, init_, nn::states_of(frozen));
  read_checkpoint(world_, folder, trainer_->optimizer(), tables, trainer_->other_states());
  trainer_->restore(state);
}

/// A new run that continues another one.
void Run::begin_stage() {
  const EarlierRun earlier = find_earlier(world_, options_, *data_);
  RunState state = RunState::from_json(earlier.train["state"], "the state of the run to continue");
  on_all_ranks(world_, [&] {
    state.data = place_after(earlier, options_, *data_, recipe_);
    check_last_step(state.step, recipe_);
  });
  if (!earlier.same_data) state.of_sources.clear();
  stages_ = earlier.stages;
  state.first_step = first_step();
  data_->settle(world_, {});
  make_trainer();
  take_over(earlier.checkpoint, earlier.train, state, Tables::may_be_longer);
  if (!leader()) return;
  log_info("continuing '{}' after its step {}, {}", earlier.checkpoint, state.step,
           earlier.same_data ? "with the same data" : "with other data");
  for (const std::string& words : other_parts(options_.base, data_->info(), options_.earlier))
    log_warning("{}", words);
  if (const auto changed = recipe_changes(stages_.back()["recipe"], to_json(recipe_));
      !changed.empty())
    log_info("with {}", fmt::join(changed, "; "));
}

/// A new run.
void Run::begin() {
  data_->settle(world_, {});
  make_trainer();
  if (options_.init.empty()) return;
  const auto &frozen = trainer_->objective().frozen(), &own = trainer_->shards().states();
  init_ = load_initial(world_, options_, frozen.empty() ? own : nn::states_of(frozen), own);
  if (leader()) say_begins(options_, recipe_, *data_);
  trainer_->optimizer().restart_ema();
  trainer_->shards().gather();
}

/// Says what it does not keep.
void Run::make_trainer() {
  const Device device = options_.device;
  trainer_.emplace(recipe_, *data_, world_, device);
  trainer_->parallel().mesh().warn_of_slow_tp();
  if (!leader() || (recipe_.model.recompute != "auto" && !recipe_.model.offload)) return;
  const nn::Recompute recompute = trainer_->recompute();
  const MemoryNeed need = need_of(recompute);
  if (recipe_.model.recompute == "auto")
    log_memory(recipe_, world_.size(), need, recompute, device, usable());
  log_offload(recipe_, need, recompute);
}

void Run::log(const StepResult& result) {
  const RunState& state = trainer_->state();
  if (result.skipped && leader())
    log_warning("step {}: the gradient is not finite, the update is skipped", state.step);
  log_.add(result);
  progress_.note(log_.note(result, state, last_step()));
  progress_.add(1);
  if (state.step % recipe_.train.log_every != 0 && state.step != last_step()) return;
  Json of_folders;
  for (std::size_t i = 0; i < state.of_sources.size(); ++i)
    of_folders["folder_samples"][data_->sources()[i].name] = state.of_sources[i];
  log_.write(state, of_folders);
}

/// Of the averaged weights. A collective.
void Run::validate() {
  trainer_->swap_ema();
  Json record = {{"step", trainer_->state().step}};
  record.update(validation_->run(trainer_->objective(), trainer_->parallel()));
  trainer_->swap_ema();
  if (leader()) log_.validation(record);
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
                {"packing", static_cast<int>(data::Packing::blocks)},
                {"recipe", std::move(recipe)},
                {"init", init_.to_json()}};
  train.update(generation_facts(recipe_, *data_, options_.base));
  train.update({{"data_fingerprint", data_->fingerprint()},
                {"log", log_.sums.to_json()},
                {"errors", errors}});
  if (data_->tells_repeats())
    for (const DataSource& source : data_->sources())
      train[kNamedKeys].push_back(source.name);
  if (!stages_.empty()) train["stages"] = stages_;
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
  if (leader()) log_.sync();
  Checkpoint checkpoint{.step = trainer_->state().step,
                        .config = trainer_->objective().config(),
                        .train = leader() ? train_json() : Json(),
                        .optimizer = trainer_->optimizer(),
                        .others = trainer_->other_states()};
  if (recipe_.lora.rank > 0)
    checkpoint.adapters = models::lora_metadata(kind_.adapter_targets(recipe_), recipe_.lora);
  newest_ = write_checkpoint(trainer_->parallel().mesh(), options_.out, checkpoint);
  prune();
  announce(newest_);
  world_.barrier();
}

void Run::prune() {
  if (!leader()) return;
  prune_checkpoints(options_.out, trainer_->state().step, recipe_.train.checkpoint_every,
                    last_step(), recipe_.train.keep);
}

void Run::announce(const std::string& folder) {
  if (!leader()) return;
  const std::int64_t step = trainer_->state().step;
  manifest_.write({{"kind", "checkpoint"},
                   {"path", folder},
                   {"step", step},
                   {"steps", last_step()},
                   {"final", step >= last_step()}});
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
  world.section("setup", options.recipe.train.setup_limit);
  Run run(options, world, manifest, progress);
  try {
    run.start();
    while (run.next_step()) {
      StepResult result;
      try {
        result = run.trainer().train_step();
      } catch (const Error&) {
        run.say_failures();
        throw;
      }
      run.finish_step(result);
    }
    return run.end();
  } catch (const Stopped&) {
    run.say_stopped();
    throw;
  }
}

}  // namespace vfm::train
