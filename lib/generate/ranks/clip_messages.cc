// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/clip_messages.h"

namespace vfm::generate {

void fields(ClipWire& wire, GivenFile& file) {
  wire(file.path, file.xxh3);
}

void fields(ClipWire& wire, GivenFiles& files) {
  wire(files.condition, files.condition_frames, files.noise, files.embedding,
       files.negative_embedding);
}

void fields(ClipWire& wire, GivenFrames& given) {
  wire(given.frames, given.pixels);
}

// The room of TokenEmbeddings is another, so it is found by the first argument's.
void fields(ClipWire& wire, text::TokenEmbeddings& text) {
  wire(text.values, text.tokens, text.dim);
}

void fields(ClipWire& wire, ClipRequest& clip) {
  wire(clip.prompt, clip.negative, clip.seed, clip.frames, clip.height, clip.width, clip.fps,
       clip.given, clip.noise, clip.embedding, clip.negative_embedding);
}

void fields(ClipWire& wire, models::InDiffusers& sampling) {
  wire(sampling.steps, sampling.guidance, sampling.shift);
}

void fields(ClipWire& wire, SampleOptions& o) {
  wire(o.process, o.sampler, o.steps, o.sigma_min, o.sigma_max, o.shift, o.sigmas, o.as, o.guidance,
       o.guidance_low, o.diffusers, o.augment_sigma, o.temperature, o.top_p);
}

void fields(ClipWire& wire, SampleChoice& choice) {
  wire(choice.sampler, choice.steps, choice.sigma_min, choice.sigma_max, choice.shift,
       choice.guidance, choice.guidance_low, choice.augment_sigma, choice.sigmas, choice.as,
       choice.temperature, choice.top_p);
}

void fields(ClipWire& wire, MadeBy& by) {
  wire(by.weights, by.model_hash, by.fp8, by.quantize, by.compute, by.parallel, by.lora);
}

void fields(ClipWire& wire, models::AdaptersInUse& adapters) {
  wire(adapters.hash, adapters.scale, adapters.separate, adapters.path);
}

void fields(ClipWire& wire, Latent& latent) {
  wire(latent.channels, latent.frames, latent.height, latent.width, latent.values);
}

void fields(ClipWire& wire, Prompt& prompt) {
  wire(prompt.text, prompt.negative, prompt.seed, prompt.own_seed, prompt.frames, prompt.height,
       prompt.width, prompt.fps, prompt.choice, prompt.files, prompt.name, prompt.encoder,
       prompt.quality, prompt.made_by, prompt.extra);
}

void fields(ClipWire& wire, ModelInUse& in_use) {
  wire(in_use.hash, in_use.ema, in_use.autoregressive, in_use.compute, in_use.adapters, in_use.fp8,
       in_use.device, in_use.tokenizer_compute, in_use.parallel, in_use.quantize);
}

void fields(ClipWire& wire, NamedRequest& request) {
  wire(request.clip, request.sampling, request.files, request.name, request.encoder,
       request.quality, request.extra);
}

void fields(ClipWire& wire, Asked& asked) {
  wire(asked.request, asked.error, asked.cause);
}

void fields(ClipWire& wire, Result& result) {
  wire(result.asked.error, result.asked.cause, result.record, result.made, result.latent,
       result.seconds);
}

void fields(ClipWire& wire, DealtLatents& input) {
  wire(input.record.kind, input.record.json, input.record.where, input.where, input.error);
}

void fields(ClipWire& wire, DecodedLatents& result) {
  wire(result.error, result.cause, result.name, result.mp4, result.record, result.seconds,
       result.together);
  if (result.together) wire(result.folder, result.latent);
}

}  // namespace vfm::generate
