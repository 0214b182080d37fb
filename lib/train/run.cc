// SPDX-License-Identifier: Apache-2.0
#include "train/run.h"

#include <fmt/format.h>
#include <omp.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/left_behind.h"
#include "base/log.h"
#include "base/save_at_term.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "dist/together.h"
#include "io/atomic_file.h"
#include "io/folder_lock.h"
#include "io/held_begin.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/lora_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_saver.h"
#include "train/checkpoint/generation_facts.h"
#include "train/cost/memory.h"
#include "train/data/blend.h"
#include "train/data/shared_files.h"
#include "train/data/skipped_samples.h"
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
#include "train/stop_file.h"

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
  StepResult train_step();
  /// A step without data still reports the samples that it lacked.
  void say_failures();
  /// What follows a step: log, validation, checkpoint.
  void finish_step(const StepResult& result);
  /// Returns the number of samples that could not be read.
  long end();
  /// True if SIGTERM ended it before its last step.
  bool ended_by_term() const { return by_term_; }
  /// Ends the threads that use the disk.
  void end_threads() {
    saver_.reset();
    stop_file_.reset();
  }
  /// Of a run that a signal ends.
  void say_stopped() {
    if (saver_) saver_->forget();
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
  void settle_data(const Json& train);
  void make_trainer();
  void begin();
  void begin_stage();
  void validate();
  void log(const StepResult& result);
  std::int64_t first_step() const { return first_step_after(stages_); }
  std::int64_t last_step() const { return first_step() + recipe_.train.steps; }
  void save();
  Checkpoint checkpoint();
  void saved(const std::optional<SavedCheckpoint>& checkpoint);
  void prune(std::int64_t step) const;
  Json train_json() const;
  void announce(const std::string& folder, std::int64_t step);
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
  std::optional<models::HeldRun> held_;  // of the leader, while lock_ is held
  std::optional<Trainer> trainer_;
  RunLog log_;
  models::Origin init_;                          // what load_initial() remembers
  Json stages_ = Json::array();                  // those before this one (train/state/next_stage.h)
  std::optional<StopFile> stop_file_;            // on rank 0
  bool due_ = false, ended_ = false;             // a checkpoint; the run
  bool prepared_ = false;                        // room for checkpoints
  bool by_term_ = false;
  std::string newest_;                           // checkpoint
  std::optional<CheckpointSaver> saver_;         // while training
  Stopwatch since_save_;
  FileCopies copies_;                            // of checkpoints, in this host's memory
  std::map<std::string, std::string> failures_;  // of all ranks, on rank 0
  std::vector<std::string> skipped_;             // keys of --skip-samples, on rank 0
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
  saver_.emplace(trainer_->parallel().mesh(), options_.out);
  since_save_ = {};
  log_.start(*trainer_);
  if (leader()) stop_file_.emplace(options_.out);
  progress_.start("steps", static_cast<std::uint64_t>(
                               std::max<std::int64_t>(0, last_step() - trainer_->state().step)));
  if (trainer_->state().step >= last_step() && options_.synthetic.empty()) {
    prune(trainer_->state().step);  // what a kill after the last checkpoint left
    announce(newest_, trainer_->state().step);
  }
}

bool Run::next_step() {
  if (ended_ || trainer_->state().step >= last_step()) return false;
  // Files of a checkpoint may keep a disk busy from which this or another rank reads its data.
  world_.section(saver_->pending() ? "step beside a checkpoint" : "step", recipe_.train.step_limit);
  return true;
}

StepResult Run::train_step() {
  SaveNotes notes = saver_->notes();
  const double minutes = recipe_.train.checkpoint_minutes;
  if (leader() && minutes > 0 && since_save_.seconds() > 60 * minutes) notes.due = 1;
  trainer_->tell(notes);
  return trainer_->train_step();
}

void Run::say_failures() {
  failures_.insert(trainer_->failures().begin(), trainer_->failures().end());
  if (leader()) write_errors(options_.out, failures_);
}

void Run::finish_step(const StepResult& result) {
  const std::int64_t step = trainer_->state().step, steps = last_step();
  ended_ = result.wind_up || step == steps;
  by_term_ = result.term && step < steps;
  log(result);
  if (saver_->pending()) {
    world_.section("checkpoint", recipe_.train.checkpoint_limit);  // parts may be sent now
    saved(saver_->advance(result.save));
  } else if (!prepared_ && options_.synthetic.empty()) {  // when all else has its memory
    prepared_ = true;
    saver_->prepare(checkpoint());
  }
  if (!validation_->empty() && (step % recipe_.validation.every == 0 || step == steps)) validate();
  if (result.stop) throw Stopped();
  due_ = due_ || ended_ || step % recipe_.train.checkpoint_every == 0 || result.save.due > 0;
  const std::int64_t every = recipe_.train.compare_every;
  if (every > 0 && (due_ || step % every == 0)) {
    world_.section("checkpoint", recipe_.train.checkpoint_limit);  // longer than a step
    trainer_->compare_replicas();
  }
  if (due_) save();
}

long Run::end() {
  world_.section("checkpoint", recipe_.train.checkpoint_limit);  // rank 0 may write a report
  // The last one: nothing after it makes up for it.
  const std::optional<SavedCheckpoint> last = saver_->finish(recipe_.train.checkpoint_limit);
  if (last) last->need(world_);
  saved(last);
  saver_->forget();
  if (trainer_->state().skips_in_row > 0 && trainer_->state().step >= last_step())
    fail("the last {} were skipped: {}, start over with a lower one",
         counted(trainer_->state().skips_in_row, "step"),
         describe_setting(recipe_, "optimizer.lr"));
  collect_failures();
  if (leader()) {
    write_errors(options_.out, failures_);
    log_.sync();
  }
  if (leader() && !options_.report.empty())
    write_training_report(options_, recipe_, stages_, *trainer_, validation_->first());
  if (stop_file_) stop_file_->obeyed();
  if (leader() && !by_term_ && trainer_->state().skips_in_row == 0 &&
      trainer_->state().step < last_step())
    log_info("asked to end: saved after step {} of {}", trainer_->state().step, last_step());
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
    held_.emplace(options_.out);
    models::remove_unfinished_checkpoints(options_.out);
  }
  world_.record_to(io::join_path(options_.out, "flight"));
  if (!options_.force) {
    copies_ = snapshot_files(options_.out);
    newest_ = newest_good_checkpoint(world_, options_.out, copies_);
    if (leader() && !newest_.empty() && !copies_.empty())
      log_info("what this host still has in memory of '{}' is read from there", newest_);
  }
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
  remove_snapshots(options_.out);  // nobody makes one before all are in the first step
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
  settle_data(train);
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
  read_checkpoint(world_, folder, trainer_->optimizer(), tables, trainer_->other_states(), copies_);
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
  state.recent = {};
  stages_ = earlier.stages;
  state.first_step = first_step();
  settle_data({});
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
  settle_data({});
  make_trainer();
  if (options_.init.empty()) return;
  const auto &frozen = trainer_->objective().frozen(), &own = trainer_->shards().states();
  init_ = load_initial(world_, options_, frozen.empty() ? own : nn::states_of(frozen), own);
  if (leader()) say_begins(options_, recipe_, *data_);
  trainer_->optimizer().restart_ema();
  trainer_->shards().gather();
}

/// Settles the data; `train` is the train.json of a run that goes on, or null.
void Run::settle_data(const Json& train) {
  data_->settle(world_, train);
  skipped_ = leave_out_skipped(world_, *data_, options_.skip_samples, options_.out, train);
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
  if (result.spike && leader())
    log_warning(
        "step {}: loss {:.4g} and gradient norm {:.4g} are a spike, the update is skipped "
        "({})",
        state.step, result.loss.mean(), result.gradient_norm,
        describe_setting(recipe_, "train.skip_spikes"));
  else if (result.skipped && leader())
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
  world_.section("validation", recipe_.train.step_limit);
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
  if (!skipped_.empty()) train[kSkippedSamples] = skipped_;
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
      log_warning("step {}: no checkpoint while steps are skipped", trainer_->state().step);
    return;
  }
  due_ = false;
  if (!options_.synthetic.empty()) return;
  world_.section("checkpoint", recipe_.train.checkpoint_limit);
  if (saver_->pending()) {
    const Stopwatch watch;
    saved(saver_->finish(recipe_.train.checkpoint_limit));
    if (leader())
      log_info("step {}: waited {} for the checkpoint before", trainer_->state().step,
               watch.text());
  }
  collect_failures();
  since_save_ = {};
  // Before a checkpoint the logs are durable, as it must not be ahead of them.
  saver_->begin(checkpoint(), {.before = [this] { log_.sync(); },
                               .after = [this, step = trainer_->state().step] { prune(step); }});
}

/// What is saved now.
Checkpoint Run::checkpoint() {
  Checkpoint checkpoint{.step = trainer_->state().step,
                        .config = trainer_->objective().config(),
                        .train = leader() ? train_json() : Json(),
                        .optimizer = trainer_->optimizer(),
                        .others = trainer_->other_states()};
  if (recipe_.lora.rank > 0)
    checkpoint.adapters = models::lora_metadata(kind_.adapter_targets(recipe_), recipe_.lora);
  return checkpoint;
}

/// What is said of a checkpoint that has ended, if one has.
void Run::saved(const std::optional<SavedCheckpoint>& checkpoint) {
  if (!checkpoint) return;
  if (checkpoint->complete) {
    newest_ = checkpoint->folder;
    announce(newest_, checkpoint->step);
  } else if (leader()) {
    log_warning("no checkpoint of step {}: {}; the run goes on, and tries the next one",
                checkpoint->step, checkpoint->failure);
  }
}

/// After that of `step`. With checkpoints by time no step is more regular than others.
void Run::prune(std::int64_t step) const {
  const TrainRecipe& train = recipe_.train;
  const std::string out = options_.out;  // it may be needed for longer than the options
  if (leader())
    prune_checkpoints(out, step, train.checkpoint_minutes > 0 ? 1 : train.checkpoint_every,
                      last_step(), train.keep, train.keep_every);
}

void Run::announce(const std::string& folder, std::int64_t step) {
  if (!leader()) return;
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

/// If a thread hangs on a disk it may use the run, and what closes files would hang, too. The
/// program then ends without either (base/left_behind.h).
struct EndRun {
  void operator()(Run* run) const {
    run->end_threads();
    [[maybe_unused]] static Run* kept = nullptr;
    if (left_on_disk() > 0)
      kept = run;
    else
      delete run;
  }
};

}  // namespace

long run(const RunOptions& options, dist::World& world, io::ManifestWriter& manifest,
         Progress& progress) {
  if (options.threads > 0) omp_set_num_threads(options.threads);
  world.section("setup", options.recipe.train.setup_limit);
  const std::unique_ptr<Run, EndRun> owned(new Run(options, world, manifest, progress));
  Run& run = *owned;
  try {
    run.start();
    long failures = 0;
    {
      const SaveAtTerm saves;  // before there is nothing to save
      while (run.next_step()) {
        StepResult result;
        try {
          result = run.train_step();
        } catch (const Error&) {
          run.say_failures();
          throw;
        }
        run.finish_step(result);
      }
      failures = run.end();
    }
    if (!run.ended_by_term()) return failures;
    request_stop(SIGTERM);
    throw Stopped();
  } catch (const Stopped&) {
    run.say_stopped();
    throw;
  }
}

}  // namespace vfm::train
