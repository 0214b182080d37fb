// SPDX-License-Identifier: Apache-2.0
#include "generate/generate_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "base/error.h"
#include "generate/clip_output.h"
#include "generate/clip_request.h"
#include "generate/denoiser.h"
#include "generate/given_files.h"
#include "generate/named_request.h"
#include "generate/network_headers.h"
#include "generate/usable_model.h"
#include "models/cosmos/cost.h"
#include "models/cosmos/tokenizer.h"
#include "models/dit/fp8.h"
#include "models/dit/network_cost.h"
#include "models/fsq.h"
#include "models/text_encoder.h"
#include "tensor/device.h"
#include "tensor/meta.h"
#include "tensor/program_memory.h"

namespace vfm::generate {
namespace {

constexpr int kUsualText = 512;  // tokens of a prompt, at most
/// Of the memory of tensors that is not in use the allocator keeps so much (caching_allocator.h).
constexpr double kKept = 0.25;

std::int64_t rounded(double bytes) {
  return static_cast<std::int64_t>(bytes);
}

/// A part of the model: what its headers say, and its cost for the clip.
struct Part {
  std::string type;
  double file_bytes = 0;    ///< of its weights
  double mapped_bytes = 0;  ///< of the file, while it is used from there
  models::PartCost cost;    ///< flops of the clip
  double held_bytes = 0;    ///< what the allocator holds for the activations, with what it keeps

  Json json() const {
    return {{"type", type},
            {"parameters", cost.parameters},
            {"file_bytes", rounded(file_bytes)},
            {"weight_bytes", rounded(cost.weight_bytes)},
            {"activation_bytes", rounded(cost.activation_bytes)},
            {"host_bytes", rounded(cost.host_bytes)},
            {"flops", cost.flops}};
  }
};

/// An encoder of the kind of x264 with the preset that clips have: its tables, and the frames that
/// it looks ahead and refers to, each with the half-pixel planes that it is searched in. All of it
/// is that library's own, and estimated: there is no run of a model that would tell.
double encoder_bytes(double frames, double pixels) {
  constexpr double kAhead = 14, kOthers = 4;
  return 3.0 * (1 << 20) + 5.5 * pixels * (std::min(frames, kAhead) + kOthers);
}

/// The clip, and the latent that it is made of.
struct Clip {
  generate::ClipRequest request;
  generate::Extents latent;
  std::int64_t tokens = 0, text_tokens = 0, samples = 1;
};

class Estimate {
 public:
  explicit Estimate(const GenerateJob& job);
  Json json() const;

 private:
  void read_tokenizer();
  void read_text_encoder();
  bool foreign_text() const { return facts_.text_encoder && facts_.text_encoder->foreign(); }
  generate::ModelShape shape_of_model() const;
  void check_fp8() const;
  void plan_clip();
  Part network_part() const;
  Part tokenizer_part() const;
  Part text_part() const;
  Json predicted(const Part& network, const Part& tokenizer, const Part& text, double peak) const;

  const GenerateJob& job_;
  generate::ModelFacts facts_;
  NetworkHeaders network_;
  std::optional<models::CosmosFolder> cosmos_;         // or a built-in tokenizer:
  std::unique_ptr<models::VideoTokenizer> tokenizer_;  // which has no weights
  std::optional<models::TextEncoderFolder> text_;
  generate::ModelShape shape_;
  generate::SampleOptions own_sampling_, sampling_;
  DType compute_ = DType::f32;
  Clip clip_;
  models::CpChoice cp_;  ///< of the ranks that share it
};

Estimate::Estimate(const GenerateJob& job)
    : job_(job), facts_(models::retry_if_gone(job.model, [&] {
        return models::read_facts(models::ModelFolder(job.model));
      })) {
  own_sampling_ = SampleOptions::of(facts_.sampling, "'" + job.model + "'");
  network_ = read_network(job);
  const bool f32 = job.device == Device::cpu && !job.fp8.any();
  compute_ =
      job.compute.value_or(f32 ? DType::f32 : (job.fp8.any() ? DType::bf16 : network_.trained));
  Faults& faults = network_.faults;
  faults.look([&] {
    move_parts(facts_, job);
    read_tokenizer();
  });
  faults.look([&] { read_text_encoder(); });
  faults.finish();
  shape_ = shape_of_model();
  shape_.check_parts(facts_, job.model);
  if (job.fp8.any()) check_fp8();
  if (!job.parallel.alone()) cp_ = check_shared(job, job.parallel.ranks());
  job.defaults.choice.check_for(network_.decoder.has_value(), own_sampling_.sampler);
  sampling_ = job.defaults.choice.over(own_sampling_);
  sampling_.validate();
  generate::note_guidance(job.model, sampling_.guidance);
  plan_clip();
  if (job.output != "-") usable_encoder(job.encoder);
}

generate::ModelShape Estimate::shape_of_model() const {
  generate::ModelShape shape;
  if (network_.decoder)
    shape.take(*network_.decoder);
  else
    shape.take(*network_.dit);
  if (cosmos_) {
    const models::CosmosConfig& config = cosmos_->config;
    shape.channels = config.latent_channels;
    shape.vocabulary = config.discrete() ? models::Fsq(config.levels).codes() : 0;
    shape.time_factor = config.temporal_compression_ratio;
    shape.space_factor = config.spatial_compression_ratio;
  } else {
    shape.channels = tokenizer_->channels();
    shape.vocabulary = tokenizer_->vocabulary();
    shape.time_factor = tokenizer_->time_factor();
    shape.space_factor = tokenizer_->space_factor();
  }
  shape.flow = own_sampling_.sampler == generate::Sampler::flow;
  if (text_)
    shape.encoder_width = text_->config.width;
  else if (shape.foreign_text = foreign_text(); shape.foreign_text)
    shape.encoder_width = shape.text_width;
  else if (facts_.text_encoder && shape.text_width > 0)
    shape.encoder_width = models::make_text_encoder(*facts_.text_encoder)->dim();
  return shape;
}

void Estimate::check_fp8() const {
  if (network_.decoder) fail_usage("FP8 is for diffusion models, this one is autoregressive");
  models::check_fp8(*network_.dit, compute_, job_.fp8);
  if (job_.fp8.linear && !network_.adapters.empty())
    fail_usage("products in FP8 take no separate adapters: merge them into the weights");
}

void Estimate::read_tokenizer() {
  if (models::is_cosmos_tokenizer(facts_.tokenizer->name))
    cosmos_ = models::inspect_cosmos(*facts_.tokenizer, job_.device);
  else
    tokenizer_ = models::make_tokenizer(*facts_.tokenizer, Device::cpu, job_.tokenizer_memory);
}

void Estimate::read_text_encoder() {
  models::TextEncoderOptions options{job_.device, {}, job_.text_encoder, "--text-encoder"};
  if (!facts_.text_encoder) {
    if (!job_.text_encoder.empty())
      fail_usage("--text-encoder: the model was trained without text, and reads none");
  } else if (foreign_text()) {
    if (!job_.text_encoder.empty())
      fail_usage(
          "--text-encoder: the model was trained on text embeddings that vfm-embed did not make");
  } else if (!facts_.text_encoder->path.empty()) {
    if (facts_.text_encoder->compute.empty()) options.compute = compute_;
    text_ = models::inspect_text_encoder(*facts_.text_encoder, options);
  }
}

void Estimate::plan_clip() {
  Clip& c = clip_;
  c.request = request_of(job_.defaults, shape_.pixels_of(facts_.usual), facts_.fps);
  generate::ClipRequest request = c.request;
  generate::GivenFiles files = job_.defaults.files;
  read_given_files(files, shape_, request);
  shape_.check(request);
  c.latent = shape_.latent_of(c.request);
  const std::array<int, 3>& patch = shape_.patch;
  c.tokens = std::int64_t{c.latent.frames / patch[0]} * (c.latent.height / patch[1]) *
             (c.latent.width / patch[2]);
  const bool text = facts_.text_encoder.has_value();
  c.text_tokens = facts_.text_padding > 0 ? facts_.text_padding : text ? kUsualText : 1;
  if (request.embedding) c.text_tokens = std::max(facts_.text_padding, request.embedding->tokens);
  if (request.negative_embedding)
    c.text_tokens = std::max<std::int64_t>(c.text_tokens, request.negative_embedding->tokens);
  c.samples = network_.dit && text && sampling_.guidance != 0 ? 2 : 1;
}

Part Estimate::network_part() const {
  Part part{network_.type, network_.file_bytes};
  if (network_.decoder) {
    const models::CodeSample sample{clip_.latent.frames, clip_.latent.height, clip_.latent.width,
                                    static_cast<int>(clip_.text_tokens)};
    part.cost = models::writing_cost(*network_.decoder, sample, compute_, job_.device);
  } else {
    models::NetworkSample sample{clip_.latent.frames, clip_.latent.height, clip_.latent.width};
    sample.text_tokens = static_cast<int>(clip_.text_tokens);
    const generate::Extents &size = clip_.latent, &known = facts_.largest;
    sample.position_step = generate::position_steps({size.frames, size.height, size.width},
                                                    {known.frames, known.height, known.width},
                                                    network_.dit->patch_size);
    const ClipParallel& parallel = job_.parallel;
    const auto world = dist::counted_world(0, parallel.ranks());
    const std::int64_t samples = std::max<std::int64_t>(1, clip_.samples / parallel.cfg);
    const ClipRanks ranks(*world, parallel, cp_);
    part.cost = models::forward_cost(*network_.dit, network_.adapters,
                                     std::vector(static_cast<std::size_t>(samples), sample),
                                     compute_, job_.fp8, job_.device, ranks.network());
    part.cost.repeat(generate::evaluations(sampling_));
    // Of the sampler, not of the model: its state, the estimate, and two more that some have.
    part.cost.host_bytes = 4.0 * sizeof(double) * shape_.channels * clip_.latent.frames *
                           clip_.latent.height * clip_.latent.width;
  }
  part.held_bytes = part.cost.held_bytes;
  return part;
}

Part Estimate::tokenizer_part() const {
  const Clip& c = clip_;
  Part part{facts_.tokenizer->name};
  if (cosmos_) {
    models::CosmosRoom room;
    if (!job_.latents_only) room.memory = static_cast<double>(job_.tokenizer_memory);
    std::int64_t step =
        models::cosmos_step(cosmos_->config, models::CosmosWork::decode, c.latent.frames,
                            c.latent.height, c.latent.width, room, job_.device, cosmos_->compute);
    if (room.memory == 0 || step < c.latent.frames)
      step = std::min<std::int64_t>(
          step, (c.latent.frames + job_.parallel.ranks() - 1) / job_.parallel.ranks());
    part.file_bytes = cosmos_->file_bytes;
    part.cost =
        models::cosmos_cost(cosmos_->config, models::CosmosWork::decode, c.latent.frames,
                            c.latent.height, c.latent.width, step, job_.device, cosmos_->compute);
  } else {
    const Tensor latent({tokenizer_->channels(), c.latent.frames, c.latent.height, c.latent.width},
                        DType::f32, Device::meta);
    const MetaAccount account(job_.device);
    models::make_tokenizer(*facts_.tokenizer, Device::meta)
        ->decode({latent.data<float>(), static_cast<std::size_t>(latent.elements())},
                 c.latent.frames, c.latent.height, c.latent.width);
    part.cost.take(account, 0);
    // All pixels, which it returns.
    const double space = tokenizer_->space_factor();
    const double frames = 1.0 + (c.latent.frames - 1) * tokenizer_->time_factor();
    part.cost.host_bytes =
        sizeof(float) * 3 * frames * c.latent.height * c.latent.width * space * space;
  }
  part.held_bytes = part.cost.held_bytes;
  // Its many sizes come one after the other: what the allocator gives back of them the C library
  // keeps, in part.
  if (cosmos_ && job_.device == Device::cpu) part.held_bytes += kKept * part.cost.activation_bytes;
  return part;
}

Part Estimate::text_part() const {
  Part part{"none"};
  if (facts_.text_encoder) part.type = facts_.text_encoder->name;
  if (!text_) return part;
  part.file_bytes = text_->file_bytes;
  // Of the embedding only the rows of the text are touched.
  part.mapped_bytes =
      std::max(0.0, part.file_bytes - static_cast<double>(dtype_size(text_->stored)) *
                                          text_->config.vocabulary * text_->config.width);
  part.cost =
      models::t5_cost(text_->config, clip_.text_tokens, text_->stored, text_->compute, job_.device);
  const bool second = clip_.samples > 1 && (facts_.encode_empty || !job_.defaults.negative.empty());
  part.cost.repeat(second ? 2 : 1);
  part.held_bytes = part.cost.held_bytes;
  return part;
}

/// The time of the clip on job.gpu; of the network all passes, by lines.
Json Estimate::predicted(const Part& network, const Part& tokenizer, const Part& text,
                         double peak) const {
  const models::Gpu& gpu = *job_.gpu;
  const double passes = network_.decoder ? 1 : generate::evaluations(sampling_);
  std::vector<models::TimeLine> lines = models::predict(gpu, network.cost.calls);
  const double sampling = models::sum_of("network", lines).seconds;
  for (const auto& [name, part] : {std::pair{"text encoder", &text}, {"tokenizer", &tokenizer}})
    lines.push_back(models::sum_of(name, models::predict(gpu, part->cost.calls)));
  Json json =
      models::prediction(gpu, lines, passes * static_cast<double>(clip_.tokens * clip_.samples),
                         network.cost.flops + text.cost.flops + tokenizer.cost.flops, peak);
  json["pass_seconds"] = sampling / passes;
  return json;
}

Json Estimate::json() const {
  const Clip& c = clip_;
  const Part network = network_part(), tokenizer = tokenizer_part(), text = text_part();
  // On the CPU what is outside of tensors counts, and files that are mapped, while they are.
  const double host = job_.device == Device::cpu ? 1 : 0;
  const double program = host * program_memory();
  const double weights = network.cost.weight_bytes + tokenizer.cost.weight_bytes;
  // Ranks that share the clip share the reading, too.
  const double read = host / job_.parallel.ranks();
  const double loading = std::max(network.cost.weight_bytes + read * network.file_bytes,
                                  weights + read * tokenizer.file_bytes);
  const auto using_it = [&](const Part& part, double held) {
    return weights + host * (text.mapped_bytes + part.cost.host_bytes) + held;
  };
  // What reading the text had of tensors sampling has too: in use, or kept. On the CPU it is given
  // back before the clip is decoded (Generator::denoise).
  const double sampling = std::max(text.held_bytes, network.held_bytes);
  const double decoding =
      host > 0 ? tokenizer.held_bytes : std::max(sampling, tokenizer.held_bytes);
  const double encoder =
      job_.output == "-" ? 0
                         : encoder_bytes(c.request.frames,
                                         static_cast<double>(c.request.width) * c.request.height);
  const std::pair<const char*, double> phases[] = {
      {"loading", loading},
      {"encoding_text", using_it(text, text.held_bytes)},
      {"sampling", using_it(network, sampling)},
      {"decoding", using_it(tokenizer, decoding) + host * encoder}};
  Json memory;
  double peak = 0;
  for (const auto& [phase, bytes] : phases) {
    memory[phase] = rounded(program + bytes);
    peak = std::max(peak, program + bytes);
  }
  memory["program"] = rounded(program);
  memory["peak"] = rounded(peak);
  Json plan = {{"sampler", generate::to_string(sampling_.sampler)},
               {"steps", sampling_.steps},
               {"guidance", sampling_.guidance},
               {"passes", generate::evaluations(sampling_)},
               {"samples", c.samples}};
  if (network_.decoder)
    plan = {{"temperature", sampling_.temperature},
            {"top_p", sampling_.top_p},
            {"passes", c.tokens},
            {"samples", 1}};
  Json cost = {{"kind", "cost"},
               {"model", network_.type},
               {"device", job_.gpu != nullptr           ? job_.gpu->full_title()
                          : job_.device == Device::cuda ? describe_gpu()
                                                        : "cpu"},
               {"compute", compute_ == DType::bf16 ? "bf16" : "f32"},
               {"frames", c.request.frames},
               {"width", c.request.width},
               {"height", c.request.height},
               {"latent", {c.latent.frames, c.latent.height, c.latent.width}},
               {"tokens", c.tokens},
               {"text_tokens", c.text_tokens},
               {"sampling", plan},
               {"network", network.json()},
               {"text_encoder", text.json()},
               {"tokenizer", tokenizer.json()},
               {"flops", network.cost.flops + text.cost.flops + tokenizer.cost.flops},
               {"memory_bytes", memory}};
  if (!job_.parallel.alone()) {
    ClipParallel parallel = job_.parallel;
    parallel.cp_kind = models::cp_kind_name(cp_.kind);
    cost["parallel"] = parallel.name();
  }
  if (job_.gpu != nullptr) cost["predicted"] = predicted(network, tokenizer, text, peak);
  return cost;
}

}  // namespace

Json generation_cost(const GenerateJob& job) {
  return as_usage([&] { return Estimate(job).json(); });
}

}  // namespace vfm::generate
