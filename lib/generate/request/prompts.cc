// SPDX-License-Identifier: Apache-2.0
#include "generate/request/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/places.h"
#include "io/text_or_file.h"
#include "text/unicode.h"

namespace vfm::generate {

namespace {

constexpr std::size_t kLongestName = 200;  // leaves room for extensions below the usual 255

std::optional<int> get_int(const Json& line, const char* name, std::string_view where,
                           int least = 0) {
  const auto value = get_integer(line, name);
  if (value && (*value < least || *value > std::numeric_limits<int>::max()))
    fail("'{}' of {} is {}: out of range", name, where, *value);
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

/// A seed may be any number of 64 bits, so beyond what get_integer holds.
std::optional<std::uint64_t> get_seed(const Json& line, std::string_view where) {
  const auto found = line.find("seed");
  if (found == line.end() || found->is_null()) return std::nullopt;
  if (!found->is_number_integer() || (!found->is_number_unsigned() && found->get<long>() < 0))
    fail("'seed' of {} is not a whole number from 0 on", where);
  return found->get<std::uint64_t>();
}

/// Takes `name` out of `line` into `field`, if it is there.
template <class T, class Field>
void take(Json& line, const char* name, const std::optional<T>& value, Field& field) {
  if (value) field = *value;
  line.erase(name);
}

std::vector<double> get_sigmas(const Json& line, std::string_view where) {
  std::vector<double> sigmas;
  const Json found = line.value("sigmas", Json());
  if (found.is_null()) return sigmas;
  for (const Json& sigma : found) {
    if (!found.is_array() || !sigma.is_number()) fail("'sigmas' of {} are not numbers", where);
    sigmas.push_back(sigma.get<double>());
  }
  if (sigmas.empty()) fail("'sigmas' of {} has no noise level", where);
  return sigmas;
}

/// The levels themselves, or what else decides them: what a line says of either goes before all
/// that the command line says of both.
void take_levels(Json& json, SampleChoice& choice, std::string_view where) {
  const std::vector<double> sigmas = get_sigmas(json, where);
  json.erase("sigmas");
  bool others = false;
  for (const char* name : {"steps", "sigma_min", "sigma_max", "shift"})
    others = others || !json.value(name, Json()).is_null();
  if (others) choice.sigmas.clear();
  if (!sigmas.empty())
    choice.sigmas = sigmas, choice.steps.reset(), choice.sigma_min.reset(),
    choice.sigma_max.reset(), choice.shift.reset();
}

void take_sampling(Json& json, SampleChoice& choice, std::string_view where) {
  take_levels(json, choice, where);
  // A line's guidance without one for low levels is for all levels, as in a record.
  if (!json.value("guidance", Json()).is_null()) choice.guidance_low.reset();
  take(json, "steps", get_int(json, "steps", where), choice.steps);
  take(json, "guidance", get_number(json, "guidance"), choice.guidance);
  take(json, "guidance_low", get_number(json, "guidance_low"), choice.guidance_low);
  take(json, "sigma_min", get_number(json, "sigma_min"), choice.sigma_min);
  take(json, "sigma_max", get_number(json, "sigma_max"), choice.sigma_max);
  take(json, "shift", get_number(json, "shift"), choice.shift);
  take(json, "augment_sigma", get_number(json, "augment_sigma"), choice.augment_sigma);
  take(json, "temperature", get_number(json, "temperature"), choice.temperature);
  take(json, "top_p", get_number(json, "top_p"), choice.top_p);
  if (const auto sampler = get_string(json, "sampler"))
    choice.sampler = models::parse_sampler(*sampler);
  json.erase("sampler");
  if (const auto as = get_string(json, "as")) choice.as = models::parse_sampled_as(*as);
  json.erase("as");
}

void take_file(Json& json, const std::string& name, const std::string& folder, GivenFile& file) {
  auto path = get_string(json, name.c_str());
  if (path && !path->empty() && !folder.empty()) path = io::named_from(folder, *path);
  take(json, name.c_str(), path, file.path);
  const std::string hash = name + "_xxh3";
  take(json, hash.c_str(), get_string(json, hash.c_str()), file.xxh3);
}

// What a record says of the files that the clip was made from, and of the model that made it.
void take_origin(Json& json, Prompt& prompt, std::string_view where, const std::string& folder) {
  GivenFiles& files = prompt.files;
  take_file(json, "condition", folder, files.condition);
  take(json, "condition_frames", get_int(json, "condition_frames", where), files.condition_frames);
  take_file(json, "noise", folder, files.noise);
  take_file(json, "embedding", folder, files.embedding);
  take_file(json, "negative_embedding", folder, files.negative_embedding);
  MadeBy& by = prompt.made_by;
  take(json, "weights", get_string(json, "weights"), by.weights);
  take(json, "model_hash", get_string(json, "model_hash"), by.model_hash);
  take(json, "fp8", get_string(json, "fp8"), by.fp8);
  take(json, "quantize", get_string(json, "quantize"), by.quantize);
  take(json, "parallel", get_string(json, "parallel"), by.parallel);
  take(json, "compute", get_string(json, "compute"), by.compute);
  if (const auto lora = json.find("lora"); lora != json.end()) {
    by.lora = dump_json(*lora);
    json.erase(lora);
  }
  // These are measured in each run.
  for (const char* of_the_run :
       {"fp8_error", "quantize_error", "device", "encoded_in", "decoded_on", "decoded_in"})
    json.erase(of_the_run);
}

}  // namespace

void SampleChoice::check_for(bool autoregressive, models::Process process, int networks) const {
  const auto refuse = [&](bool said, const char* name) {
    if (said)
      fail_usage("'{}' is for {} models, and this one is {}", name,
                 autoregressive ? "diffusion" : "autoregressive",
                 autoregressive ? "autoregressive" : "a diffusion model");
  };
  if (!sigmas.empty() && (steps || sigma_min || sigma_max || shift))
    fail_usage(
        "sigmas are the noise levels themselves: leave out steps, sigma_min, sigma_max and "
        "shift");
  if (!autoregressive) {
    refuse(temperature.has_value(), "temperature");
    refuse(top_p.has_value(), "top_p");
    const bool flow = process == models::Process::flow;
    if (sampler) check_sampler(*sampler, process);
    if (flow && (sigma_min || sigma_max))
      fail_usage("sigma_min and sigma_max are not for this model: it is of flow matching");
    if (guidance_low && networks < 2)
      fail_usage(
          "'guidance_low' is for models with another network for low noise levels, and this one "
          "has one network");
    if (!flow && shift) fail_usage("'shift' is for models of flow matching, and this one is not");
    return;
  }
  refuse(sampler.has_value(), "sampler");
  refuse(as.has_value(), "as");
  refuse(steps.has_value(), "steps");
  refuse(guidance.has_value(), "guidance");
  refuse(guidance_low.has_value(), "guidance_low");
  refuse(sigma_min || sigma_max || shift || augment_sigma || !sigmas.empty(), "noise levels");
}

SampleOptions SampleChoice::over(SampleOptions options) const {
  // Of two levels that do not go together one may be the model's own, which the user did not write.
  const auto refuse = [](const char* given, double value, const char* other, double own) {
    fail_usage("{} {} does not go with the model's own {} {}: give that too", given, value, other,
               own);
  };
  if (sigma_max && !sigma_min && *sigma_max > 0 && *sigma_max <= options.sigma_min)
    refuse("sigma_max", *sigma_max, "sigma_min", options.sigma_min);
  if (sigma_min && !sigma_max && *sigma_min >= options.sigma_max)
    refuse("sigma_min", *sigma_min, "sigma_max", options.sigma_max);
  if (as && !options.diffusers)
    fail_usage(
        "'as' is for models that their authors' program samples otherwise than diffusers, "
        "such as Wan's, but not for runs with a shift of their own: leave it out");
  if (as == models::SampledAs::diffusers) {
    options.steps = options.diffusers->steps;
    options.guidance = options.diffusers->guidance;
    options.guidance_low.reset();
    options.shift = options.diffusers->shift;
  }
  options.as = as.value_or(options.as);
  options.sampler = sampler.value_or(options.sampler);
  options.temperature = temperature.value_or(options.temperature);
  options.top_p = top_p.value_or(options.top_p);
  options.steps = sigmas.empty() ? steps.value_or(options.steps) : static_cast<int>(sigmas.size());
  options.sigmas = sigmas;
  options.sigma_min = sigma_min.value_or(options.sigma_min);
  options.sigma_max = sigma_max.value_or(options.sigma_max);
  options.shift = shift.value_or(options.shift);
  if (guidance || guidance_low) options.guidance_low = guidance_low;
  options.guidance = guidance.value_or(options.guidance);
  options.augment_sigma = augment_sigma.value_or(options.augment_sigma);
  return options;
}

ClipRequest request_of(const Prompt& prompt, const Extents& usual, double fps) {
  ClipRequest request;
  request.prompt = prompt.text;
  request.negative = prompt.negative;
  request.seed = prompt.seed;
  request.frames = prompt.frames == 0 ? usual.frames : prompt.frames;
  request.height = prompt.height == 0 ? usual.height : prompt.height;
  request.width = prompt.width == 0 ? usual.width : prompt.width;
  request.fps = prompt.fps != 0 ? prompt.fps : fps > 0 ? fps : 24;
  return request;
}

Prompt parse_prompt(std::string_view bytes, const Prompt& defaults, std::string_view where,
                    const std::string& folder) {
  Prompt prompt = defaults;
  // What is written into the record is what the noise is made from.
  const std::string line = text::valid_utf8(bytes);
  const std::size_t start = line.find_first_not_of(" \t\r");
  if (start == std::string::npos || line[start] != '{') {
    const std::size_t end = line.find_last_not_of(" \t\r\n");
    prompt.text = start == std::string::npos ? "" : line.substr(start, end - start + 1);
    return prompt;
  }
  Json json = parse_json(line, where);
  const bool embedded =
      !get_string(json, "embedding").value_or(defaults.files.embedding.path).empty();
  prompt.text =
      embedded ? get_string(json, "prompt").value_or("") : need_string(json, "prompt", where);
  json.erase("prompt");
  if (const auto seed = get_seed(json, where)) prompt.seed = *seed, prompt.own_seed = true;
  json.erase("seed");
  take(json, "negative_prompt", get_string(json, "negative_prompt"), prompt.negative);
  take(json, "name", get_string(json, "name"), prompt.name);
  take(json, "frames", get_int(json, "frames", where, 1), prompt.frames);
  take(json, "width", get_int(json, "width", where, 1), prompt.width);
  take(json, "height", get_int(json, "height", where, 1), prompt.height);
  const auto fps = get_number(json, "fps");
  if (fps && !(*fps > 0)) fail("'fps' of {} is {}: must be positive", where, *fps);
  take(json, "fps", fps, prompt.fps);
  // Those of the command line are for lines that have a condition.
  const char* of_condition = nullptr;
  for (const char* name : {"augment_sigma", "condition_frames"})
    if (!json.value(name, Json()).is_null()) of_condition = name;
  take_sampling(json, prompt.choice, where);
  take(json, "encoder", get_string(json, "encoder"), prompt.encoder);
  const auto quality = get_int(json, "quality", where);
  if (quality && *quality > 51) fail("'quality' of {} is {}: must be 0 to 51", where, *quality);
  take(json, "quality", quality, prompt.quality);
  take_origin(json, prompt, where, folder);
  if (of_condition && prompt.files.condition.path.empty())
    fail("{} has '{}', which needs a 'condition'", where, of_condition);
  if (!prompt.name.empty()) check_clip_name(prompt.name);
  prompt.extra = std::move(json);
  return prompt;
}

std::string given_text(const std::string& argument) {
  const std::string text = io::text_or_file(argument);
  return argument.starts_with('@') ? text::to_utf8(text) : text::valid_utf8(text);
}

void check_clip_name(const std::string& name) {
  bool plain = !name.empty() && name.size() <= kLongestName && name.front() != '.';
  for (const char c : name)
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) plain = false;
  if (!plain)
    fail(
        "'{}' cannot name a clip: must be a file name of at most {} bytes, without '/' and not "
        "hidden",
        name, kLongestName);
}

std::string slug(std::string_view prompt) {
  std::string out;
  bool gap = false;
  for (const char c : prompt) {
    const bool lower = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool upper = c >= 'A' && c <= 'Z';
    if (!lower && !upper) {
      gap = !out.empty();
      continue;
    }
    if (out.size() + gap >= 48) break;
    if (gap) out += '-';
    gap = false;
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

/// 0: not known, for some stand for lines.
static std::size_t count_prompts(const std::vector<std::string>& arguments) {
  return std::ranges::count(arguments, "-") > 0 ? 0 : arguments.size();
}

PromptReader::PromptReader(std::vector<std::string> arguments, Prompt defaults, bool again)
    : total_(count_prompts(arguments)),
      defaults_(std::move(defaults)),
      lines_(again ? io::InputLines::read_again(std::move(arguments))
                   : io::InputLines(std::move(arguments))) {}

std::optional<PromptLine> PromptReader::next() {
  const auto line = lines_.next();
  if (!line) return std::nullopt;
  PromptLine out{defaults_, place_++, line->where, line->error};
  if (!out.error.empty()) return out;
  try {
    if (line->as_is)
      out.prompt.text = text::valid_utf8(line->text);
    else
      out.prompt = parse_prompt(line->text, defaults_, line->where, lines_.streams().folder());
  } catch (const Error& error) {
    out.error = error.what();
  }
  return out;
}

}  // namespace vfm::generate
