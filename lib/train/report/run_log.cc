// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "tensor/device.h"
#include "train/cost/less_memory.h"
#include "train/cost/memory.h"
#include "train/report/rank_timing.h"
#include "train/step/validation.h"

namespace vfm::train {

void RunLog::start(const Trainer& trainer) {
  restart(trainer.state());
  whole_ = timing_;
  goes_on_ = trainer.state().step > 0;
  recompute_ = trainer.recompute();
}

void RunLog::restart(const RunState& state) {
  timing_ = {};
  timing_.tokens = state.tokens;
  timing_.samples = state.samples;
}

void RunLog::add(const StepResult& result) {
  sums.add(result);
  timing_.flops += result.flops;
  timing_.data_seconds += result.data_seconds;
  timing_.read_bytes += result.own_read_bytes;
  ++timing_.steps;
}

std::string RunLog::note(const StepResult& result, const RunState& state,
                         std::int64_t steps) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - whole_.begin).count();
  const auto tokens = static_cast<double>(state.tokens - whole_.tokens);
  std::string text = fmt::format("loss {:.4f}  {} tokens/s", result.loss.mean(),
                                 format_count(tokens / std::max(1e-9, seconds)));
  if (goes_on_) text += fmt::format("  step {} of {}", state.step, steps);
  return text;
}

/// Of a rank that has had `peak` bytes of tensors.
std::string RunLog::less_memory(double peak, double usable) const {
  MemoryNeed need = memory_need(recipe_, world_.size(), recompute_, options_.device, {});
  need.activations = std::max(0.0, peak - (need.total() - need.activations - need.host));
  return train::less_memory(recipe_, world_.size(), recompute_, options_.device, need, usable);
}

void RunLog::write(const RunState& state, const Json& more) {
  Json record = sums.record(state);
  if (!more.is_null()) record.update(more);
  sums = {};
  const double seconds = std::chrono::duration<double>(Clock::now() - timing_.begin).count();
  const Json rates = rates_of({.seconds = seconds,
                               .tokens = static_cast<double>(state.tokens - timing_.tokens),
                               .samples = static_cast<double>(state.samples - timing_.samples),
                               .flops = timing_.flops},
                              world_.size());
  Json timing = {{"step", state.step},
                 {"seconds_per_step", seconds / static_cast<double>(timing_.steps)}};
  timing.update(rates);
  timing["data_wait"] = timing_.data_seconds / seconds;
  timing["memory_peak"] = options_.device == Device::cuda ? cuda_memory().peak : cpu_memory().peak;
  if (const double peak = peak_tflops(recipe_, options_.device); peak > 0)
    timing["mfu"] = rates["tflops_per_rank"].get<double>() / peak;
  const RankTiming own{.steps = timing_.steps,
                       .seconds = seconds,
                       .data_seconds = timing_.data_seconds,
                       .read_bytes = timing_.read_bytes,
                       .memory_peak = timing["memory_peak"].get<double>()};
  if (world_.size() > 1) timing.update(timing_of_ranks(world_, own));
  restart(state);
  if (world_.rank() != 0) return;
  metrics_->metrics(record);
  metrics_->timing(timing);
  const double usable = usable_memory(options_.device, world_.local_size());
  const auto less = [&] { return less_memory(timing["memory_peak"].get<double>(), usable); };
  for (const std::string& sign : signs_.news(timing, usable, less))
    log_warning("step {}: {}", state.step, sign);
  log_info("step {}  loss {:.4f}  grad norm {:.3f}  {}", state.step,
           record.value("loss", std::nan("")), record.value("grad_norm", std::nan("")),
           rates_words(timing));
}

void RunLog::validation(const Json& record) {
  if (!std::isfinite(record["val_loss"].get<double>()))
    log_warning("step {}: the validation loss is not a number", record["step"].dump());
  metrics_->metrics(record);
  log_info("{}", validation_words(record));
}

}  // namespace vfm::train
