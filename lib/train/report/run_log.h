// The lines that a run writes while it trains: those of metrics.jsonl and timing.jsonl
// (train/report/metrics.h), those of -v, and warnings that name a cause of slowness.
// Thread-safety: the thread that trains; every rank has one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "dist/world.h"
#include "train/report/log_sums.h"
#include "train/report/metrics.h"
#include "train/report/signs.h"
#include "train/run.h"
#include "train/step/trainer.h"

namespace vfm::train {

class RunLog {
 public:
  /// Keeps the references; `recipe` is fitted to the data.
  RunLog(const RunOptions& options, const Recipe& recipe, dist::World& world)
      : options_(options), recipe_(recipe), world_(world) {}

  /// Opens the files on rank 0; they continue after `step`.
  void open(std::int64_t step) { metrics_.emplace(options_.out, world_.host(), step); }
  /// Begins to count time, tokens and samples.
  void start(const Trainer& trainer);
  void add(const StepResult& result);
  /// For the progress line: "loss 0.2310  12.3k tokens/s", the rate since the start. A run that was
  /// resumed adds the step and `steps`.
  std::string note(const StepResult& result, const RunState& state, std::int64_t steps) const;
  /// Writes the lines of the steps since the last ones. `more`, an object or null, is added to the
  /// line of metrics.jsonl. A collective.
  void write(const RunState& state, const Json& more);
  /// Writes the line of a validation; on rank 0.
  void validation(const Json& record);
  /// Makes the files durable before a checkpoint, and at the end; on rank 0.
  void sync() {
    if (metrics_) metrics_->sync();
  }

  LogSums sums;  ///< part of the checkpoint

 private:
  using Clock = std::chrono::steady_clock;
  void restart(const RunState& state);
  std::string less_memory(double peak, double usable) const;
  /// Sums since the last line of what depends on the machine.
  struct TimingSums {
    Clock::time_point begin = Clock::now();
    std::int64_t tokens = 0, samples = 0;  ///< counters at the beginning
    std::int64_t steps = 0;
    double flops = 0, data_seconds = 0, read_bytes = 0;
  };

  const RunOptions& options_;
  const Recipe& recipe_;
  dist::World& world_;
  std::optional<MetricsLog> metrics_;  // on rank 0
  TimingSums timing_;
  TimingSums whole_;  // since the start; only its begin and tokens are used
  bool goes_on_ = false;
  nn::Recompute recompute_ = nn::Recompute::none;
  SignWatch signs_;
};

}  // namespace vfm::train
