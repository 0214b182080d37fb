// How a pipeline of diffusers is sampled: its scheduler.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/listed.h"
#include "io/file.h"
#include "models/folder/config_json.h"
#include "models/folder/model_facts.h"
#include "models/process/process.h"
#include "models/process/sampler.h"

namespace vfm::models {
namespace {

constexpr std::string_view kEdmScheduler = "EDMEulerScheduler",
                           kFlowScheduler = "FlowMatchEulerDiscreteScheduler",
                           kUniPcScheduler = "UniPCMultistepScheduler",
                           kDpmScheduler = "DPMSolverMultistepScheduler";
// Of an export of vfm-train. diffusers ignores it.
constexpr const char* kReferenceShift = "reference_shift";
constexpr Sampler kUniPcOfOrder[] = {Sampler::unipc1, Sampler::unipc, Sampler::unipc3};

/// A scheduler's configuration. Errors name its file.
struct SchedulerFile {
  std::string path;
  Json config;

  double number(const char* name, double otherwise) const {
    return in_file(path, [&] { return get_number(config, name).value_or(otherwise); });
  }
  /// Refuses another value. `usual`: that of diffusers where nothing is said.
  void need(const char* name, const Json& value, const Json& usual) const {
    const auto found = config.find(name);
    const Json own = found == config.end() ? usual : *found;
    if (own != value)
      fail_usage("'{}' has {} {}: only {} is supported", path, name, own.dump(), value.dump());
  }
  void need(const char* name, const Json& value) const {
    const auto found = config.find(name);
    if (found != config.end() && !found->is_null()) need(name, value, value);
  }
};

void read_edm(const SchedulerFile& file, const PipelineForm& pipeline, SamplingFacts& sampling) {
  file.need("sigma_data", kSigmaData);
  file.need("sigma_schedule", "karras");
  file.need("prediction_type", "epsilon");
  file.need("rho", 7.0);
  const std::string last = in_file(
      file.path, [&] { return get_string(file.config, "final_sigmas_type").value_or("zero"); });
  if (last != "zero" && last != "sigma_min")
    fail_usage("'{}' has final_sigmas_type '{}': only zero and sigma_min are supported", file.path,
               last);
  sampling.sampler = last == "zero" ? Sampler::euler : Sampler::edm_euler;
  const double least = file.number("sigma_min", pipeline.sigma_min),
               most = file.number("sigma_max", pipeline.sigma_max);
  if (!(least > 0 && least < most))
    fail_usage("'{}' has noise levels from {} to {}: must be positive, the second larger",
               file.path, least, most);
  sampling.sigma_min = least;
  sampling.sigma_max = most;
}

/// The sampler of UniPCMultistepScheduler or DPMSolverMultistepScheduler, which are of flow
/// matching only if their configuration says so.
Sampler multistep_sampler(const SchedulerFile& file, bool unipc) {
  file.need("prediction_type", "flow_prediction", "epsilon");
  file.need("use_flow_sigmas", true, false);
  file.need("thresholding", false);
  file.need("final_sigmas_type", "zero");
  if (!unipc) {
    file.need("algorithm_type", "dpmsolver++");
    file.need("solver_type", "midpoint");
    file.need("solver_order", 2);
    file.need("use_lu_lambdas", false);
    file.need("variance_type", nullptr, nullptr);
    return Sampler::dpm;
  }
  file.need("solver_type", "bh2");
  file.need("predict_x0", true);
  file.need("lower_order_final", true);
  file.need("disable_corrector", Json::array());
  file.need("solver_p", nullptr, nullptr);
  const double order = file.number("solver_order", 2);
  if (order != 1 && order != 2 && order != 3)
    fail_usage("'{}' has solver_order {}: only 1, 2 and 3 are supported", file.path, order);
  return kUniPcOfOrder[static_cast<std::size_t>(order) - 1];
}

/// A model of vfm-train may be sampled otherwise than those that the authors published.
std::optional<double> read_reference_shift(const SchedulerFile& file,
                                           const PipelineForm& pipeline) {
  if (!pipeline.in_diffusers) return std::nullopt;
  if (!file.config.contains(kReferenceShift)) return pipeline.shift;
  const auto shift = in_file(file.path, [&] { return get_number(file.config, kReferenceShift); });
  if (shift && !(*shift > 0))
    fail_usage("'{}' has {} {}: must be positive", file.path, kReferenceShift, *shift);
  return shift;
}

void read_flow(const SchedulerFile& file, std::string_view type, const PipelineForm& pipeline,
               SamplingFacts& sampling) {
  file.need("num_train_timesteps", 1000);
  for (const char* name : {"use_dynamic_shifting", "invert_sigmas", "use_karras_sigmas",
                           "use_exponential_sigmas", "use_beta_sigmas", "stochastic_sampling"})
    file.need(name, false);
  if (file.number("shift_terminal", 0) != 0)
    fail_usage("'{}' has shift_terminal, which is not supported", file.path);
  const bool euler = type == kFlowScheduler;
  sampling.process = Process::flow;
  sampling.sampler = euler ? Sampler::flow : multistep_sampler(file, type == kUniPcScheduler);
  const double shift =
      file.number(euler ? "shift" : "flow_shift", pipeline.in_diffusers ? 1 : pipeline.shift);
  if (!(shift > 0)) fail_usage("'{}' has shift {}: must be positive", file.path, shift);
  const std::optional<double> reference = read_reference_shift(file, pipeline);
  sampling.shift = reference.value_or(shift);
  if (!reference) return;
  sampling.diffusers = pipeline.in_diffusers;
  sampling.diffusers->shift = shift;
}

}  // namespace

SamplingFacts hf_sampling(const std::string& folder, const PipelineForm& pipeline) {
  const std::string path = io::join_path(folder, "scheduler_config.json");
  if (!io::file_exists(path)) fail_usage("'{}' has no scheduler_config.json", folder);
  const SchedulerFile file = {path, as_usage([&] {
                                return parse_json(io::read_file(path, io::kMostModelJson),
                                                  "'" + path + "'");
                              })};
  const std::string type =
      as_usage([&] { return need_string(file.config, "_class_name", "'" + path + "'"); });
  const auto known = pipeline.schedulers;
  if (std::ranges::find(known, type) == known.end())
    fail_usage("'{}' is of a {}: only {} {} supported", path, type, listed(known, " and "),
               is_or_are(static_cast<std::int64_t>(known.size())));
  SamplingFacts sampling{.steps = pipeline.steps, .guidance = pipeline.guidance};
  if (type == kEdmScheduler)
    read_edm(file, pipeline, sampling);
  else if (type == kFlowScheduler || type == kUniPcScheduler || type == kDpmScheduler)
    read_flow(file, type, pipeline, sampling);
  else
    fail("'{}' is of a {}, which cannot be read", path, type);
  return sampling;
}

SamplingFacts usual_sampling(const PipelineForm& pipeline) {
  return {.steps = pipeline.steps,
          .guidance = pipeline.guidance,
          .sampler = Sampler::unipc,
          .process = Process::flow,
          .shift = pipeline.shift,
          .diffusers = pipeline.in_diffusers};
}

/// Of flow matching. What is not said is so in diffusers.
static Json flow_scheduler(const SamplingFacts& sampling) {
  const double shift = sampling.scheduler_shift();
  const Sampler sampler = sampling.sampler.value_or(Sampler::flow);
  const auto* const unipc = std::ranges::find(kUniPcOfOrder, sampler);
  const bool multistep = unipc != std::end(kUniPcOfOrder);
  if (!multistep && sampler != Sampler::dpm)
    return {{"_class_name", kFlowScheduler}, {"num_train_timesteps", 1000}, {"shift", shift}};
  return {{"_class_name", multistep ? kUniPcScheduler : kDpmScheduler},
          {"final_sigmas_type", "zero"},
          {"flow_shift", shift},
          {"num_train_timesteps", 1000},
          {"prediction_type", "flow_prediction"},
          {"solver_order", multistep ? unipc - std::begin(kUniPcOfOrder) + 1 : 2},
          {"use_flow_sigmas", true}};
}

Json hf_scheduler(const SamplingFacts& sampling, const PipelineForm& pipeline) {
  if (sampling.process == Process::flow) {
    Json scheduler = flow_scheduler(sampling);
    if (pipeline.in_diffusers)
      scheduler[kReferenceShift] = sampling.diffusers ? Json(sampling.shift.value_or(1)) : Json();
    return scheduler;
  }
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
