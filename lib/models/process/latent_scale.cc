// SPDX-License-Identifier: Apache-2.0
#include "models/process/latent_scale.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace vfm::models {
namespace {

/// Calls change(values, mean, std) for each channel and frame of `latent`.
template <class Change>
void for_each_plane(const LatentScale& scale, std::span<float> latent, int latent_frames,
                    Change change) {
  const auto frames = static_cast<std::size_t>(latent_frames);
  const auto known = static_cast<std::size_t>(scale.frames);
  const std::size_t plane = latent.size() / (scale.channels() * frames);
  for (std::size_t c = 0; c < scale.channels(); ++c) {
    for (std::size_t t = 0; t < frames; ++t) {
      const std::size_t at = c * known + std::min(t, known - 1);
      change(latent.subspan((c * frames + t) * plane, plane), scale.mean[at], scale.std[at]);
    }
  }
}

}  // namespace

LatentScale LatentScale::from_json(const Json& value, std::string_view what) {
  LatentScale scale;
  const auto read = [&](const char* name, std::vector<double>& out) {
    const auto found = value.is_object() ? value.find(name) : value.end();
    if (!value.is_object() || found == value.end() || !found->is_array() || found->empty())
      fail("{} has no list '{}' of channel statistics", what, name);
    for (const Json& number : *found) {
      if (!number.is_number() || !std::isfinite(number.get<double>()))
        fail("'{}' in {} holds something that is not a number", name, what);
      out.push_back(number.get<double>());
    }
  };
  read("mean", scale.mean);
  read("std", scale.std);
  if (scale.mean.size() != scale.std.size())
    fail("'mean' and 'std' in {} have {} and {} values", what, scale.mean.size(), scale.std.size());
  for (const double deviation : scale.std)
    if (deviation <= 0) fail("'std' in {} holds {}, must be positive", what, deviation);
  const auto values = static_cast<std::int64_t>(scale.mean.size());
  const std::int64_t frames = get_integer(value, "frames").value_or(1);
  if (frames < 1 || frames > values || values % frames != 0)
    fail("{} has statistics of {} frames, and {} values: no whole number of channels", what, frames,
         values);
  scale.frames = static_cast<int>(frames);
  return scale;
}

Json LatentScale::to_json() const {
  Json value = {{"mean", mean}, {"std", std}};
  if (frames > 1) value["frames"] = frames;
  return value;
}

LatentScale LatentScale::whitened(double degree) const {
  if (degree == 1) return *this;
  double squares = 0;
  for (const double deviation : std)
    squares += std::pow(deviation, 2 * (1 - degree));
  const double root = std::sqrt(squares / static_cast<double>(std.size()));
  LatentScale scale = *this;
  for (double& deviation : scale.std)
    deviation = std::pow(deviation, degree) * root;
  return scale;
}

void LatentScale::to_model(std::span<float> latent, int latent_frames, Process process) const {
  for_each_plane(
      *this, latent, latent_frames,
      [sd = process.data_deviation()](std::span<float> values, double middle, double deviation) {
        for (float& value : values)
          value = static_cast<float>((value - middle) / deviation * sd);
      });
}

void LatentScale::from_model(std::span<float> latent, int latent_frames, Process process) const {
  for_each_plane(
      *this, latent, latent_frames,
      [sd = process.data_deviation()](std::span<float> values, double middle, double deviation) {
        for (float& value : values)
          value = static_cast<float>(value / sd * deviation + middle);
      });
}

}  // namespace vfm::models
