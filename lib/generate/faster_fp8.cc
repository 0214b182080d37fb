// SPDX-License-Identifier: Apache-2.0
#include "generate/faster_fp8.h"

#include "base/log.h"
#include "models/predict.h"

namespace vfm::generate {
namespace {

LayoutCost cost_of(const Estimate& estimate, const models::Gpu& gpu, const ModelPart& text) {
  const ModelPart network = estimate.network_part(&gpu), tokenizer = estimate.tokenizer_part();
  return {models::sum_of("", estimate.time(gpu, network, tokenizer, text).lines).seconds,
          estimate.memory(network, tokenizer, text).peak};
}

bool in_ring(const ClipParallel& parallel) {
  return parallel.cp > 1 && (parallel.cp_kind == "ring" || parallel.cp_kind == "all_to_all+ring");
}

/// The costs of a layout with a ring, in FP8 and with attention in bf16.
struct BothCosts {
  LayoutCost fp8, bf16;
};

BothCosts both_costs(Estimate& estimate, models::Fp8Parts parts, const models::Gpu& gpu,
                     const ModelPart& text) {
  BothCosts both;
  estimate.set_fp8({.linear = parts.linear});
  both.bf16 = cost_of(estimate, gpu, text);
  estimate.set_fp8(parts);
  both.fp8 = cost_of(estimate, gpu, text);
  return both;
}

}  // namespace

LayoutCost cost_in_faster_fp8(Estimate& estimate, const GenerateJob& job, const models::Gpu& gpu,
                              const ModelPart& text) {
  estimate.set_fp8(job.fp8);
  if (!job.fp8.attention || !models::attention_by_cudnn(job.device))
    return cost_of(estimate, gpu, text);
  const models::Fp8Parts without{.linear = job.fp8.linear};
  if (in_ring(estimate.parallel())) {
    const BothCosts both = both_costs(estimate, job.fp8, gpu, text);
    if (both.fp8.seconds <= both.bf16.seconds) return both.fp8;
    estimate.set_fp8(without);
    return both.bf16;
  }
  estimate.set_fp8(without);
  return cost_of(estimate, gpu, text);
}

void settle_fp8(GenerateJob& job, const models::Gpu& gpu) {
  if (!job.fp8.attention || !models::attention_by_cudnn(job.device)) return;
  if (job.parallel.cp > 1) {
    Estimate estimate(job);
    estimate.share(job.parallel, gpu.per_node);
    if (in_ring(estimate.parallel())) {
      const BothCosts both = both_costs(estimate, job.fp8, gpu, estimate.text_part());
      if (both.fp8.seconds <= both.bf16.seconds) return;
      log_warning(
          "attention stays in bf16: with --parallel {} a clip is predicted to take {:.4g} s so, "
          "and {:.4g} s with attention in FP8",
          estimate.parallel().option(), both.bf16.seconds, both.fp8.seconds);
      job.fp8.attention = false;
      return;
    }
  }
  job.fp8 = models::faster_in_fp8(job.fp8, job.device);
}

}  // namespace vfm::generate
