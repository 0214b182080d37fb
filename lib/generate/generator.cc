// SPDX-License-Identifier: Apache-2.0
#include "generate/generator.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "base/stop.h"
#include "models/edm.h"
#include "models/tokenizer.h"
#include "tensor/device.h"
#include "text/encoder.h"

namespace vfm::generate {

namespace {

// Refuses requests whose sizes overflow long before memory runs out.
constexpr int kLargestSide = 16384, kMostFrames = 100000;

const Json& need_object(const Json& train, const char* name, const std::string& folder) {
  const auto found = train.find(name);
  if (found == train.end() || !found->is_object())
    fail("'{}/train.json' has no '{}': the checkpoint cannot generate", folder, name);
  return *found;
}

/// One OpenMP thread for the parallel regions that the calling thread opens, until the end of a
/// scope.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// Latent extents of a request, in whole tokens.
struct Extents {
  int t, h, w;
  std::size_t elements(int channels) const {
    return static_cast<std::size_t>(channels) * t * h * w;
  }
};

int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

/// Positions of n places, trained up to `trained` of them: 1 apart within, squeezed beyond.
double position_step(int n, int trained, int patch) {
  const int places = n / patch, known = trained / patch;
  if (places <= known || known < 1) return 1;
  return known == 1 ? 0 : static_cast<double>(known - 1) / (places - 1);
}

}  // namespace

struct Generator::State {
  models::LoadedModel model;
  std::unique_ptr<models::Tokenizer> tokenizer;
  std::unique_ptr<text::Encoder> encoder;
  models::LatentScale scale;
  Extents trained_latent{1, 0, 0};
  TrainedSize usual, largest;

  TrainedSize pixels(const Extents& latent) const {
    return {1 + (latent.t - 1) * tokenizer->time_factor(), latent.h * tokenizer->space_factor(),
            latent.w * tokenizer->space_factor(), 0};
  }
  Extents extents(const ClipRequest& request) const {
    const auto& patch = model.network->config().patch_size;
    const int time = tokenizer->time_factor(), space = tokenizer->space_factor();
    const int t = 1 + (request.frames - 1 + time - 1) / time;
    return {round_up(t, patch[0]), round_up(request.height, space * patch[1]) / space,
            round_up(request.width, space * patch[2]) / space};
  }

  void check(const ClipRequest& request, const SampleOptions& options) const;
  models::DitBatch make_batch(const ClipRequest& request, const Extents& size,
                              double guidance) const;
  std::vector<double> first_state(const ClipRequest& request, const Extents& size,
                                  double sigma) const;
  Denoise make_denoise(models::DitBatch& batch, double guidance) const;
  GeneratedClip to_frames(std::vector<float> latent, const Extents& size,
                          const ClipRequest& request) const;
};

Generator::Generator(models::LoadedModel model)
    : state_(std::make_unique<State>(State{std::move(model), {}, {}, {}, {1, 0, 0}, {}, {}})) {
  State& s = *state_;
  const Json& train = s.model.train;
  const std::string& folder = s.model.folder;
  s.tokenizer = models::make_tokenizer(need_object(train, "tokenizer", folder));
  s.encoder = text::make_encoder(need_object(train, "text_encoder", folder));
  const std::string what = "'" + folder + "/train.json'";
  s.scale = models::LatentScale::from_json(need_object(train, "latent_scale", folder), what);
  const Json& trained = need_object(train, "trained", folder);
  const auto extent = [&](const char* name) {
    const std::int64_t value = need_integer(trained, name, "'trained' of " + what);
    if (value < 1 || value > kMostFrames) fail("'trained' of {} has {} {}", what, value, name);
    return static_cast<int>(value);
  };
  s.trained_latent = {extent("frames"), extent("height"), extent("width")};
  const models::DitConfig& config = s.model.network->config();
  const auto channels = static_cast<std::size_t>(s.tokenizer->channels());
  if (s.scale.channels() != channels || config.in_channels != s.tokenizer->channels() ||
      config.out_channels != s.tokenizer->channels())
    fail("'{}' does not fit together: tokenizer, statistics and model have {}, {} and {} channels",
         folder, channels, s.scale.channels(), config.in_channels);
  if (config.text_embed_dim != s.encoder->dim())
    fail("'{}' does not fit together: text encoder and model have widths {} and {}", folder,
         s.encoder->dim(), config.text_embed_dim);
  s.largest = s.pixels(s.trained_latent);
  // A checkpoint of another program may not say what is usual.
  s.usual = s.largest;
  if (trained.contains("usual")) {
    const Json& usual = trained["usual"];
    const auto part = [&](const char* name) {
      return static_cast<int>(need_integer(usual, name, "'usual' of " + what));
    };
    s.usual = s.pixels({part("frames"), part("height"), part("width")});
  }
  // Of several rates the first: vfm-train lists the most frequent one first.
  const auto rates = trained.find("fps");
  if (rates != trained.end() && rates->is_array() && !rates->empty() && rates->front().is_number())
    s.usual.fps = rates->front().get<double>();
}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;

const models::LoadedModel& Generator::model() const {
  return state_->model;
}
const TrainedSize& Generator::usual() const {
  return state_->usual;
}
const TrainedSize& Generator::largest() const {
  return state_->largest;
}

bool Generator::beyond_training(const ClipRequest& request) const {
  const Extents size = state_->extents(request), known = state_->trained_latent;
  return size.t > known.t || size.h > known.h || size.w > known.w;
}

/// The pack of one clip: the sample with the prompt and, if guided, the one with the negative
/// prompt. The latents are filled for each estimate.
models::DitBatch Generator::State::make_batch(const ClipRequest& request, const Extents& size,
                                              double guidance) const {
  const models::DitConfig& config = model.network->config();
  models::DitBatch batch;
  std::vector<float> text;
  const auto add = [&](const std::string& prompt) {
    text::TokenEmbeddings embeddings = encoder->encode(prompt);
    if (embeddings.tokens == 0) {  // as in training: no text is one zero token
      embeddings.tokens = 1;
      embeddings.values.assign(static_cast<std::size_t>(config.text_embed_dim), 0.0f);
    }
    models::DitSample sample;
    sample.frames = size.t;
    sample.height = size.h;
    sample.width = size.w;
    sample.fps = request.frames == 1 ? 0.0f : static_cast<float>(request.fps);
    sample.text_tokens = embeddings.tokens;
    sample.position_step = {position_step(size.t, trained_latent.t, config.patch_size[0]),
                            position_step(size.h, trained_latent.h, config.patch_size[1]),
                            position_step(size.w, trained_latent.w, config.patch_size[2])};
    batch.samples.push_back(sample);
    text.insert(text.end(), embeddings.values.begin(), embeddings.values.end());
  };
  add(request.prompt);
  if (guidance != 0 && request.prompt != request.negative) add(request.negative);
  const auto width = static_cast<std::int64_t>(config.text_embed_dim);
  batch.text = Tensor::from(text, {static_cast<std::int64_t>(text.size()) / width, width});
  return batch;
}

/// Makes `batch` ask for an estimate of `x` at noise level `sigma`, in each of its samples.
void set_noisy(models::DitBatch& batch, std::span<const double> x, double sigma) {
  const models::EdmScaling c = models::edm_scaling(sigma);
  const std::size_t n = x.size(), halves = batch.samples.size();
  batch.latents = Tensor({static_cast<std::int64_t>(n * halves)});
  const std::span<float> input = batch.latents.floats();
  for (std::size_t half = 0; half < halves; ++half) {
    batch.samples[half].c_noise = static_cast<float>(c.noise);
    for (std::size_t i = 0; i < n; ++i)
      input[half * n + i] = static_cast<float>(c.in * x[i]);
  }
}

Denoise Generator::State::make_denoise(models::DitBatch& batch, double guidance) const {
  return [this, &batch, guidance](std::span<const double> x, double sigma, std::span<double> x0) {
    check_stop();
    const models::EdmScaling c = models::edm_scaling(sigma);
    const std::size_t n = x.size(), halves = batch.samples.size();
    set_noisy(batch, x, sigma);
    ops::Tape tape(false);
    Tensor output;
    {
      const auto turn = take_turn(model.network->device());
      output = model.network->forward(tape, batch).to(Device::cpu);
    }
    const std::span<const float> f = output.floats();
    for (std::size_t i = 0; i < n; ++i) {
      const double with_prompt = c.skip * x[i] + c.out * f[i];
      const double without = halves == 2 ? c.skip * x[i] + c.out * f[n + i] : with_prompt;
      x0[i] = with_prompt + guidance * (with_prompt - without);
    }
  };
}

GeneratedClip Generator::State::to_frames(std::vector<float> latent, const Extents& size,
                                          const ClipRequest& request) const {
  scale.from_model(latent, size.t);
  const std::vector<float> planes = tokenizer->decode(latent, size.t, size.h, size.w);
  const int full_frames = 1 + (size.t - 1) * tokenizer->time_factor();
  const int full_height = size.h * tokenizer->space_factor();
  const int full_width = size.w * tokenizer->space_factor();
  const int top = (full_height - request.height) / 2, left = (full_width - request.width) / 2;
  GeneratedClip clip{request.frames, request.height, request.width, {}};
  clip.pixels.resize(static_cast<std::size_t>(3) * clip.frames * clip.height * clip.width);
  std::size_t at = 0;
  for (int frame = 0; frame < clip.frames; ++frame) {
    for (int row = 0; row < clip.height; ++row) {
      for (int column = 0; column < clip.width; ++column) {
        for (int channel = 0; channel < 3; ++channel) {
          const std::size_t plane = static_cast<std::size_t>(channel) * full_frames + frame;
          const float value =
              planes[(plane * full_height + top + row) * full_width + left + column];
          const float byte = std::clamp((value + 1) * 127.5f, 0.0f, 255.0f);  // NaN stays NaN
          if (std::isnan(byte)) fail("the model made no numbers: its weights are damaged");
          clip.pixels[at++] = static_cast<std::uint8_t>(std::lround(byte));
        }
      }
    }
  }
  return clip;
}

void Generator::State::check(const ClipRequest& request, const SampleOptions& options) const {
  options.validate();
  if (options.sampler == Sampler::flow)
    fail_usage("sampler 'flow' is for models of flow matching, and this is none");
  if (request.frames < 1 || request.frames > kMostFrames || request.height < 1 ||
      request.width < 1 || std::max(request.height, request.width) > kLargestSide)
    fail_usage(
        "a clip of {} frames of {}x{}: at least 1 and at most {} frames and {} pixels a side",
        request.frames, request.width, request.height, kMostFrames, kLargestSide);
  if (!(request.fps > 0 && std::isfinite(request.fps)))
    fail_usage("{} frames a second: must be positive", request.fps);
}

/// Where sampling begins: noise of standard deviation `sigma`.
std::vector<double> Generator::State::first_state(const ClipRequest& request, const Extents& size,
                                                  double sigma) const {
  const std::size_t n = size.elements(tokenizer->channels());
  std::vector<float> noise(n);
  Random(request.seed, Purpose::sampler_noise, 0, random_key(request.prompt)).fill_normal(noise);
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = sigma * noise[i];
  return x;
}

double Generator::fp8_error(models::Fp8Parts parts, const ClipRequest& request,
                            const SampleOptions& options) {
  State& s = *state_;
  s.check(request, options);
  const Extents size = s.extents(request);
  models::DitBatch batch = s.make_batch(request, size, options.guidance);
  const OneThread one_thread;
  set_noisy(batch, s.first_state(request, size, options.sigma_max), options.sigma_max);
  const auto turn = take_turn(s.model.network->device());
  return models::fp8_error(*s.model.network, batch, parts);
}

void Generator::set_fp8(models::Fp8Parts parts) {
  state_->model.network->set_inference_fp8(parts);
}

GeneratedClip Generator::generate(const ClipRequest& request, const SampleOptions& options) const {
  const State& s = *state_;
  s.check(request, options);
  const Extents size = s.extents(request);
  models::DitBatch batch = s.make_batch(request, size, options.guidance);
  const OneThread one_thread;
  const std::vector<double> sigmas = noise_levels(options);
  SamplerState state;
  state.x = s.first_state(request, size, sigmas.front());
  sample(options.sampler, sigmas, s.make_denoise(batch, options.guidance), state);

  return s.to_frames(std::vector<float>(state.x.begin(), state.x.end()), size, request);
}

}  // namespace vfm::generate
