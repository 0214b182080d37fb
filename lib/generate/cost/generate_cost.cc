// SPDX-License-Identifier: Apache-2.0
#include "generate/cost/generate_cost.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "generate/cost/estimate.h"
#include "generate/ranks/choose_parallel.h"
#include "generate/request/named_request.h"
#include "models/dit/fp8.h"
#include "tensor/device.h"

namespace vfm::generate {
namespace {

std::int64_t rounded(double bytes) {
  return static_cast<std::int64_t>(bytes);
}

Json memory_json(const ClipEstimate::Memory& memory) {
  Json json;
  for (const auto& [phase, bytes] : memory.phases)
    json[phase] = rounded(bytes);
  json["program"] = rounded(memory.program);
  json["peak"] = rounded(memory.peak);
  return json;
}

Json sampling_json(const ClipEstimate& estimate) {
  const ClipEstimate::Clip& c = estimate.clip();
  if (estimate.network().decoder)
    return {{"temperature", estimate.sampling().temperature},
            {"top_p", estimate.sampling().top_p},
            {"passes", c.tokens},
            {"samples", 1}};
  const SampleOptions& sampling = estimate.sampling();
  Json json = {{"sampler", to_string(sampling.sampler)},
               {"steps", sampling.steps},
               {"guidance", sampling.guidance},
               {"passes", evaluations(sampling)},
               {"samples", c.samples}};
  if (!sampling.sigmas.empty())
    json["sigmas"] = sampling.sigmas;
  else if (sampling.process == models::Process::flow)
    json["shift"] = sampling.shift;
  if (sampling.diffusers) json["as"] = to_string(sampling.as);
  if (sampling.guidance_low) json["guidance_low"] = *sampling.guidance_low;
  return json;
}

/// The tokens are those of all ranks, the operations those of one.
Json predicted(const models::Gpu& gpu, const ClipEstimate& estimate, const ModelPart& network,
               const ModelPart& tokenizer, const ModelPart& text, double peak) {
  const std::int64_t samples = estimate.network().decoder ? 1 : estimate.samples_of_passes();
  ClipEstimate::Time time = estimate.time(gpu, network, tokenizer, text);
  const ClipEstimate::Clip& c = estimate.clip();
  double flops = 0;
  for (const models::TimeLine& line : time.lines)
    flops += line.flops;
  Json json = models::prediction(gpu, std::move(time.lines),
                                 static_cast<double>(c.tokens * samples), flops, peak);
  json["pass_seconds"] = time.pass;
  return json;
}

Json cost_json(const GenerateJob& job, const models::OpenedModel& opened) {
  const ClipEstimate estimate(job, opened);
  note_shift(SampleOptions::of(opened.facts().sampling, "'" + job.model + "'"),
             job.defaults.choice);
  note_guidance(opened.facts().no_guidance, estimate.sampling().guidance);
  const ClipEstimate::Clip& c = estimate.clip();
  const ModelPart network = estimate.network_part(job.gpu), tokenizer = estimate.tokenizer_part(),
                  text = estimate.text_part();
  const ClipEstimate::Memory memory = estimate.memory(network, tokenizer, text);
  Json cost = {{"kind", "cost"},
               {"model", estimate.network().type},
               {"device", job.gpu != nullptr           ? job.gpu->full_title()
                          : job.device == Device::cuda ? describe_gpu()
                                                       : "cpu"},
               {"compute", estimate.compute() == DType::bf16 ? "bf16" : "f32"},
               {"frames", c.request.frames},
               {"width", c.request.width},
               {"height", c.request.height},
               {"latent", {c.latent.frames, c.latent.height, c.latent.width}},
               {"tokens", c.tokens},
               {"text_tokens", c.text_tokens},
               {"sampling", sampling_json(estimate)},
               {"network", network.json()},
               {"text_encoder", text.json()},
               {"tokenizer", tokenizer.json()},
               {"flops", network.cost.flops + text.cost.flops + tokenizer.cost.flops},
               {"memory_bytes", memory_json(memory)}};
  if (const auto passes = estimate.passes_of_two())
    cost["switch"] = {{"level", *estimate.facts().boundary},
                      {"passes", *passes},
                      {"samples", estimate.samples_of_two()},
                      {"file_bytes", rounded(estimate.network().second_bytes)}};
  if (job.quantize) cost["quantize"] = ops::row_format_name(*job.quantize);
  if (!estimate.parallel().alone()) {
    cost["parallel"] = clip_layout_name(estimate.parallel());
    cost["ranks"] = estimate.parallel().sharers();
    cost["shard"] = estimate.parallel().shards_state();
    if (tokenizer.split)
      cost["decoding"] = {{"latent_frames", tokenizer.split->step},
                          {"chunks", tokenizer.split->turns},
                          {"bands", tokenizer.split->bands}};
  }
  if (job.gpu != nullptr)
    cost["predicted"] = predicted(*job.gpu, estimate, network, tokenizer, text, memory.peak);
  return cost;
}

}  // namespace

Json generation_cost(const GenerateJob& job) {
  const auto cost = [&] {
    const models::OpenedModel opened(job.model, job.ema);
    GenerateJob chosen = job;
    if (job.parallel.choose != 0)
      chosen.parallel = choose_parallel(job, opened, job.parallel.choose, job.parallel.choose);
    chosen.fp8 = models::running_in_fp8(job.fp8, job.device, true);
    return cost_json(chosen, opened);
  };
  return as_usage([&] { return models::retry_if_gone(job.model, cost); });
}

}  // namespace vfm::generate
