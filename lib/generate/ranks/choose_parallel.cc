// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/choose_parallel.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "generate/cost/estimate.h"
#include "models/dit/architecture.h"
#include "models/dit/fp8.h"
#include "models/gpu_table.h"
#include "models/predict.h"
#include "tensor/device.h"

namespace vfm::generate {
namespace {

/// Judged: a few cores of a server for each rank, and messages by way of its memory; between
/// machines a link of 10 Gb/s.
models::Gpu host_rates(int per_node) {
  models::Gpu gpu;
  gpu.name = "cpu", gpu.title = "CPU";
  gpu.peak = gpu.peak_f32 = 200e9;
  gpu.products = gpu.products_fp8 = gpu.convolutions = gpu.own_convolutions = 100e9;
  gpu.attention_forward = gpu.attention_backward = 50e9;
  gpu.own_forward = gpu.own_backward = gpu.attention_fp8 = 50e9;
  gpu.bandwidth = 10e9;
  gpu.gap = 5e-6;
  gpu.per_node = per_node;
  gpu.inside = {.bandwidth = 3e9, .latency = 30e-6};
  gpu.across = {.bandwidth = 1e9, .latency = 60e-6};
  gpu.memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
               static_cast<double>(::sysconf(_SC_PAGESIZE)) / per_node;
  return gpu;
}

/// Those of `ranks` ranks together, in the order of clip_layout_name(). `frames`: attention is
/// within frames and pixels, too.
std::vector<dist::Layout> clip_layouts(int ranks, bool guided, bool frames, dist::ShardKind shard) {
  std::vector<dist::Layout> layouts;
  for (const int cfg : {1, 2}) {
    if (ranks % cfg != 0 || (cfg == 2 && !guided)) continue;
    for (int tp = 1; tp <= ranks / cfg; ++tp) {
      if (ranks / cfg % tp != 0) continue;
      dist::Layout parallel;
      parallel.cfg = cfg, parallel.tp = tp, parallel.cp = ranks / cfg / tp;
      if (ranks > 1) parallel.shard = shard;
      using enum nn::CpKind;
      const std::vector<nn::CpKind> kinds = {automatic, all_to_all, ring, gather};
      for (const bool hybrid : {false, true}) {
        if (hybrid && (!frames || parallel.cp == 1)) continue;
        parallel.hybrid = hybrid;
        for (const nn::CpKind kind : std::span(kinds).first(parallel.cp > 1 ? kinds.size() : 1)) {
          parallel.cp_kind = kind;
          layouts.push_back(parallel);
        }
      }
    }
  }
  return layouts;
}

/// The rates by which the layouts are compared.
models::Gpu comparing_rates(const GenerateJob& job, int per_node) {
  if (job.gpu != nullptr) return *job.gpu;
  if (job.device != Device::cuda) return host_rates(per_node);
  const models::Gpu* const here = models::known_gpu(describe_gpu());
  return here != nullptr ? *here : models::find_gpu("h100");
}

}  // namespace

std::vector<CostedLayout> costed_layouts(const GenerateJob& job, const models::OpenedModel& opened,
                                         int ranks, int per_node) {
  GenerateJob alone = job;
  alone.parallel = {};
  alone.fp8 = models::running_in_fp8(job.fp8, job.device, false);
  ClipEstimate estimate(alone, opened);
  if (!estimate.network().dit)
    fail_usage(
        "--parallel auto is for diffusion models, and this one is autoregressive: give tp and pp, "
        "or leave it out, and each rank makes clips of its own");
  const models::Gpu gpu = comparing_rates(job, per_node);
  const bool host = job.gpu == nullptr && job.device != Device::cuda;
  const double room = host ? gpu.memory : gpu.usable();
  const ModelPart text = estimate.text_part();
  std::vector<CostedLayout> costed;
  for (int together = 1; together <= ranks; ++together) {
    if (ranks % together != 0 || (together == 1 && job.parallel.shards_state())) continue;
    for (const dist::Layout& parallel :
         clip_layouts(together, estimate.clip().samples > 1,
                      estimate.network().dit->architecture->space_time, job.parallel.shard)) {
      try {
        estimate.share(parallel, gpu.per_node);
        if (std::ranges::any_of(costed, [&](const CostedLayout& one) {  // what 'auto' means here
              return clip_layout_option(one.parallel) == clip_layout_option(estimate.parallel());
            }))
          continue;
        const ModelPart network = estimate.network_part(&gpu),
                        tokenizer = estimate.tokenizer_part();
        const std::vector<models::TimeLine> lines =
            estimate.time(gpu, network, tokenizer, text).lines;
        CostedLayout& one = costed.emplace_back();
        one.parallel = estimate.parallel();
        one.memory = estimate.memory(network, tokenizer, text).peak;
        one.seconds = models::sum_of("", lines).seconds;
        one.fits = one.memory <= room;
      } catch (const Error& error) {  // the model cannot have it
        log_debug("--parallel auto: {}", error.what());
      }
    }
  }
  std::ranges::stable_sort(costed, [](const CostedLayout& a, const CostedLayout& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.seconds < b.seconds : a.memory < b.memory;
  });
  return costed;
}

dist::Layout choose_parallel(const GenerateJob& job, const models::OpenedModel& opened, int ranks,
                             int per_node) {
  const std::vector<CostedLayout> costed = costed_layouts(job, opened, ranks, per_node);
  if (costed.empty())
    fail_usage("--parallel auto: no layout of {} ranks is possible{}", ranks,
               job.parallel.shards_state() ? " with shard, which needs two" : "");
  const auto words = [](const CostedLayout& one) {
    const std::string name = one.parallel.alone() ? "each alone" : clip_layout_name(one.parallel);
    return fmt::format("{} ({:.3g} s a clip, {} a rank)", name, one.seconds,
                       format_bytes(one.memory));
  };
  const CostedLayout& best = costed.front();
  std::string next;
  for (std::size_t i = 1; i < std::min<std::size_t>(4, costed.size()); ++i)
    if (costed[i].fits) next += (next.empty() ? "; then " : ", ") + words(costed[i]);
  log_info("--parallel auto: {2} is predicted to be the fastest of {0} layouts of {1} ranks{3}",
           costed.size(), ranks, words(best), next);
  if (!best.fits)
    log_warning("--parallel auto: no layout is estimated to fit into memory; {} needs the least{}",
                words(best), job.parallel.shards_state() ? "" : "; with shard it needs less");
  return best.parallel;
}

}  // namespace vfm::generate
