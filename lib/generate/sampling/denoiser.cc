// SPDX-License-Identifier: Apache-2.0
#include "generate/sampling/denoiser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/half.h"
#include "base/stop.h"
#include "models/process/process.h"

namespace vfm::generate {

using models::GivenFramesBy;

std::array<double, 3> position_steps(const std::array<int, 3>& size,
                                     const std::array<int, 3>& trained,
                                     const std::array<int, 3>& patch) {
  std::array<double, 3> steps = {1, 1, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    const int places = size[i] / patch[i], known = trained[i] / patch[i];
    if (places > known && known > 0) steps[i] = static_cast<double>(known - 1) / (places - 1);
  }
  return steps;
}

Denoiser::Denoiser(const ClipNetwork& network, DenoiseInput input, SampleOptions options,
                   std::vector<double> levels, std::uint64_t seed, std::uint64_t key)
    : network_(network),
      input_(std::move(input)),
      options_(std::move(options)),
      levels_(std::move(levels)),
      times_(noise_times(options_)),
      seed_(seed),
      key_(key) {
  const auto width = static_cast<std::int64_t>(network.config().text_embed_dim);
  std::vector<float> rows;
  for (const text::TokenEmbeddings& text : input_.texts) {
    models::NetworkSample sample = input_.sample;
    sample.text_tokens = text.tokens;
    if (input_.given_by == GivenFramesBy::clean_time) sample.clean_frames = input_.given_frames;
    samples_.push_back(sample);
    rows.insert(rows.end(), text.values.begin(), text.values.end());
  }
  batch_.round_embedding = options_.rounds_embedding();
  text_ = Tensor::from(rows, {static_cast<std::int64_t>(rows.size()) / width, width});
}

/// Whether given frames are the given latent, in the input and in the estimate.
bool Denoiser::overlays(double sigma) const {
  if (input_.given_frames == 0) return false;
  return input_.given_by == GivenFramesBy::clean_time ||
         (input_.given_by == GivenFramesBy::mark && options_.augment_sigma < sigma);
}

// Writes the given frames of one sample's input, channel by channel.
void Denoiser::put_given(std::span<float> input, std::size_t half, std::size_t level) const {
  const models::NetworkSample& s = input_.sample;
  const std::size_t plane = static_cast<std::size_t>(s.height) * static_cast<std::size_t>(s.width);
  const std::size_t given = static_cast<std::size_t>(input_.given_frames) * plane;
  const std::size_t channel = static_cast<std::size_t>(s.frames) * plane;
  const auto channels = static_cast<std::size_t>(input_.channels);
  const bool noisy = input_.given_by == GivenFramesBy::mark;
  const models::ProcessLevel at =
      noisy ? options_.process.at(options_.augment_sigma) : models::ProcessLevel{};  // as it is
  const Random random(seed_, Purpose::condition_noise, static_cast<std::uint32_t>(level), key_);
  std::vector<float> noise(given);
  for (std::size_t c = 0; c < channels; ++c) {
    if (noisy) random.fill_normal(noise, (half * channels + c) * channel);
    for (std::size_t i = 0; i < given; ++i)
      input[c * channel + i] =
          static_cast<float>(at.in * (at.keep * input_.given[c * given + i] + at.noise * noise[i]));
  }
}

// Writes the channels after the state: ones in given frames, and the latent of the grey clip.
void Denoiser::put_marks(std::span<float> rest) const {
  if (input_.given_frames == 0) return;
  const models::NetworkSample& s = input_.sample;
  const std::size_t plane = static_cast<std::size_t>(s.height) * static_cast<std::size_t>(s.width);
  const std::size_t given = static_cast<std::size_t>(input_.given_frames) * plane;
  const std::size_t channel = static_cast<std::size_t>(s.frames) * plane;
  const bool latent = input_.given_by == GivenFramesBy::mask_and_latent;
  const std::size_t marks = rest.size() - (latent ? input_.given.size() : 0);
  for (std::size_t at = 0; at < marks; at += channel)
    std::fill_n(rest.begin() + static_cast<std::ptrdiff_t>(at), given, 1.0f);
  if (latent) std::ranges::copy(input_.given, rest.subspan(marks).begin());
}

const models::NetworkBatch& Denoiser::batch(std::span<const double> x, double sigma) {
  const models::ProcessLevel scale = options_.process.at(sigma);
  const auto found = std::ranges::find(levels_, sigma);
  if (found == levels_.end())
    fail("an estimate at noise level {}, which is none of the sampling's", sigma);
  const auto level = static_cast<std::size_t>(found - levels_.begin());
  batch_.network = network_of(sigma, input_.boundary);
  // Without guidance the negative prompt is not asked.
  const bool guided = options_.guidance_of(batch_.network) != 0;
  const std::size_t n = x.size(), halves = guided ? samples_.size() : 1;
  batch_.samples.assign(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(halves));
  batch_.text = halves == samples_.size() ? text_ : text_.rows(0, samples_[0].text_tokens);
  const std::size_t channel = n / static_cast<std::size_t>(input_.channels);
  const std::size_t stride = static_cast<std::size_t>(network_.config().in_channels) * channel;
  batch_.latents = Tensor::zeros({static_cast<std::int64_t>(stride * halves)});
  float time = static_cast<float>(times_[level]);
  if (input_.round_time) time = bfloat16_to_float(float_to_bfloat16(time));
  for (std::size_t half = 0; half < halves; ++half) {
    batch_.samples[half].c_noise = time;
    const std::span<float> input = batch_.latents.floats().subspan(half * stride, stride);
    for (std::size_t i = 0; i < n; ++i)
      input[i] = static_cast<float>(scale.in * x[i]);
    if (overlays(sigma)) put_given(input, half, level);
    put_marks(input.subspan(n));
  }
  return batch_;
}

void Denoiser::estimate(std::span<const double> x, double sigma, std::span<double> x0) {
  check_stop();
  const models::ProcessLevel scale = options_.process.at(sigma);
  const std::size_t n = x.size();
  const Tensor both = network_.forward(batch(x, sigma));
  const std::span<const float> f = both.floats();
  const bool guided = batch_.samples.size() == 2;
  const double guidance = options_.guidance_of(batch_.network);
  for (std::size_t i = 0; i < n; ++i) {
    const double with_prompt = scale.estimate(x[i], f[i]);
    const double without = guided ? scale.estimate(x[i], f[n + i]) : with_prompt;
    x0[i] = with_prompt + guidance * (with_prompt - without);
  }
  if (!overlays(sigma)) return;
  const auto channels = static_cast<std::size_t>(input_.channels);
  const std::size_t channel = n / channels, given = input_.given.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    std::copy_n(input_.given.begin() + static_cast<std::ptrdiff_t>(c * given), given,
                x0.begin() + static_cast<std::ptrdiff_t>(c * channel));
}

}  // namespace vfm::generate
