// SPDX-License-Identifier: Apache-2.0
#include "models/kernel_time.h"

#include <algorithm>
#include <functional>
#include <utility>

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
              fp8 ? gpu.attention_fp8 : rate(gpu.attention_forward, gpu.own_forward)};
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
  if (call.name == "sum_squares") return "norm of gradients";
  return call.name.ends_with("adamw") ? "AdamW" : "Muon";
}

}  // namespace

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

}  // namespace vfm::models
