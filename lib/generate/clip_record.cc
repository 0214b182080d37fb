// SPDX-License-Identifier: Apache-2.0
#include "generate/clip_record.h"

#include <stdexcept>

#include "base/error.h"
#include "generate/latent_facts.h"

namespace vfm::generate {

void refuse_other_model(const ModelInUse& in_use, const ClipOrder& order) {
  const models::LoadedModel& model = in_use.generator.model();
  if (order.model_hash && *order.model_hash != in_use.hash)
    fail("the record was made by another model (model_hash {}, this one's is {})",
         *order.model_hash, in_use.hash);
  const char* weights = model.ema ? "ema" : "model";
  if (order.weights && *order.weights != weights)
    fail("the record was made with the weights '{}': give --weights {}", *order.weights,
         *order.weights);
  // A record without a word about it was made without FP8.
  const std::string fp8 = order.fp8.value_or("off");
  if ((order.fp8 || order.model_hash) && fp8 != models::fp8_name(in_use.fp8))
    fail("the record was made with FP8 '{}': give --fp8 {}", fp8, fp8);
  if (order.model_hash && order.lora != model.lora)
    fail("the record was made with the adapters {}, these are {}", order.lora.dump(),
         model.lora.dump());
  const std::string compute = model.compute == DType::bf16 ? "bf16" : "f32";
  if (order.model_hash && order.compute.value_or("f32") != compute)
    fail("the record was made in {}: give --compute {}", order.compute.value_or("f32"),
         order.compute.value_or("f32"));
}

Json describe_latent(const ModelInUse& in_use, const ClipOrder& order) {
  const generate::ClipRequest& request = order.request;
  const generate::SampleOptions& sampling = order.sampling;
  const models::LoadedModel& model = in_use.generator.model();
  const bool autoregressive = in_use.generator.autoregressive();
  Json record = {{"prompt", request.prompt}, {"negative_prompt", request.negative},
                 {"seed", request.seed},     {"frames", request.frames},
                 {"width", request.width},   {"height", request.height},
                 {"fps", request.fps}};
  if (autoregressive)
    record.update({{"temperature", sampling.temperature}, {"top_p", sampling.top_p}});
  else
    record.update({{"sampler", generate::to_string(sampling.sampler)},
                   {"steps", sampling.steps},
                   {"guidance", sampling.guidance}});
  record.update({{"weights", model.ema ? "ema" : "model"}, {"model_hash", in_use.hash}});
  if (sampling.sampler == generate::Sampler::flow)
    record["shift"] = sampling.shift;
  else if (!autoregressive)
    record.update({{"sigma_min", sampling.sigma_min}, {"sigma_max", sampling.sigma_max}});
  if (request.given) {
    record.update(
        {{"condition_frames", request.given->frames}, {"condition_xxh3", *order.condition_xxh3}});
    if (!autoregressive) record["augment_sigma"] = sampling.augment_sigma;
  }
  if (request.noise) record["noise_xxh3"] = *order.noise_xxh3;
  if (request.embedding) record["embedding_xxh3"] = *order.embedding_xxh3;
  if (request.negative_embedding)
    record["negative_embedding_xxh3"] = *order.negative_embedding_xxh3;
  if (in_use.fp8.any()) record["fp8"] = models::fp8_name(in_use.fp8);
  if (!model.lora.is_null()) record["lora"] = model.lora;
  // Where nothing is said of them, it was f32 on the CPU.
  if (model.compute != DType::f32) record["compute"] = "bf16";
  if (in_use.device == Device::cuda) record["device"] = "cuda";
  Json facts = latent_facts(record);
  // A fact that the list lacks would not be part of the address.
  if (facts.size() != record.size()) throw std::logic_error("a fact that latent_facts.cc lacks");
  return facts;
}

}  // namespace vfm::generate
