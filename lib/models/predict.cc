// SPDX-License-Identifier: Apache-2.0
#include "models/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"

namespace vfm::models {
namespace {

constexpr double kGigabyte = 1e9;

// Judged. What the GPU waits for: a thread's copy to or from memory that is not pinned.
constexpr double kTransfers = 7 * kGigabyte;
constexpr std::string_view kGaps = "gaps";

/// The line of a call, and counted operations a second. In f32 there are no tensor cores, and the
/// same part of that peak.
std::pair<std::string_view, double> line_of(const Gpu& gpu, const KernelCall& call) {
  const bool fp8 = call.type == DType::f8e4m3, f32 = call.type == DType::f32;
  const double part = f32 ? gpu.peak_f32 / gpu.peak : 1;
  const auto rate = [&](double cudnn, double own) { return (call.cudnn ? cudnn : own) * part; };
  switch (call.kind) {
    case WorkKind::products:
      if (fp8) return {"products, FP8", gpu.products_fp8};
      return {f32 ? "products, f32" : "products", gpu.products * part};
    case WorkKind::attention:
      // Four products are counted, which a model needs; backward makes the scores again.
      if (call.name.ends_with("backward"))
        return {"attention, backward", rate(gpu.attention_backward, gpu.own_backward) * 4 / 5};
      return {"attention, forward",
              fp8 ? gpu.own_fp8 : rate(gpu.attention_forward, gpu.own_forward)};
    case WorkKind::convolutions:
      return {"convolutions", rate(gpu.convolutions, gpu.own_convolutions)};
    case WorkKind::transfers:
      return {"copies to the GPU", 0};
    case WorkKind::elementwise:
      break;
  }
  return {"element-wise", 0};
}

std::string_view optimizer_line(const KernelCall& call) {
  return call.name == "sum_squares" ? "norm of gradients" : "AdamW";
}

}  // namespace

const Gpu* chosen_gpu(const std::optional<std::string>& name, bool dry_run,
                      std::string_view device) {
  if (!name) return nullptr;
  const Gpu& gpu = find_gpu(*name);
  if (!dry_run)
    fail_usage("--gpu {} predicts, and computes nothing: give it with --dry-run", *name);
  if (device == "cpu" && !gpu.cpu)
    fail_usage("--gpu {} is for --device cuda, not for the CPU", *name);
  if (device == "cuda" && gpu.cpu) fail_usage("--gpu {} is of a CPU, not for --device cuda", *name);
  return &gpu;
}

std::vector<TimeLine> predict(const Gpu& gpu, const KernelCalls& work,
                              const KernelCalls& optimizer) {
  std::vector<TimeLine> lines;
  TimeLine gaps{kGaps};
  const auto add = [&](const KernelCall& call, double calls, std::string_view of_optimizer) {
    if (calls == 0) return;
    const auto [usual, rate] = line_of(gpu, call);
    const std::string_view name = of_optimizer.empty() ? usual : of_optimizer;
    auto line = std::ranges::find(lines, name, &TimeLine::name);
    if (line == lines.end()) line = lines.insert(line, {name});
    const bool host = call.kind == WorkKind::transfers;
    const double moved = call.bytes / (host ? kTransfers : gpu.bandwidth);
    const auto measured = std::ranges::find_if(gpu.kernels, [&](const KernelRate& one) {
      return one.name == call.name && one.type == call.type;
    });
    if (measured != gpu.kernels.end())
      line->seconds += calls * measured->of(call.flops, call.bytes);
    else
      line->seconds += calls * (call.flops > 0 ? std::max(moved, call.flops / rate) : moved);
    line->calls += calls;
    line->flops += calls * call.flops;
    line->bytes += calls * call.bytes;
    gaps.calls += calls;
  };
  for (const auto& [call, calls] : work)
    add(call, calls, "");
  for (const auto& [call, calls] : optimizer)
    add(call, calls, optimizer_line(call));
  std::ranges::sort(lines, std::greater(), &TimeLine::seconds);
  gaps.seconds = gaps.calls * gpu.gap;
  lines.push_back(gaps);
  return lines;
}

TimeLine sum_of(std::string_view name, const std::vector<TimeLine>& lines) {
  TimeLine sum{name};
  for (const TimeLine& line : lines) {
    sum.seconds += line.seconds;
    sum.flops += line.flops;
    sum.bytes += line.bytes;
    if (line.name != kGaps) sum.calls += line.calls;
  }
  return sum;
}

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

std::string prediction_words(const Json& prediction) {
  const auto number = [](const Json& value) { return value.get<double>(); };
  const double seconds = number(prediction["seconds"]);
  std::string text =
      fmt::format("  {:<20} {:.0f} tokens/s, {:.1f} % MFU; not measured\n",
                  prediction["gpu"].get<std::string>(), number(prediction["tokens_per_second"]),
                  100 * number(prediction["mfu"]));
  for (const Json& line : prediction["lines"])
    text += fmt::format("  {:<20} {:.4g} ms, {:.1f} %\n", line["name"].get<std::string>(),
                        1e3 * number(line["seconds"]), 100 * number(line["seconds"]) / seconds);
  if (prediction.contains("offload")) {
    const Json& copies = prediction["offload"];
    const double all = number(copies["seconds"]), exposed = number(copies["exposed"]);
    text += fmt::format(
        "  {:<20} {:.1f} GB over the link to the host, {:.4g} ms, {:.1f} % hidden\n", "offload",
        1e-9 * number(copies["bytes"]), 1e3 * all, 100 * (1 - exposed / all));
  }
  return text + fmt::format("  {:<20} {}\n", "memory", prediction["verdict"].get<std::string>());
}

}  // namespace vfm::models
