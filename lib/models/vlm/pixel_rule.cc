// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/pixel_rule.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "models/folder/hf_folder.h"
#include "models/vlm/qwen_config.h"

namespace vfm::models {
namespace {

/// Settings that are read, or say nothing about pixels.
constexpr const char* kOfAll[] = {"image_processor_type",
                                  "processor_class",
                                  "do_resize",
                                  "resample",
                                  "do_rescale",
                                  "rescale_factor",
                                  "do_normalize",
                                  "image_mean",
                                  "image_std",
                                  "do_convert_rgb",
                                  "size",
                                  "default_to_square",
                                  "data_format",
                                  "return_tensors"};

std::array<double, 3> three(const Json& config, const char* name,
                            const std::array<double, 3>& fallback, std::string_view what) {
  const Json& found = part_named(config, name);
  if (found.is_null()) return fallback;
  if (!found.is_array() || found.size() != 3 ||
      !std::all_of(found.begin(), found.end(), [](const Json& x) { return x.is_number(); }))
    fail_usage("{}: \"{}\" must be three numbers, not {}", what, name, dump_json(found));
  return found.get<std::array<double, 3>>();
}

}  // namespace

void PixelRule::read(const Json& config, std::span<const char* const> also, std::string_view what) {
  for (const auto& [name, value] : config.items()) {
    const bool silent = value.is_null() || (value.is_boolean() && !value.get<bool>());
    const bool known = std::find(std::begin(kOfAll), std::end(kOfAll), name) != std::end(kOfAll) ||
                       std::find(also.begin(), also.end(), name) != also.end();
    if (!silent && !known && !name.starts_with('_'))
      fail_usage("{}: \"{}\" is {}, which is not supported here", what, name, dump_json(value));
  }
  for (const char* name : {"do_resize", "do_rescale", "do_normalize"})
    if (!get_bool(config, name).value_or(true))
      fail_usage("{}: without \"{}\" is not supported", what, name);
  const std::int64_t filter =
      get_integer(config, "resample").value_or(static_cast<std::int64_t>(resample));
  if (filter < 1 || filter > 3) fail_usage("{}: \"resample\" is {}", what, filter);
  resample = static_cast<Resample>(filter);
  factor = get_number(config, "rescale_factor").value_or(factor);
  mean = three(config, "image_mean", mean, what);
  deviation = three(config, "image_std", deviation, what);
  if (!std::all_of(deviation.begin(), deviation.end(), [](double x) { return x > 0; }))
    fail_usage("{}: \"image_std\" must be above 0", what);
}

Json PixelRule::to_json() const {
  return {{"resample", resample == Resample::bicubic    ? "bicubic"
                       : resample == Resample::bilinear ? "bilinear"
                                                        : "lanczos"},
          {"factor", factor},
          {"mean", mean},
          {"std", deviation}};
}

std::array<std::array<float, 256>, 3> PixelRule::numbers() const {
  std::array<std::array<float, 256>, 3> number;
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (int byte = 0; byte < 256; ++byte)
      number[channel][static_cast<std::size_t>(byte)] =
          (static_cast<float>(byte * factor) - static_cast<float>(mean[channel])) /
          static_cast<float>(deviation[channel]);
  return number;
}

Json processor_part(const std::string& folder, const char* file, const char* name,
                    std::string& what) {
  const std::string path = io::join_path(folder, file);
  if (io::file_exists(path)) {
    what = fmt::format("'{}'", path);
    return read_config(folder, file);
  }
  const char* joint = "processor_config.json";
  const std::string other = io::join_path(folder, joint);
  if (!io::file_exists(other)) return {};
  what = fmt::format("\"{}\" of '{}'", name, other);
  return part_named(read_config(folder, joint), name);
}

Json picture_processor(const std::string& folder, std::string& what) {
  Json own = processor_part(folder, "preprocessor_config.json", "image_processor", what);
  if (!own.is_object())
    fail_usage(
        "'{}' has no preprocessor_config.json, and no \"image_processor\" in a "
        "processor_config.json",
        folder);
  return own;
}

}  // namespace vfm::models
