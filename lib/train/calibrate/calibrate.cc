// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate/calibrate.h"

#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "base/units.h"
#include "models/gpu_table.h"
#include "models/predict.h"
#include "train/calibrate/kernel_times.h"
#include "train/calibrate/link_times.h"
#include "train/cost/memory.h"
#include "train/diffusion/data.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"
#include "train/step/parallel.h"
#include "train/step/training_step.h"

namespace vfm::train {
namespace {

using Seconds = std::chrono::duration<double>;
using SteadyClock = std::chrono::steady_clock;

/// A network whose steps are measured, in f32 and in bf16: from the smallest on.
struct MeasuredNetwork {
  const char* recipe;
  const char* sizes;  // of a pack's samples
  int text_tokens;    // 0: a model without text
};
constexpr MeasuredNetwork kNetworks[] = {
    {"model: {num_attention_heads: 2, attention_head_dim: 64, num_layers: 6, adaln_lora_dim: 32}",
     "4x16x16,4x16x16", 32},
    {"model: {num_attention_heads: 4, attention_head_dim: 64, num_layers: 4, adaln_lora_dim: 64, "
     "recompute: elementwise}",
     "4x16x16,1x16x16,8x16x16", 64},
    {"model: {type: tokenizer, latent_channels: 8, encoder_block_out_channels: [16, 16, 32, 32], "
     "decode_block_out_channels: [16, 16, 32, 32], num_layers: 1, patch_size: 4, "
     "spatial_compression_ratio: 8, temporal_compression_ratio: 8}",
     "9x64x64", 0},
    {"model: {type: stdit, num_attention_heads: 4, attention_head_dim: 64, num_layers: 2}",
     "4x24x24", 128},
    {"model: {num_attention_heads: 3, attention_head_dim: 128, num_layers: 4, adaln_lora_dim: 32}",
     "4x32x32", 128},
    {"model: {num_attention_heads: 8, attention_head_dim: 64, num_layers: 3, adaln_lora_dim: 64}",
     "4x32x32,1x16x16", 512},
    {"model: {num_attention_heads: 12, attention_head_dim: 64, num_layers: 2, adaln_lora_dim: 256}",
     "8x32x32", 256},
};

/// Its model and a pack of samples, ready to be stepped on the CPU and on Device::meta.
class MeasuredStep {
 public:
  MeasuredStep(const MeasuredNetwork& network, const std::string& compute)
      : recipe_(recipe_of(network, compute)), world_(dist::self_world()), data_(open(network)) {
    data_->fit(recipe_);
    recipe_.data.tokens = 0;
    for (const data::Entry& entry : samples())
      recipe_.data.tokens += token_count(entry, recipe_.model);
    parallel_.emplace(recipe_, *world_);
    make(step_, Device::cpu);
    count();
  }

  /// Once more; the seconds that it took.
  double run() {
    std::vector<std::unique_ptr<Batch>> batches;
    for (int i = 0; i < kPasses; ++i)
      batches.push_back(batch());
    const KernelLog log;
    const auto begin = SteadyClock::now();
    act(*step_, batches);
    const double seconds = Seconds(SteadyClock::now() - begin).count();
    timed_.push_back(log.entries());
    seconds_.push_back(seconds);
    return seconds;
  }

  double add_to(KernelTimes& times) const { return times.add(entries_, timed_); }
  /// Of the fastest of its steps the seconds in kernels, and those between them.
  std::pair<double, double> fastest() const {
    const auto fastest =
        static_cast<std::size_t>(std::ranges::min_element(seconds_) - seconds_.begin());
    double kernels = 0;
    for (const KernelLog::Entry& entry : timed_[fastest])
      kernels += entry.seconds;
    return {kernels, std::max(0.0, seconds_[fastest] - kernels)};
  }
  std::size_t kernels() const { return entries_.size(); }
  /// How much longer than the fastest the one in the middle took.
  double spread() const {
    std::vector<double> sorted = seconds_;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2] / sorted.front() - 1;
  }
  std::size_t steps() const { return seconds_.size(); }

 private:
  static constexpr int kPasses = 2;  // the first one's gradients are written, others are added

  static Recipe recipe_of(const MeasuredNetwork& network, const std::string& compute) {
    std::vector<Setting> settings = parse_yaml(network.recipe, "a network of calibrate");
    settings.push_back(parse_override("model.compute=" + compute));
    return make_recipe(settings);
  }
  std::unique_ptr<Dataset> open(const MeasuredNetwork& network) const {
    const SampleSizes sizes = parse_sizes(network.sizes);
    samples_ = sizes.size();
    if (network.text_tokens > 0)
      return make_up_latents({.sizes = sizes, .text_tokens = network.text_tokens});
    RunOptions options;
    options.recipe = recipe_;
    options.synthetic = sizes;
    return kind_of(recipe_.model.type).open(options, "train");
  }
  std::vector<data::Entry> samples() const {
    std::vector<data::Entry> first;
    for (std::size_t i = 0; i < samples_; ++i)
      first.push_back(data_->entry(i));
    return first;
  }
  std::unique_ptr<Batch> batch() const {
    std::vector<PlacedSample> placed;
    for (std::size_t i = 0; i < samples_; ++i)
      placed.push_back({data_->read(i, SeenAt{}), i});
    return step_->objective().build(0, samples_, placed);
  }
  void make(std::optional<TrainingStep>& step, Device device) const {
    const auto recompute =
        recipe_.model.recompute == "elementwise" ? nn::Recompute::elementwise : nn::Recompute::none;
    step.emplace(recipe_, *parallel_,
                 kind_of(recipe_.model.type)
                     .make_objective(recipe_, recompute, device, parallel_->network()),
                 recipe_.ema);
  }
  static void act(TrainingStep& step, const std::vector<std::unique_ptr<Batch>>& batches) {
    step.pass_all(batches);
    step.sum();
    step.update(1e-4, 1e-3);
  }
  void count() {
    std::optional<TrainingStep> counted;
    make(counted, Device::meta);
    const MetaAccount account(Device::cpu);
    const KernelLog log;
    std::vector<std::unique_ptr<Batch>> batches;
    for (int i = 0; i < kPasses; ++i)
      batches.push_back(counted->objective().blank(samples()));
    act(*counted, batches);
    entries_ = log.entries();
  }

  Recipe recipe_;
  std::unique_ptr<dist::World> world_;
  mutable std::size_t samples_ = 1;
  std::unique_ptr<Dataset> data_;
  std::optional<Parallel> parallel_;
  std::optional<TrainingStep> step_;
  KernelTimes::Entries entries_;
  std::vector<KernelTimes::Entries> timed_;
  std::vector<double> seconds_;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t at = line.find(": "); at != std::string::npos)
        return line.substr(at + 2);
  return "CPU";
}

/// Operations a second of all calls; and of the fastest.
struct Rate {
  double mean = 0, best = 0;
};
Rate rate_of(const std::vector<AlikeCalls>& calls, double AlikeCalls::*what) {
  Rate rate;
  double sum = 0, seconds = 0;
  for (const AlikeCalls& call : calls) {
    sum += call.calls * call.*what, seconds += call.calls * call.seconds;
    if (call.seconds > 0) rate.best = std::max(rate.best, call.*what / call.seconds);
  }
  rate.mean = seconds > 0 ? sum / seconds : 0;
  return rate;
}

/// The terms that a GPU has too: for kernels that were not measured.
void set_rates(models::Gpu& gpu, const KernelTimes& times) {
  using Pass = KernelTimes::Pass;
  const auto flops = [&](WorkKind kind, DType type, Pass pass = Pass::both) {
    return rate_of(times.calls_of(kind, type, pass), &AlikeCalls::flops);
  };
  const Rate bf16 = flops(WorkKind::products, DType::bf16);
  gpu.products = gpu.products_fp8 = bf16.mean;
  gpu.peak = bf16.best;
  gpu.peak_f32 = flops(WorkKind::products, DType::f32).best;
  gpu.attention_forward = gpu.own_forward = gpu.attention_fp8 =
      flops(WorkKind::attention, DType::bf16, Pass::forward).mean;
  // Five products are done, and four are counted.
  gpu.attention_backward = gpu.own_backward =
      flops(WorkKind::attention, DType::bf16, Pass::backward).mean * 5 / 4;
  gpu.convolutions = gpu.own_convolutions = flops(WorkKind::convolutions, DType::f32).mean;
  gpu.bandwidth = gpu.host_link =
      rate_of(times.calls_of(WorkKind::elementwise, DType::f32), &AlikeCalls::bytes).mean;
}

}  // namespace

bool calibration_goes_on(dist::World& world, double left) {
  double votes[2] = {world.rank() == 0 && left > 0 ? 1.0 : 0, stop_requested() ? 1.0 : 0};
  world.all_reduce_sum(std::span<double>(votes));
  if (votes[1] > 0) throw Stopped();
  return votes[0] > 0;
}

Json calibrate(const CalibrateOptions& options, dist::World& world, Progress& progress) {
  if (options.device == Device::cuda) return calibrate_gpu(options, world, progress);
  omp_set_num_threads(options.threads);
  const auto begin = SteadyClock::now();
  const auto passed = [&] { return Seconds(SteadyClock::now() - begin).count(); };
  KernelTimes times;
  double usual = 0, fastest = 0, between = 0, kernels = 0, spread = 0, networks = 0;
  std::size_t steps = 0, number = 0;
  constexpr std::size_t kCases = 2 * std::size(kNetworks);
  progress.start("networks", kCases);
  for (const MeasuredNetwork& network : kNetworks)
    for (const char* compute : {"f32", "bf16"}) {
      // Of what is left of the time each takes a part, the larger ones more.
      ++number;
      if (number > 2 && !calibration_goes_on(world, 0.8 * options.seconds - passed())) break;
      const double until =
          passed() + (options.seconds - passed()) / static_cast<double>(kCases - number + 2);
      MeasuredStep step(network, compute);
      constexpr std::size_t kLeast = 3;
      do {
        world.barrier();
        step.run();
      } while (calibration_goes_on(world, step.steps() < kLeast ? 1 : until - passed()));
      usual += step.add_to(times);
      const auto [inside, outside] = step.fastest();
      fastest += inside, between += outside;
      kernels += static_cast<double>(step.kernels());
      spread += step.spread(), ++networks;
      steps += step.steps();
      progress.add(1);
    }
  models::Gpu gpu;
  gpu.cpu = true;
  gpu.name = "here";
  gpu.title = fmt::format("{}, {}", processor_name(), counted(options.threads, "thread"));
  gpu.memory = usable_memory(Device::cpu, options.local_ranks) / 0.8;
  gpu.per_node = std::max(1, world.least_local_size());
  gpu.gap = between / kernels;
  set_rates(gpu, times);
  // What else goes on disturbs a few kernels of every step, and each has a time without that.
  const double disturbed = std::max(1.0, fastest / usual);
  gpu.kernels = times.rates();
  for (models::KernelRate& rate : gpu.kernels)
    for (double models::KernelRate::*const term :
         {&models::KernelRate::seconds, &models::KernelRate::of_flop, &models::KernelRate::of_byte,
          &models::KernelRate::of_far_byte})
      rate.*term *= disturbed;
  const LinkTimes links = measure_links(world, Device::cpu);
  gpu.inside = gpu.across = links.link;
  if (world.rank() > 0) return nullptr;
  double error = 0;
  for (const models::KernelRate& rate : gpu.kernels)
    error += rate.error / static_cast<double>(gpu.kernels.size());
  Json table = to_json(gpu);
  table["measured"] = {{"processor", processor_name()},
                       {"threads", options.threads},
                       {"ranks", world.size()},
                       {"seconds", passed()},
                       {"steps", steps},
                       {"spread", spread / networks},
                       {"kernel_error", error},
                       {"disturbed", disturbed},
                       {"links", links.measured}};
  return table;
}

// Above this the words warn. A file with 1.9 was seen to predict twice the time of a step.
constexpr double kDisturbed = 1.25;

std::string calibration_words(const Json& table) {
  const auto number = [](const Json& value) { return value.get<double>(); };
  const Json& measured = table["measured"];
  std::string text = fmt::format("{}, {}: {} {} in {:.0f} s, {:.1f} % apart\n",
                                 table["title"].get<std::string>(),
                                 counted(measured["ranks"].get<std::int64_t>(), "rank"),
                                 measured["steps"].dump(),
                                 measured.contains("probes") ? "runs of kernels" : "steps",
                                 number(measured["seconds"]), 100 * number(measured["spread"]));
  const double disturbed = measured.value("disturbed", 1.0);
  if (disturbed >= kDisturbed)
    text += fmt::format(
        "  other programs slowed kernels to {:.2g} times their time: measure again without them\n",
        disturbed);
  const auto line = [&](const char* name, double rate, const char* unit) {
    if (rate > 0) text += fmt::format("  {:<22} {}\n", name, models::count_words(rate, unit));
  };
  line("products, bf16", number(table["products"]), "FLOP/s");
  line("  the fastest", number(table["peak"]), "FLOP/s");
  line("products, f32, fastest", number(table["peak_f32"]), "FLOP/s");
  line("attention, forward", number(table["attention_forward"]), "FLOP/s");
  line("attention, backward", number(table["attention_backward"]), "FLOP/s");
  line("convolutions", number(table["convolutions"]), "FLOP/s");
  line("element-wise", number(table["bandwidth"]), "B/s");
  if (measured.contains("probes")) line("to the host and back", number(table["host_link"]), "B/s");
  text += fmt::format("  {:<22} {:.2g} us\n", "between kernels", 1e6 * number(table["gap"]));
  if (measured["ranks"] > 1) {
    line("between ranks", number(table["inside"]["bandwidth"]), "B/s");
    text += fmt::format("  {:<22} {:.2g} us\n", "  a message",
                        1e6 * number(table["inside"]["latency"]));
  }
  return text;
}

}  // namespace vfm::train
