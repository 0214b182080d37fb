// SPDX-License-Identifier: Apache-2.0
#include "generate/request/named_request.h"

#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "generate/request/clip_record.h"
#include "media/encode/encoder.h"

namespace vfm::generate {
std::string move_parts(ModelFacts& facts, const GenerateJob& job, bool pipeline) {
  const bool moved = !job.tokenizer.empty() || !job.text_encoder.empty();
  if (moved && pipeline) models::add_part_hashes(facts);
  if (!job.tokenizer.empty())
    facts.tokenizer = models::moved_tokenizer(facts.tokenizer.value(), job.tokenizer);
  return choose_compute(facts.tokenizer.value(), job.compute, job.device);
}

std::string choose_compute(models::TokenizerConfig& tokenizer, std::optional<DType> compute,
                           Device device) {
  if (!compute || tokenizer.path.empty()) return "";
  const std::string asked = *compute == DType::bf16 ? "bf16" : "f32";
  const std::string usual = device == Device::cuda ? "bf16" : "f32";
  const std::string before = std::exchange(tokenizer.compute, asked);
  return asked == (before.empty() ? usual : before) ? "" : asked;
}

void note_guidance(double none, double guidance) {
  if (none == 0 || guidance == 0 || guidance > none) return;
  log_warning(
      "guidance {}: pipelines of diffusers guide only above {}, vfm at any value except 0; give 0 "
      "to make what they make",
      guidance, none);
}

void note_shift(const SampleOptions& own, const SampleChoice& choice) {
  if (!own.diffusers || own.diffusers->shift == own.shift) return;
  if (choice.as || choice.shift || !choice.sigmas.empty()) return;
  log_warning(
      "the shift of noise levels is {}, as in the program of the model's authors; in diffusers it "
      "is {}: give --as reference or --as diffusers",
      own.shift, own.diffusers->shift);
}

void RequestMaker::note_sizes(const NamedRequest& request) {
  const Extents largest = generator_.largest();
  const ClipRequest& clip = request.clip;
  if (!noted_size_ && generator_.beyond_training(clip)) {
    noted_size_ = true;
    log_warning(
        "{} of {}x{} {} more than the model was trained on ({} of {}x{}): {}the clip may lack "
        "detail",
        counted(clip.frames, "frame"), clip.width, clip.height, is_or_are(clip.frames),
        largest.frames, largest.width, largest.height,
        generator_.autoregressive() ? "" : "positions are squeezed, ");
  }
  if (output_.to_stream() || job_.latents_only || noted_odd_) return;
  const auto [width, height] = media::coded_size(request.encoder, clip.width, clip.height);
  noted_odd_ = width != clip.width || height != clip.height;
  if (noted_odd_)
    log_warning(
        "{} cannot hold {}x{}: the last column or row is repeated, the mp4 is {}x{}; with -o - or "
        "--encoder ffv1 nothing is added",
        request.encoder, clip.width, clip.height, width, height);
}

std::shared_ptr<NamedRequest> RequestMaker::make(Prompt prompt) {
  refuse_other_model(in_use_, prompt.made_by);
  prompt.choice.check_for(generator_.autoregressive(), generator_.sampling().process,
                          generator_.facts().networks());
  const auto request = std::make_shared<NamedRequest>();
  request->sampling = prompt.choice.over(generator_.sampling());
  if (generator_.shape().takes_picture()) {
    if (prompt.choice.augment_sigma.value_or(0) != 0)
      fail_usage("augment_sigma {}: this model's condition has no noise: leave it out",
                 *prompt.choice.augment_sigma);
    request->sampling.augment_sigma = 0;
  }
  request->clip = request_of(prompt, generator_.usual(), generator_.facts().fps);
  request->name = std::move(prompt.name);
  request->encoder = std::move(prompt.encoder);
  if (request->encoder.empty())
    request->encoder = job_.latents_only ? job_.encoder : output_.encoder();
  request->quality = prompt.quality.value_or(job_.quality);
  request->extra = std::move(prompt.extra);
  generator_.shape().check_size(request->clip);
  if (!job_.latents_only) generator_.check_decodes(request->clip);
  if (!std::exchange(noted_sampling_, true)) {
    note_shift(generator_.sampling(), prompt.choice);
    note_guidance(generator_.facts().no_guidance, request->sampling.guidance);
  }
  media::frame_rate(request->clip.fps);  // refuses a rate now, not after the clip was made
  note_sizes(*request);
  request->files = std::move(prompt.files);
  read_given_files(request->files, generator_.shape(), request->clip);
  return request;
}

void ClipNames::take(NamedRequest& request, bool own_seed, const ModelInUse& in_use,
                     const ClipFolder& output) {
  const bool named = !request.name.empty();
  for (;; ++request.clip.seed) {
    if (!named) {
      const std::string words = slug(request.clip.prompt);
      request.name = words + (words.empty() ? "" : "-") +
                     hash_hex(dump_json(describe_clip(in_use, request, output))).substr(0, 16);
    }
    if (names_.insert(request.name).second) return;
    // A repeated bare prompt means another clip; a name or a seed of its own says which.
    if (named) fail("the name '{}' is taken by another prompt of this run", request.name);
    if (own_seed) fail("the same clip was asked for before");
  }
}

}  // namespace vfm::generate
