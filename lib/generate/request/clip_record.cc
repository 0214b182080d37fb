// SPDX-License-Identifier: Apache-2.0
#include "generate/request/clip_record.h"

#include <stdexcept>

#include "base/error.h"
#include "base/json.h"
#include "generate/request/latent_facts.h"

namespace vfm::generate {

namespace {

/// What adapters change the model, of several a list; null: none.
Json adapters_json(const std::vector<models::AdaptersInUse>& adapters) {
  Json list = Json::array();
  for (const models::AdaptersInUse& one : adapters)
    list.push_back(
        {{"hash", one.hash}, {"scale", one.scale}, {"mode", one.separate ? "separate" : "merged"}});
  return list.empty() ? Json() : list.size() == 1 ? list.front() : list;
}

/// What decides the noise levels.
void add_levels(Json& record, const SampleOptions& sampling) {
  if (!sampling.sigmas.empty()) {
    record["sigmas"] = sampling.sigmas;
    return;
  }
  record["steps"] = sampling.steps;
  if (sampling.process == models::Process::flow)
    record["shift"] = sampling.shift;
  else
    record.update({{"sigma_min", sampling.sigma_min}, {"sigma_max", sampling.sigma_max}});
}

}  // namespace

void add_adapter_paths(Json& record, const ModelInUse& in_use) {
  Json paths = Json::array();
  for (const models::AdaptersInUse& one : in_use.adapters)
    paths.push_back(one.path);
  if (!paths.empty()) record["lora_path"] = paths.size() == 1 ? paths.front() : paths;
}

void refuse_other_model(const ModelInUse& in_use, const MadeBy& made_by) {
  if (made_by.model_hash && *made_by.model_hash != in_use.hash)
    fail("the record was made by another model (model_hash {}, this one's is {})",
         *made_by.model_hash, in_use.hash);
  const char* weights = in_use.ema ? "ema" : "model";
  if (made_by.weights && *made_by.weights != weights)
    fail("the record was made with the weights '{}': {} --no-ema", *made_by.weights,
         in_use.ema ? "give" : "leave out");
  // A record without a word about it was made without FP8.
  const std::string fp8 = made_by.fp8.value_or("off");
  if ((made_by.fp8 || made_by.model_hash) && fp8 != models::fp8_name(in_use.fp8))
    fail("the record was made with FP8 '{}': {}", fp8,
         fp8 == "off" ? "leave out --fp8" : "give --fp8 " + fp8);
  const std::string quantize = made_by.quantize.value_or("off");
  const std::string in_form = in_use.quantize.empty() ? "off" : in_use.quantize;
  if ((made_by.quantize || made_by.model_hash) && quantize != in_form)
    fail("the record was made with weights quantised as '{}', these are '{}': {}", quantize,
         in_form, quantize == "off" ? "leave out --quantize" : "give --quantize " + quantize);
  const std::string parallel = made_by.parallel.value_or("");
  if ((made_by.parallel || made_by.model_hash) && parallel != in_use.parallel)
    fail(
        "the record was made by ranks that share a clip as '{}', and these share it as '{}': give "
        "the same --parallel",
        parallel, in_use.parallel);
  const Json adapters = adapters_json(in_use.adapters);
  const Json theirs = made_by.lora.empty() ? Json() : parse_json(made_by.lora, "'lora'");
  if (made_by.model_hash && theirs != adapters)
    fail("the record was made with the adapters {}, these are {}: give the same --lora",
         theirs.dump(), adapters.dump());
  const std::string compute = in_use.compute == DType::bf16 ? "bf16" : "f32";
  if (made_by.model_hash && made_by.compute.value_or("f32") != compute)
    fail("the record was made in {}: give --compute {}", made_by.compute.value_or("f32"),
         made_by.compute.value_or("f32"));
}

Json describe_latent(const ModelInUse& in_use, const NamedRequest& request) {
  const ClipRequest& clip = request.clip;
  const SampleOptions& sampling = request.sampling;
  const GivenFiles& files = request.files;
  Json record = {{"prompt", clip.prompt}, {"negative_prompt", clip.negative},
                 {"seed", clip.seed},     {"frames", clip.frames},
                 {"width", clip.width},   {"height", clip.height},
                 {"fps", clip.fps}};
  if (in_use.autoregressive)
    record.update({{"temperature", sampling.temperature}, {"top_p", sampling.top_p}});
  else
    record.update({{"sampler", to_string(sampling.sampler)}, {"guidance", sampling.guidance}});
  if (sampling.diffusers) record["as"] = to_string(sampling.as);
  if (sampling.guidance_low) record["guidance_low"] = *sampling.guidance_low;
  record.update({{"weights", in_use.ema ? "ema" : "model"}, {"model_hash", in_use.hash}});
  if (!in_use.autoregressive) add_levels(record, sampling);
  if (clip.given) {
    record.update(
        {{"condition_frames", clip.given->frames}, {"condition_xxh3", *files.condition.xxh3}});
    if (!in_use.autoregressive) record["augment_sigma"] = sampling.augment_sigma;
  }
  if (clip.noise) record["noise_xxh3"] = *files.noise.xxh3;
  if (clip.embedding) record["embedding_xxh3"] = *files.embedding.xxh3;
  if (clip.negative_embedding) record["negative_embedding_xxh3"] = *files.negative_embedding.xxh3;
  if (in_use.fp8.any()) record["fp8"] = models::fp8_name(in_use.fp8);
  if (!in_use.quantize.empty()) record["quantize"] = in_use.quantize;
  if (!in_use.parallel.empty()) record["parallel"] = in_use.parallel;
  if (!in_use.adapters.empty()) record["lora"] = adapters_json(in_use.adapters);
  // Where nothing is said of them, it was f32 on the CPU.
  if (in_use.compute != DType::f32) record["compute"] = "bf16";
  if (in_use.device == Device::cuda) record["device"] = "cuda";
  if (clip.given && !in_use.tokenizer_compute.empty())
    record["encoded_in"] = in_use.tokenizer_compute;
  Json facts = latent_facts(record);
  // A fact that the list lacks would not be part of the address.
  if (facts.size() != record.size()) throw std::logic_error("a fact that latent_facts.cc lacks");
  return facts;
}

Json describe_clip(const ModelInUse& in_use, const NamedRequest& request,
                   const ClipFolder& output) {
  Json record = describe_latent(in_use, request);
  const std::string& encoder = request.encoder.empty() ? output.encoder() : request.encoder;
  if (!output.to_stream()) record.update({{"encoder", encoder}, {"quality", request.quality}});
  if (!in_use.tokenizer_compute.empty()) record["decoded_in"] = in_use.tokenizer_compute;
  return record;
}

}  // namespace vfm::generate
