// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/generator.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/one_thread.h"
#include "base/philox.h"
#include "generate/sampling/prompt_encoder.h"
#include "tensor/allocator.h"
#include "tensor/device.h"

namespace vfm::generate {

namespace {

/// The given frames in the size that the latents decode to: edges are repeated where the clip will
/// be cut out.
std::vector<float> extend(const GivenFrames& given, int height, int width, int full_height,
                          int full_width) {
  const int top = (full_height - height) / 2, left = (full_width - width) / 2;
  std::vector<float> pixels;
  pixels.reserve(std::size_t{3} * given.frames * full_height * full_width);
  for (int plane = 0; plane < 3 * given.frames; ++plane)
    for (int row = 0; row < full_height; ++row)
      for (int column = 0; column < full_width; ++column) {
        const std::size_t y = static_cast<std::size_t>(std::clamp(row - top, 0, height - 1));
        const std::size_t x = static_cast<std::size_t>(std::clamp(column - left, 0, width - 1));
        pixels.push_back(given.pixels[(static_cast<std::size_t>(plane) * height + y) * width + x]);
      }
  return pixels;
}

/// Pixels (3, `frames`, ...) and grey after them, (3, `all`, ...).
std::vector<float> with_grey(const std::vector<float>& pixels, int frames, int all) {
  const std::size_t own = pixels.size() / 3,
                    whole = own / static_cast<std::size_t>(frames) * static_cast<std::size_t>(all);
  std::vector<float> longer(3 * whole);
  for (std::size_t channel = 0; channel < 3; ++channel)
    std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(channel * own), own,
                longer.begin() + static_cast<std::ptrdiff_t>(channel * whole));
  return longer;
}

std::size_t elements(const Latent& latent) {
  return static_cast<std::size_t>(latent.channels) * latent.frames * latent.height * latent.width;
}

}  // namespace

struct Generator::State {
  State(models::LoadedModel loaded, std::unique_ptr<models::VideoTokenizer> its_tokenizer,
        const std::string& cache, const std::string& text_encoder)
      : model(std::move(loaded)),
        facts(model.facts),
        sampling(SampleOptions::of(facts.sampling, "'" + model.folder + "'")),
        tokenizer(std::move(its_tokenizer)),
        prompts(facts, cache, text_options(text_encoder), text_width()) {
    if (autoregressive()) {
      shape.take(model.decoder->config());
    } else {
      shape.take(config(), facts);
      network = &own.emplace(*model.network);
    }
    shape.channels = tokenizer->channels();
    shape.vocabulary = tokenizer->vocabulary();
    shape.time_factor = tokenizer->time_factor();
    shape.space_factor = tokenizer->space_factor();
    shape.encoder_width = prompts.reads_text() ? prompts.dim() : 0;
    shape.foreign_text = prompts.foreign();
  }

  /// On the network's device, and in its type where the checkpoint does not say.
  models::TextEncoderOptions text_options(const std::string& folder) const {
    models::TextEncoderOptions options{model.device(), {}, folder, "--text-encoder"};
    if (facts.text_encoder && facts.text_encoder->compute.empty()) options.compute = model.compute;
    return options;
  }

  models::LoadedModel model;
  const ModelFacts& facts;
  SampleOptions sampling;
  std::unique_ptr<models::VideoTokenizer> tokenizer;
  PromptEncoder prompts;
  ModelShape shape;
  std::optional<ClipNetwork> own;
  ClipNetwork* network = nullptr;  ///< `own`, or one that ranks share; null for a decoder of one
  bool quantized = false;

  bool autoregressive() const { return model.decoder != nullptr; }
  int text_width() const {
    return autoregressive() ? model.decoder->config().text_embed_dim : config().text_embed_dim;
  }
  const models::NetworkConfig& config() const { return model.network->config(); }
  text::TokenEmbeddings prompt_of(const ClipRequest& request) const {
    return request.embedding ? prompts.fill_up(*request.embedding) : prompts.encode(request.prompt);
  }
  text::TokenEmbeddings negative_of(const ClipRequest& request) const {
    return request.negative_embedding ? prompts.fill_up(*request.negative_embedding)
                                      : prompts.encode(request.negative);
  }
  Latent latent_of(const ClipRequest& request) const;
  void check(const ClipRequest& request, const SampleOptions& options) const;
  void add_given(const ClipRequest& request, DenoiseInput& input) const;
  Denoiser make_denoiser(const ClipRequest& request, const SampleOptions& options) const;
  std::vector<double> first_state(const ClipRequest& request, double deviation) const;
  void check_state(const ClipRequest& request, const models::SamplerState& state, int steps) const;
  Latent clean_latent(const ClipRequest& request, const models::SamplerState& state) const;
};

Generator::Generator(models::LoadedModel model, const std::string& cache,
                     const std::string& text_encoder, std::uint64_t tokenizer_memory) {
  auto tokenizer =
      models::make_tokenizer(model.facts.tokenizer.value(), model.device(), tokenizer_memory);
  *this = Generator(std::move(model), std::move(tokenizer), cache, text_encoder);
}

Generator::Generator(models::LoadedModel model, std::unique_ptr<models::VideoTokenizer> tokenizer,
                     const std::string& cache, const std::string& text_encoder)
    : state_(std::make_unique<State>(std::move(model), std::move(tokenizer), cache, text_encoder)) {
  State& s = *state_;
  s.shape.check_parts(s.facts, s.model.folder);
}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

const models::LoadedModel& Generator::model() const {
  return state_->model;
}
const SampleOptions& Generator::sampling() const {
  return state_->sampling;
}
const models::VideoTokenizer& Generator::tokenizer() const {
  return *state_->tokenizer;
}
Extents Generator::usual() const {
  return shape().pixels_of(facts().usual);
}
Extents Generator::largest() const {
  return shape().pixels_of(facts().largest);
}
void Generator::check_decodes(const ClipRequest& request) const {
  state_->shape.check_size(request);
  const Extents latent = state_->shape.latent_of(request);
  state_->tokenizer->check_memory(false, latent.frames, latent.height, latent.width, 1);
}
bool Generator::autoregressive() const {
  return state_->autoregressive();
}
bool Generator::video_to_world() const {
  return state_->shape.video_to_world();
}
Latent Generator::latent_of(const ClipRequest& request) const {
  return state_->latent_of(request);
}
const ModelShape& Generator::shape() const {
  return state_->shape;
}

bool Generator::beyond_training(const ClipRequest& request) const {
  const Latent size = state_->latent_of(request);
  const Extents& known = state_->facts.largest;
  return size.frames > known.frames || size.height > known.height || size.width > known.width;
}

Latent Generator::State::latent_of(const ClipRequest& request) const {
  const Extents size = shape.latent_of(request);
  return {autoregressive() ? 1 : shape.channels, size.frames, size.height, size.width, {}};
}

void Generator::State::check(const ClipRequest& request, const SampleOptions& options) const {
  options.validate();
  check_sampler(options.sampler, sampling.process);
  shape.check(request);
}

/// Encodes the given frames; for mask_and_latent with grey frames after them, to the clip's end.
void Generator::State::add_given(const ClipRequest& request, DenoiseInput& input) const {
  const GivenFrames& given = *request.given;
  const Latent size = latent_of(request);
  const int height = size.height * shape.space_factor, width = size.width * shape.space_factor;
  std::vector<float> pixels = extend(given, request.height, request.width, height, width);
  int frames = given.frames;
  if (shape.given == models::GivenFramesBy::mask_and_latent) {
    frames = shape.pixels_of({size.frames, size.height, size.width}).frames;
    pixels = with_grey(pixels, given.frames, frames);
  }
  input.given_by = shape.given;
  input.given_frames = 1 + (given.frames - 1) / shape.time_factor;
  input.given = tokenizer->encode(pixels, frames, height, width);
  facts.scale->to_model(input.given, 1 + (frames - 1) / shape.time_factor, sampling.process);
}

Denoiser Generator::State::make_denoiser(const ClipRequest& request,
                                         const SampleOptions& options) const {
  const Latent size = latent_of(request);
  const Extents& known = facts.largest;
  DenoiseInput input;
  input.channels = size.channels;
  input.round_time = facts.round_time;
  input.boundary = facts.boundary.value_or(0);
  input.sample.frames = size.frames;
  input.sample.height = size.height;
  input.sample.width = size.width;
  input.sample.fps = request.frames == 1 ? 0.0f : static_cast<float>(request.fps);
  input.sample.position_step =
      position_steps({size.frames, size.height, size.width},
                     {known.frames, known.height, known.width}, config().patch_size);
  input.texts.push_back(prompt_of(request));
  const bool embedded = request.embedding || request.negative_embedding;
  if (options.guides() && (embedded || request.prompt != request.negative))
    input.texts.push_back(negative_of(request));
  if (request.given) add_given(request, input);
  return Denoiser(*network, std::move(input), options, noise_levels(options), request.seed,
                  random_key(request.prompt));
}

/// Where sampling begins: noise of this standard deviation. Not of the square root of sigma^2 +
/// 1, which NVIDIA's own programs have and at sigma 80 is larger by 0.00008.
std::vector<double> Generator::State::first_state(const ClipRequest& request,
                                                  double deviation) const {
  std::vector<float> noise(elements(latent_of(request)));
  if (request.noise)
    noise = *request.noise;
  else
    Random(request.seed, Purpose::sampler_noise, 0, random_key(request.prompt)).fill_normal(noise);
  std::vector<double> x(noise.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = deviation * noise[i];
  return x;
}

double Generator::fp8_error(models::Fp8Parts parts, const ClipRequest& request,
                            const SampleOptions& options) {
  State& s = *state_;
  if (s.autoregressive())
    fail_usage("--fp8 is for diffusion models, and this one is autoregressive: leave it out");
  s.check(request, options);
  const OneThread one_thread;
  Denoiser denoiser = s.make_denoiser(request, options);
  const double sigma = noise_levels(options).front();
  const models::NetworkBatch& batch =
      denoiser.batch(s.first_state(request, first_deviation(options)), sigma);
  return models::fp8_error([&](models::Fp8Parts some) { s.network->switch_fp8(some); },
                           [&] { return s.network->forward(batch); }, parts);
}

void Generator::set_fp8(models::Fp8Parts parts) {
  if (state_->autoregressive())
    fail_usage("--fp8 is for diffusion models, and this one is autoregressive: leave it out");
  state_->network->switch_fp8(parts);
}

double Generator::quantize(const ClipRequest& request, const SampleOptions& options) {
  State& s = *state_;
  s.check(request, options);
  if (s.quantized)
    fail("the weights are in 8 bits, and what that changes could not be measured: run it again");
  const OneThread one_thread;
  Denoiser denoiser = s.make_denoiser(request, options);
  const double sigma = noise_levels(options).front();
  const models::NetworkBatch& batch =
      denoiser.batch(s.first_state(request, first_deviation(options)), sigma);
  const Tensor without = s.network->forward(batch);
  quantize();
  return models::output_change(without, s.network->forward(batch));
}

void Generator::quantize() {
  state_->quantized = true;
  state_->network->quantize_all();
}

void Generator::share(ClipNetwork& network) {
  state_->network = &network;
}

/// Throws Error if the state cannot be one of this clip's before its last step.
void Generator::State::check_state(const ClipRequest& request, const models::SamplerState& state,
                                   int steps) const {
  const std::size_t values = elements(latent_of(request));
  const auto fits = [&](const std::vector<double>& x) { return x.size() == values; };
  if (!fits(state.x) || !std::ranges::all_of(state.estimates, fits) || state.step > steps ||
      !(state.corrected.empty() || fits(state.corrected)))
    fail("a state after step {} with {} values is not of this clip", state.step, state.x.size());
}

/// What was sampled, in the tokenizer's units.
Latent Generator::State::clean_latent(const ClipRequest& request,
                                      const models::SamplerState& state) const {
  if (!std::ranges::all_of(state.x, [](double value) { return std::isfinite(value); }))
    fail("the model '{}' makes values that are not finite: its weights are damaged", model.folder);
  Latent latent = latent_of(request);
  latent.values.assign(state.x.begin(), state.x.end());
  facts.scale->from_model(latent.values, latent.frames, sampling.process);
  return latent;
}

CodeJob Generator::code_job(const ClipRequest& request, const SampleOptions& options) const {
  const State& s = *state_;
  s.check(request, options);
  const Latent latent = s.latent_of(request);
  CodeJob job;
  job.sample = {latent.frames, latent.height, latent.width, 1};
  job.options = {options.temperature, options.top_p};
  job.seed = request.seed;
  job.key = random_key(request.prompt);
  if (s.text_width() > 0) {
    text::TokenEmbeddings prompt = s.prompt_of(request);
    job.sample.text_tokens = prompt.tokens;
    job.text = std::move(prompt.values);
  }
  if (request.given) {
    const int height = latent.height * s.tokenizer->space_factor();
    const int width = latent.width * s.tokenizer->space_factor();
    job.given = s.tokenizer->encode_codes(
        extend(*request.given, request.height, request.width, height, width), request.given->frames,
        height, width);
  }
  return job;
}

/// Codes are whole numbers of one channel.
std::vector<Latent> Generator::write(std::span<const CodeJob> jobs, const HowFarOf& how_far) const {
  const State& s = *state_;
  const OneThread one_thread;
  const auto turn = take_turn(s.model.device());
  const std::vector<std::vector<std::int32_t>> codes =
      s.network ? s.network->write(jobs, how_far) : write_codes(*s.model.decoder, jobs, how_far);
  std::vector<Latent> latents;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const models::CodeSample& size = jobs[i].sample;
    Latent& latent = latents.emplace_back(Latent{1, size.frames, size.height, size.width, {}});
    latent.values.assign(codes[i].begin(), codes[i].end());
  }
  return latents;
}

Latent Generator::denoise(const ClipRequest& request, const SampleOptions& options,
                          models::SamplerState state, const models::AfterStep& after_step,
                          const HowFar& how_far) const {
  const State& s = *state_;
  s.check(request, options);
  const OneThread one_thread;
  Latent latent;
  if (s.autoregressive()) {
    const CodeJob job = code_job(request, options);
    const auto one = [&](std::size_t, std::int64_t done, std::int64_t total) {
      if (how_far) how_far(done, total);
    };
    latent = std::move(write(std::span(&job, 1), one).front());
  } else {
    Denoiser denoiser = s.make_denoiser(request, options);
    const models::SamplingPath path = {
        .process = options.process,
        .sampler = options.sampler,
        .levels = noise_levels(options),
        .denoise = [&](std::span<const double> x, double level,
                       std::span<double> x0) { denoiser.estimate(x, level, x0); },
        .noise = models::fresh_noise(request.seed, random_key(request.prompt))};
    if (state.step == 0) state = {0, s.first_state(request, first_deviation(options))};
    const int steps = static_cast<int>(path.levels.size()) - 1;
    s.check_state(request, state, steps);
    if (how_far) how_far(state.step, steps);
    models::sample(path, state, [&](const models::SamplerState& now) {
      if (how_far) how_far(now.step, steps);
      if (after_step) after_step(now);
    });
    latent = s.clean_latent(request, state);
  }
  // What this had of tensors has other sizes than what decodes the clip next.
  if (s.model.device() == Device::cpu) release_cached_memory();
  return latent;
}

}  // namespace vfm::generate
