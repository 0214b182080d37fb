// How a pipeline of diffusers is sampled: its scheduler, and the scale of its latents.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/listed.h"
#include "io/file.h"
#include "models/cosmos/config_json.h"
#include "models/folder/config_json.h"
#include "models/folder/model_facts.h"
#include "models/process/process.h"
#include "models/process/sampler.h"

namespace vfm::models {
namespace {

constexpr std::string_view kEdmScheduler = "EDMEulerScheduler",
                           kFlowScheduler = "FlowMatchEulerDiscreteScheduler";

void need_value(const Json& config, const char* name, const Json& value, const std::string& path) {
  const auto found = config.find(name);
  if (found != config.end() && !found->is_null() && *found != value)
    fail_usage("'{}' has {} {}: only {} is supported", path, name, found->dump(), value.dump());
}

}  // namespace

LatentScale hf_latent_scale(const Json& vae, std::string_view what) {
  LatentScale scale = latent_statistics(vae, what).value_or(LatentScale());
  if (scale.mean.empty()) {
    const auto channels =
        static_cast<std::size_t>(cosmos_config_from_json(vae, what).latent_channels);
    scale.mean.assign(channels, 0.0);
    scale.std.assign(channels, 1.0);
  }
  return scale;
}

SamplingFacts hf_sampling(const std::string& folder, const PipelineForm& pipeline) {
  const std::string path = io::join_path(folder, "scheduler_config.json");
  if (!io::file_exists(path)) fail_usage("'{}' has no scheduler_config.json", folder);
  const Json config = as_usage(
      [&] { return parse_json(io::read_file(path, io::kMostModelJson), "'" + path + "'"); });
  const std::string type =
      as_usage([&] { return need_string(config, "_class_name", "'" + path + "'"); });
  const auto number = [&](const char* name, double otherwise) {
    return in_file(path, [&] { return get_number(config, name).value_or(otherwise); });
  };
  const auto known = pipeline.schedulers;
  if (std::ranges::find(known, type) == known.end())
    fail_usage("'{}' is of a {}: only {} {} supported", path, type, listed(known, " and "),
               is_or_are(static_cast<std::int64_t>(known.size())));
  SamplingFacts sampling{.steps = pipeline.steps, .guidance = pipeline.guidance};
  if (type == kFlowScheduler) {
    need_value(config, "num_train_timesteps", 1000, path);
    for (const char* name : {"use_dynamic_shifting", "invert_sigmas", "use_karras_sigmas",
                             "use_exponential_sigmas", "use_beta_sigmas", "stochastic_sampling"})
      need_value(config, name, false, path);
    if (number("shift_terminal", 0) != 0)
      fail_usage("'{}' has shift_terminal, which is not supported", path);
    sampling.sampler = Sampler::flow;
    sampling.process = Process::flow;
    const double shift = number("shift", pipeline.shift);
    if (!(shift > 0)) fail_usage("'{}' has shift {}: must be positive", path, shift);
    sampling.shift = shift;
    return sampling;
  }
  if (type != kEdmScheduler) fail("'{}' is of a {}, which cannot be read", path, type);
  need_value(config, "sigma_data", kSigmaData, path);
  need_value(config, "sigma_schedule", "karras", path);
  need_value(config, "prediction_type", "epsilon", path);
  need_value(config, "rho", 7.0, path);
  const std::string last =
      in_file(path, [&] { return get_string(config, "final_sigmas_type").value_or("zero"); });
  if (last != "zero" && last != "sigma_min")
    fail_usage("'{}' has final_sigmas_type '{}': only zero and sigma_min are supported", path,
               last);
  sampling.sampler = last == "zero" ? Sampler::euler : Sampler::edm_euler;
  const double least = number("sigma_min", pipeline.sigma_min),
               most = number("sigma_max", pipeline.sigma_max);
  if (!(least > 0 && least < most))
    fail_usage("'{}' has noise levels from {} to {}: must be positive, the second larger", path,
               least, most);
  sampling.sigma_min = least;
  sampling.sigma_max = most;
  return sampling;
}

Json hf_scheduler(const SamplingFacts& sampling) {
  if (sampling.process == Process::flow)
    return {{"_class_name", kFlowScheduler},
            {"num_train_timesteps", 1000},
            {"shift", sampling.shift.value_or(1)}};
  const NoiseSchedule own{};  // where a run says nothing
  const bool ends_at_minimum = sampling.sampler == Sampler::edm_euler;
  return {{"_class_name", kEdmScheduler},
          {"final_sigmas_type", ends_at_minimum ? "sigma_min" : "zero"},
          {"num_train_timesteps", 1000},
          {"prediction_type", "epsilon"},
          {"rho", 7.0},
          {"sigma_data", kSigmaData},
          {"sigma_max", sampling.sigma_max.value_or(own.sigma_max)},
          {"sigma_min", sampling.sigma_min.value_or(own.sigma_min)},
          {"sigma_schedule", "karras"}};
}

}  // namespace vfm::models
