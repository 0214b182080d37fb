// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/faster_fp8.h"

#include <optional>

#include "base/log.h"
#include "models/predict.h"

namespace vfm::generate {
namespace {

ParallelCost cost_of(const ClipEstimate& estimate, const models::Gpu& gpu, const ModelPart& text) {
  const ModelPart network = estimate.network_part(&gpu), tokenizer = estimate.tokenizer_part();
  return {models::sum_of("", estimate.time(gpu, network, tokenizer, text).lines).seconds,
          estimate.memory(network, tokenizer, text).peak};
}

bool in_ring(const dist::Layout& parallel) {
  return parallel.cp > 1 &&
         (parallel.cp_kind == nn::CpKind::ring || parallel.cp_kind == nn::CpKind::all_to_all_ring);
}

/// What is faster on an estimate's layout. Where that has a ring, both were costed.
struct Faster {
  struct Both {
    ParallelCost fp8, bf16;
  };
  models::Fp8Parts parts;
  std::optional<Both> both;
};

/// The estimate has these parts from then on.
Faster faster_on_layout(ClipEstimate& estimate, const GenerateJob& job, const models::Gpu& gpu,
                        const ModelPart& text) {
  Faster faster{job.fp8, {}};
  if (job.fp8.attention && models::attention_by_cudnn(job.device)) {
    faster.parts.attention = false;
    if (in_ring(estimate.parallel())) {
      Faster::Both& both = faster.both.emplace();
      estimate.set_fp8(faster.parts);
      both.bf16 = cost_of(estimate, gpu, text);
      estimate.set_fp8(job.fp8);
      both.fp8 = cost_of(estimate, gpu, text);
      faster.parts.attention = both.fp8.seconds <= both.bf16.seconds;
    }
  }
  estimate.set_fp8(faster.parts);
  return faster;
}

}  // namespace

ParallelCost cost_in_faster_fp8(ClipEstimate& estimate, const GenerateJob& job,
                                const models::Gpu& gpu, const ModelPart& text) {
  const Faster faster = faster_on_layout(estimate, job, gpu, text);
  if (!faster.both) return cost_of(estimate, gpu, text);
  return faster.parts.attention ? faster.both->fp8 : faster.both->bf16;
}

void settle_fp8(GenerateJob& job, const models::OpenedModel& opened, const models::Gpu& gpu) {
  if (job.fp8.attention && models::attention_by_cudnn(job.device) && job.parallel.cp > 1) {
    ClipEstimate estimate(job, opened);
    estimate.share(job.parallel, gpu.per_node);
    const Faster faster = faster_on_layout(estimate, job, gpu, estimate.text_part());
    if (faster.both) {
      if (!faster.parts.attention)
        log_warning(
            "attention stays in bf16: with --parallel {} a clip is predicted to take {:.4g} s so, "
            "and {:.4g} s with attention in FP8",
            clip_layout_option(estimate.parallel()), faster.both->bf16.seconds,
            faster.both->fp8.seconds);
      job.fp8 = faster.parts;
      return;
    }
  }
  job.fp8 = models::faster_in_fp8(job.fp8, job.device);
}

}  // namespace vfm::generate
