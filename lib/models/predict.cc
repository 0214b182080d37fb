// SPDX-License-Identifier: Apache-2.0
#include "models/predict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"

namespace vfm::models {

CopyTime copy_time(const Gpu& gpu, const std::vector<CopyBeside>& copies) {
  CopyTime sum;
  for (const CopyBeside& copy : copies) {
    const double seconds = copy.bytes / gpu.host_link;
    const double meanwhile = sum_of("", predict(gpu, copy.meanwhile)).seconds;
    sum.calls += copy.times;
    sum.bytes += copy.times * copy.bytes;
    sum.seconds += copy.times * seconds;
    sum.exposed += copy.times * std::max(0.0, seconds - meanwhile);
  }
  return sum;
}

TimeLine CopyTime::line() const {
  return {"offload, not hidden", exposed, calls, 0, bytes};
}

Json CopyTime::to_json() const {
  return {{"calls", calls}, {"bytes", bytes}, {"seconds", seconds}, {"exposed", exposed}};
}

Json prediction(const Gpu& gpu, std::vector<TimeLine> lines, double tokens, double flops,
                double memory, const CopyTime& copies) {
  if (copies.calls > 0) lines.insert(lines.end() - 1, copies.line());
  const double seconds = sum_of("", lines).seconds;
  constexpr double kGiB = 1 << 30;
  const bool fits = memory <= gpu.usable();
  Json list = Json::array();
  for (const TimeLine& line : lines)
    list.push_back({{"name", line.name},
                    {"seconds", line.seconds},
                    {"calls", line.calls},
                    {"flops", line.flops},
                    {"bytes", line.bytes}});
  Json json = {
      {"gpu", gpu.title},
      {"seconds", seconds},
      {"tokens_per_second", tokens / seconds},
      {"mfu", flops / seconds / gpu.peak},
      {"lines", list},
      {"fits", fits},
      {"verdict",
       fmt::format(
           "{} {} {}: {:.1f} of {:.1f} GiB, {:.1f} of them for {}", fits ? "fits" : "does not fit",
           std::string_view("AHIL").find(gpu.title[0]) != std::string_view::npos ? "an" : "a",
           gpu.title, memory / kGiB, gpu.memory / kGiB, (gpu.memory - gpu.usable()) / kGiB,
           gpu.cpu ? "other programs" : "the driver and cuDNN's plans")}};
  if (copies.calls > 0) json["offload"] = copies.to_json();
  return json;
}

std::string count_words(double count, std::string_view unit) {
  std::string text = format_count(count);
  const bool prefix = std::isalpha(static_cast<unsigned char>(text.back())) != 0;
  text.insert(text.size() - (prefix ? 1 : 0), " ");
  return text + std::string(unit);
}

std::string time_words(double seconds) {
  if (seconds < 10) return fmt::format("{:.4g} ms", 1e3 * seconds);
  return fmt::format("{:.{}f} s", seconds, seconds < 1e4 ? 2 : 0);
}

std::string prediction_words(const Json& prediction) {
  const auto number = [](const Json& value) { return value.get<double>(); };
  const double seconds = number(prediction["seconds"]);
  std::string text =
      fmt::format("  {:<20} {:.0f} tokens/s, {:.1f} % MFU; not measured\n",
                  prediction["gpu"].get<std::string>(), number(prediction["tokens_per_second"]),
                  100 * number(prediction["mfu"]));
  for (const Json& line : prediction["lines"])
    text +=
        fmt::format("  {:<20} {}, {:.1f} %\n", line["name"].get<std::string>(),
                    time_words(number(line["seconds"])), 100 * number(line["seconds"]) / seconds);
  if (prediction.contains("offload")) {
    const Json& copies = prediction["offload"];
    const double all = number(copies["seconds"]), exposed = number(copies["exposed"]);
    text += fmt::format("  {:<20} {:.1f} GB over the link to the host, {}, {:.1f} % hidden\n",
                        "offload", 1e-9 * number(copies["bytes"]), time_words(all),
                        100 * (1 - exposed / all));
  }
  return text + fmt::format("  {:<20} {}\n", "memory", prediction["verdict"].get<std::string>());
}

}  // namespace vfm::models
