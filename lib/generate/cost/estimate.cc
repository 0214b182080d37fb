// SPDX-License-Identifier: Apache-2.0
#include "generate/cost/estimate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "generate/files/clip_output.h"
#include "generate/ranks/shared_pass.h"
#include "generate/request/given_files.h"
#include "generate/request/named_request.h"
#include "generate/sampling/denoiser.h"
#include "generate/sampling/usable_model.h"
#include "models/dit/fp8.h"
#include "tensor/device.h"
#include "tensor/program_memory.h"

namespace vfm::generate {
namespace {

constexpr int kUsualText = 512;  // tokens of a prompt, at most
/// Beside the tensors of a tokenizer's pass: small blocks that the C library keeps, and the machine
/// code of convolutions. A part of the tensors' memory.
constexpr double kKept = 0.25;

/// An encoder of the kind of x264 with the preset that clips have: its tables, and the frames that
/// it looks ahead and refers to, each with the half-pixel planes that it is searched in. All of it
/// is that library's own, and estimated: there is no run of a model that would tell.
double encoder_bytes(double frames, double pixels) {
  constexpr double kAhead = 14, kOthers = 4;
  return 3.0 * (1 << 20) + 5.5 * pixels * (std::min(frames, kAhead) + kOthers);
}

}  // namespace

ClipEstimate::ClipEstimate(const GenerateJob& job, const models::OpenedModel& opened)
    : job_(job), facts_(opened.facts()) {
  own_sampling_ = SampleOptions::of(facts_.sampling, "'" + job.model + "'");
  network_ = read_network(job, opened);
  const bool f32 = job.device == Device::cpu && !job.fp8.any();
  compute_ =
      job.compute.value_or(f32 ? DType::f32 : (job.fp8.any() ? DType::bf16 : network_.trained));
  Faults& faults = network_.faults;
  faults.look([&] {
    move_parts(facts_, job, opened.folder().is_pipeline());
    tokenizer_ = models::inspect_tokenizer(*facts_.tokenizer, job.device, job.tokenizer_memory);
  });
  faults.look([&] { read_text_encoder(); });
  faults.finish();
  shape_ = shape_of_model();
  shape_.check_parts(facts_, job.model);
  if (job.fp8.any()) check_fp8();
  if (job.quantize && network_.decoder)
    fail_usage("--quantize is for diffusion models, and this one is autoregressive: leave it out");
  job.defaults.choice.check_for(network_.decoder.has_value(), own_sampling_.process,
                                facts_.networks());
  sampling_ = job.defaults.choice.over(own_sampling_);
  sampling_.validate();
  plan_clip();
  if (job.output != "-") usable_encoder(job.encoder);
  share(job.parallel, job.gpu != nullptr ? job.gpu->per_node : job.parallel.sharers());
}

void ClipEstimate::share(const dist::Layout& parallel, int per_node) {
  parallel_ = parallel;
  if (!parallel.alone())
    parallel_ = settle_layout(parallel, network_, facts_, std::min(per_node, parallel.sharers()));
}

ModelShape ClipEstimate::shape_of_model() const {
  ModelShape shape;
  if (network_.decoder)
    shape.take(*network_.decoder);
  else
    shape.take(*network_.dit, facts_);
  shape.channels = tokenizer_.channels;
  shape.vocabulary = tokenizer_.vocabulary;
  shape.time_factor = tokenizer_.time_factor;
  shape.space_factor = tokenizer_.space_factor;
  if (text_)
    shape.encoder_width = text_->width;
  else if (shape.foreign_text = foreign_text(); shape.foreign_text)
    shape.encoder_width = shape.text_width;
  else if (facts_.text_encoder && shape.text_width > 0)
    shape.encoder_width = models::make_text_encoder(*facts_.text_encoder)->dim();
  return shape;
}

void ClipEstimate::check_fp8() const {
  if (network_.decoder)
    fail_usage("--fp8 is for diffusion models, and this one is autoregressive: leave it out");
  models::check_fp8(*network_.dit, compute_, job_.fp8);
  if (job_.fp8.linear && !network_.adapters.empty())
    fail_usage("--fp8 takes no separate adapters: leave out --no-merge");
}

void ClipEstimate::read_text_encoder() {
  models::TextEncoderOptions options{job_.device, {}, job_.text_encoder, "--text-encoder"};
  if (!facts_.text_encoder) {
    if (!job_.text_encoder.empty())
      fail_usage("--text-encoder: the model was trained without text: leave it out");
  } else if (foreign_text()) {
    if (!job_.text_encoder.empty())
      fail_usage(
          "--text-encoder: the model was trained on text embeddings that vfm-embed did not make: "
          "leave it out");
  } else if (!facts_.text_encoder->path.empty()) {
    if (facts_.text_encoder->compute.empty()) options.compute = compute_;
    text_ = models::inspect_text_encoder(*facts_.text_encoder, options);
  }
}

void ClipEstimate::plan_clip() {
  Clip& c = clip_;
  c.request = request_of(job_.defaults, shape_.pixels_of(facts_.usual), facts_.fps);
  ClipRequest request = c.request;
  GivenFiles files = job_.defaults.files;
  read_given_files(files, shape_, request);
  shape_.check(request);
  if (request.given) c.given_frames = 1 + (request.given->frames - 1) / shape_.time_factor;
  c.latent = shape_.latent_of(c.request);
  const std::array<int, 3>& patch = shape_.patch;
  c.tokens = std::int64_t{c.latent.frames / patch[0]} * (c.latent.height / patch[1]) *
             (c.latent.width / patch[2]);
  const bool text = facts_.text_encoder.has_value();
  const bool tokens = text && !facts_.text_encoder->one_token();
  c.text_tokens = facts_.text_padding > 0 ? facts_.text_padding : tokens ? kUsualText : 1;
  if (request.embedding) c.text_tokens = std::max(facts_.text_padding, request.embedding->tokens);
  if (request.negative_embedding)
    c.text_tokens = std::max<std::int64_t>(c.text_tokens, request.negative_embedding->tokens);
  c.samples = network_.dit && text && sampling_.guides() ? 2 : 1;
}

std::optional<std::array<int, 2>> ClipEstimate::passes_of_two() const {
  if (!facts_.boundary) return std::nullopt;
  std::array<int, 2> passes = {};
  // A sampling of one number asks at the levels of any other.
  const models::SamplingPath path = {
      .process = sampling_.process,
      .sampler = sampling_.sampler,
      .levels = noise_levels(sampling_),
      .denoise =
          [&](std::span<const double>, double level, std::span<double> x0) {
            ++passes[network_of(level, *facts_.boundary)];
            x0[0] = 0;
          },
      .noise = [](int, std::span<float> noise) { noise[0] = 0; }};
  models::SamplerState state{0, {0}, {}};
  models::sample(path, state);
  return passes;
}

std::array<std::int64_t, 2> ClipEstimate::samples_of_two() const {
  const auto samples = [&](int network) {
    return sampling_.guidance_of(network) != 0 ? clip_.samples : 1;
  };
  return {samples(0), samples(1)};
}

std::int64_t ClipEstimate::samples_of_passes() const {
  const auto passes = passes_of_two();
  if (!passes) return evaluations(sampling_) * clip_.samples;
  const auto samples = samples_of_two();
  return (*passes)[0] * samples[0] + (*passes)[1] * samples[1];
}

ModelPart ClipEstimate::network_part(const models::Gpu* gpu) const {
  ModelPart part{network_.type, network_.file_bytes, network_.loading_bytes};
  if (network_.decoder) {
    const models::CodeSample sample{clip_.latent.frames, clip_.latent.height, clip_.latent.width,
                                    static_cast<int>(clip_.text_tokens)};
    SharedPass pass = shared_writing(
        {*network_.decoder, network_.adapters, sample, compute_, job_.device}, parallel_, gpu);
    part.cost = std::move(pass.cost);
    part.exchanges = std::move(pass.exchanges);
  } else {
    models::NetworkSample sample{clip_.latent.frames, clip_.latent.height, clip_.latent.width};
    sample.text_tokens = static_cast<int>(clip_.text_tokens);
    if (shape_.given == models::GivenFramesBy::clean_time) sample.clean_frames = clip_.given_frames;
    const Extents &size = clip_.latent, &known = facts_.largest;
    sample.position_step =
        position_steps({size.frames, size.height, size.width},
                       {known.frames, known.height, known.width}, network_.dit->patch_size);
    SharedPassWork work{*network_.dit, network_.adapters, sample,      clip_.samples,
                        compute_,      job_.fp8,          job_.device, job_.quantize};
    SharedPass pass = shared_pass(work, parallel_, gpu);
    // On a GPU they wait on the host, but for shards.
    if (job_.quantize && (job_.device == Device::cpu || parallel_.shards_state())) {
      work.quantize.reset();
      const models::PartCost whole = shared_pass(work, parallel_, nullptr).cost;
      part.whole_bytes = whole.weight_bytes;
      part.whole_pass_bytes = whole.weight_bytes + whole.held_bytes;
    }
    // One of two networks may be without guidance: its passes have one sample.
    const int passes = evaluations(sampling_);
    const auto full = static_cast<int>(samples_of_passes() - passes);
    const bool all = clip_.samples == 1 || full == passes;
    pass.repeat(all ? passes : full);
    if (!all) {
      work.quantize = job_.quantize;
      work.samples = 1;
      pass.add(shared_pass(work, parallel_, gpu), passes - full);
    }
    part.cost = std::move(pass.cost);
    part.exchanges = std::move(pass.exchanges);
    // Of the sampler, not of the model; 4 with the noise that it begins with or lcm adds.
    const int states = std::max(4, states_in_memory(sampling_.sampler));
    part.cost.host_bytes = 1.0 * states * sizeof(double) * shape_.channels * clip_.latent.frames *
                           clip_.latent.height * clip_.latent.width;
  }
  part.held_bytes = part.cost.held_bytes;
  return part;
}

/// The given frames, alone or with grey ones to the clip's end, are encoded before the first step.
void ClipEstimate::add_encoding(models::PartCost& cost) const {
  Extents size = clip_.latent;
  if (shape_.given != models::GivenFramesBy::mask_and_latent) size.frames = clip_.given_frames;
  const models::PartCost encoding =
      tokenizer_.cost({true, size.frames, size.height, size.width, job_.tokenizer_memory, 1}).cost;
  const Extents pixels = shape_.pixels_of(size);
  cost.host_bytes =
      std::max(cost.host_bytes, 3.0 * sizeof(float) * pixels.frames * pixels.height * pixels.width);
  cost.add_work(encoding);
  cost.activation_bytes = std::max(cost.activation_bytes, encoding.activation_bytes);
  cost.held_bytes = std::max(cost.held_bytes, encoding.held_bytes);
}

ModelPart ClipEstimate::tokenizer_part() const {
  const Clip& c = clip_;
  ModelPart part{facts_.tokenizer->name};
  models::TokenizerCost cost =
      tokenizer_.cost({false, c.latent.frames, c.latent.height, c.latent.width,
                       job_.latents_only ? 0 : job_.tokenizer_memory, parallel_.sharers()});
  part.file_bytes = tokenizer_.file_bytes;
  part.loading_bytes = tokenizer_.loading_bytes;
  part.split = cost.split;
  part.cost = std::move(cost.cost);
  if (c.given_frames > 0) add_encoding(part.cost);
  part.held_bytes = part.cost.held_bytes;
  if (part.split && job_.device == Device::cpu)
    part.held_bytes += kKept * part.cost.activation_bytes;
  return part;
}

ModelPart ClipEstimate::text_part() const {
  ModelPart part{"none"};
  if (facts_.text_encoder) part.type = facts_.text_encoder->name;
  if (!text_) return part;
  part.file_bytes = text_->file_bytes;
  // Of the embedding only the rows of the text are touched.
  part.mapped_bytes = std::max(0.0, part.file_bytes - text_->table_bytes);
  part.cost = text_->cost(clip_.text_tokens, job_.device);
  const bool second = clip_.samples > 1 && (facts_.encode_empty || !job_.defaults.negative.empty());
  part.cost.repeat(second ? 2 : 1);
  part.held_bytes = part.cost.held_bytes;
  return part;
}

ClipEstimate::Memory ClipEstimate::memory(const ModelPart& network, const ModelPart& tokenizer,
                                          const ModelPart& text) const {
  // On the CPU what is outside of tensors counts, and files that are mapped, while they are.
  const double host = job_.device == Device::cpu ? 1 : 0;
  Memory memory;
  memory.program = host * program_memory();
  const double weights = network.cost.weight_bytes + tokenizer.cost.weight_bytes;
  // Ranks that share the clip share the reading, too.
  const double read = host / parallel_.sharers();
  const double whole = std::max(network.cost.weight_bytes, network.whole_bytes);
  const double loading =
      std::max(whole + read * network.loading_bytes,
               whole + tokenizer.cost.weight_bytes + read * tokenizer.loading_bytes);
  const auto using_it = [&](const ModelPart& part, double held) {
    return weights + host * (text.mapped_bytes + part.cost.host_bytes) + held;
  };
  // The second of two networks is read when the memory of a pass is free.
  const double switching =
      network_.second_bytes > 0
          ? using_it(network, 0) + whole - network.cost.weight_bytes + read * network.loading_bytes
          : 0;
  // What reading the text had of tensors sampling has too: in use, or kept. On the CPU it is given
  // back before the clip is decoded (Generator::denoise).
  const double sampling = std::max(
      {text.held_bytes, network.held_bytes, network.whole_pass_bytes - network.cost.weight_bytes});
  const double decoding =
      host > 0 ? tokenizer.held_bytes : std::max(sampling, tokenizer.held_bytes);
  const Clip& c = clip_;
  const double encoder =
      job_.output == "-" ? 0
                         : encoder_bytes(c.request.frames,
                                         static_cast<double>(c.request.width) * c.request.height);
  memory.phases = {
      std::pair{"loading", loading},
      {"encoding_text", using_it(text, text.held_bytes) + whole - network.cost.weight_bytes},
      {"sampling", std::max(switching, using_it(network, sampling))},
      {"decoding", using_it(tokenizer, decoding) + host * encoder}};
  for (auto& [phase, bytes] : memory.phases)
    memory.peak = std::max(memory.peak, bytes += memory.program);
  return memory;
}

/// Ranks decode a clip together with a tokenizer from a folder: a rank has the share of the one
/// that has most.
ClipEstimate::Time ClipEstimate::time(const models::Gpu& gpu, const ModelPart& network,
                                      const ModelPart& tokenizer, const ModelPart& text) const {
  Time time;
  time.lines = models::predict(gpu, network.cost.calls);
  time.lines.insert(time.lines.end(), network.exchanges.begin(), network.exchanges.end());
  const double passes =
      network_.decoder ? static_cast<double>(clip_.tokens) : evaluations(sampling_);
  time.pass = models::sum_of("network", time.lines).seconds / passes;
  time.lines.push_back(models::sum_of("text encoder", models::predict(gpu, text.cost.calls)));
  models::TimeLine frames = models::sum_of("tokenizer", models::predict(gpu, tokenizer.cost.calls));
  const double share =
      tokenizer.split ? tokenizer.split->share(clip_.latent.frames, clip_.latent.height) : 1;
  for (double* const sum : {&frames.seconds, &frames.calls, &frames.flops, &frames.bytes})
    *sum *= share;
  time.lines.push_back(frames);
  return time;
}

Json ModelPart::json() const {
  const auto whole = [](double bytes) { return static_cast<std::int64_t>(bytes); };
  return {{"type", type},
          {"parameters", cost.parameters},
          {"file_bytes", whole(file_bytes)},
          {"weight_bytes", whole(cost.weight_bytes)},
          {"activation_bytes", whole(cost.activation_bytes)},
          {"host_bytes", whole(cost.host_bytes)},
          {"flops", cost.flops}};
}

}  // namespace vfm::generate
