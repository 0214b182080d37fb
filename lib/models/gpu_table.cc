// SPDX-License-Identifier: Apache-2.0
#include "models/gpu_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9, kMiB = 1 << 20;

// Judged from what is published, not measured by us; a rate is changed by a measurement only.
// Products: cuBLAS reaches 716 at 4096^3 and 795 at 8192^3 on an H100, 794.5 at the best shape and
// 1,453 in FP8 (Stas Bekman's maximum achievable matmul FLOPS). 680 is for a transformer's shapes;
// FP8 the same part of its best. Attention: NVIDIA's benchmark in cudnn-frontend, cuDNN 9.19 on an
// H200, heads of 128, 8,192 tokens. Our own kernels use mma.sync: the middle of what their
// instructions allow, 300 to 340 forward, 190 to 230 backward; convolutions 230 to 300, of which
// cuDNN is judged to give twice as much. Bandwidth: 85 % of the 4.3 TB/s that
// copies reach of 4.8. The link to the host: four fifths of the 63 GB/s of PCIe 5.0, 16 lanes.
// NVLink: of 450 GB/s one way 320 are left to large messages; InfiniBand: 45 of 400 Gb/s a GPU.
Gpu h200() {
  return {.name = "h200",
          .title = "H200",
          .memory = 143771 * kMiB,
          .peak = peak_tflops("H200") * kTera,
          .peak_f32 = 66.9 * kTera,
          .products = 680 * kTera,
          .products_fp8 = 680 / 794.5 * 1453 * kTera,
          .attention_forward = 691 * kTera,
          .attention_backward = 594 * kTera,
          .attention_fp8 = 1023 * kTera,
          .own_forward = 320 * kTera,
          .own_backward = 210 * kTera,
          .convolutions = 530 * kTera,
          .own_convolutions = 265 * kTera,
          .bandwidth = 3.65 * kTera,
          .host_link = 50 * kGiga,
          .inside = {.bandwidth = 320 * kGiga, .latency = 8e-6},
          .across = {.bandwidth = 45 * kGiga, .latency = 15e-6}};
}

// The same chip with other memory.
Gpu h100() {
  Gpu gpu = h200();
  gpu.name = "h100", gpu.title = "H100";
  gpu.memory = 81559 * kMiB;
  gpu.bandwidth *= 3.35 / 4.8;
  return gpu;
}

/// Rates of arithmetic but cuDNN's attention, as the same part of the peak as an H200's.
void take_parts_of_peak(Gpu& gpu) {
  const double peak = h200().peak;
  for (double* rate : {&gpu.products, &gpu.products_fp8, &gpu.own_forward, &gpu.own_backward,
                       &gpu.convolutions, &gpu.own_convolutions})
    *rate *= gpu.peak / peak;
}

/// The same parts as an H200's of NVLink's `nvlink` bytes/s one way.
void take_part_of_nvlink(Gpu& gpu, double nvlink) {
  gpu.inside.bandwidth *= nvlink / (450 * kGiga);
}

// Of the data sheet's 2,250 and 4,500 TFLOP/s and 8 TB/s the same parts as of an H200's, for want
// of anything better; but cuDNN's attention is that benchmark's on a GB200 (1,709, 1,409 and in
// FP8 2,241 at 8,192 tokens), whose peak is 2,500. NVLink 5 has 900 GB/s one way.
Gpu b200() {
  Gpu gpu = h200();
  gpu.name = "b200", gpu.title = "B200";
  gpu.memory = 183359 * kMiB;
  gpu.peak = peak_tflops("B200") * kTera, gpu.peak_f32 = 75 * kTera;
  take_parts_of_peak(gpu);
  gpu.attention_forward = 1709 * kTera * 2250 / 2500;
  gpu.attention_backward = 1409 * kTera * 2250 / 2500;
  gpu.attention_fp8 = 2241 * kTera * 2250 / 2500;
  gpu.bandwidth *= 8 / 4.8;
  take_part_of_nvlink(gpu, 900 * kGiga);
  return gpu;
}

// The same chip at more power; NVLink joins the 72 of a rack, and the host by 450 GB/s one way.
Gpu gb200() {
  Gpu gpu = h200();
  gpu.name = "gb200", gpu.title = "GB200";
  gpu.memory = 189471 * kMiB;
  gpu.peak = peak_tflops("GB200") * kTera, gpu.peak_f32 = 80 * kTera;
  take_parts_of_peak(gpu);
  gpu.attention_forward = 1709 * kTera, gpu.attention_backward = 1409 * kTera;
  gpu.attention_fp8 = 2241 * kTera;
  gpu.bandwidth *= 8 / 4.8;
  gpu.host_link = 360 * kGiga;
  gpu.per_node = 72;
  take_part_of_nvlink(gpu, 900 * kGiga);
  return gpu;
}

// The data sheet's 312 TFLOP/s and 2,039 GB/s, NVLink 3 with 300 GB/s one way, InfiniBand of
// 200 Gb/s a GPU, PCIe 4.0. Products: Bekman's best is 271.2, of it the same part as of an H100's.
// Attention: 73 and 63 % of the peak, FlashAttention-2's best (Dao 2023); our own kernels have the
// instructions that are this chip's own, and are judged to be at 55 and 40 %. No FP8: as bf16.
Gpu a100() {
  Gpu gpu = h200();
  gpu.name = "a100", gpu.title = "A100";
  gpu.memory = 81920 * kMiB;
  gpu.peak = peak_tflops("A100") * kTera, gpu.peak_f32 = 19.5 * kTera;
  take_parts_of_peak(gpu);
  gpu.products = gpu.products_fp8 = 680 / 794.5 * 271.2 * kTera;
  gpu.attention_forward = gpu.attention_fp8 = 0.73 * gpu.peak;
  gpu.attention_backward = 0.63 * gpu.peak;
  gpu.own_forward = 0.55 * gpu.peak, gpu.own_backward = 0.4 * gpu.peak;
  gpu.bandwidth *= 2.039 / 4.8;
  gpu.host_link = 25 * kGiga;
  gpu.across.bandwidth = 22.5 * kGiga;
  take_part_of_nvlink(gpu, 300 * kGiga);
  return gpu;
}

// The data sheet's 362.05 TFLOP/s, 733 in FP8, 864 GB/s. GPUs reach each other by PCIe 4.0 through
// the host, and other nodes by one port of 200 Gb/s each.
Gpu l40s() {
  Gpu gpu = h200();
  gpu.name = "l40s", gpu.title = "L40S";
  gpu.memory = 46068 * kMiB;
  gpu.peak = peak_tflops("L40S") * kTera, gpu.peak_f32 = 91.6 * kTera;
  take_parts_of_peak(gpu);
  gpu.attention_forward = gpu.attention_fp8 = gpu.own_forward = 0.55 * gpu.peak;
  gpu.attention_backward = gpu.own_backward = 0.4 * gpu.peak;
  gpu.bandwidth *= 0.864 / 4.8;
  gpu.host_link = 25 * kGiga;
  gpu.inside = {.bandwidth = 20 * kGiga, .latency = 15e-6};
  gpu.across.bandwidth = 20 * kGiga;
  return gpu;
}

const std::vector<Gpu>& table() {
  static const std::vector<Gpu> gpus = {a100(), h100(), h200(), b200(), gb200(), l40s()};
  return gpus;
}

/// In capitals or not, as "h100" and "H100".
bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const Gpu& of_table(std::string_view name) {
  std::vector<std::string> known;
  for (const Gpu& gpu : table()) {
    if (same_name(gpu.name, name)) return gpu;
    known.push_back(gpu.name);
  }
  fail_usage("--gpu: unknown GPU '{}'; choose one of {}, or a file (.json)", name,
             fmt::join(known, ", "));
}

/// One number of the file and where it belongs.
struct Number {
  const char* name;
  double Gpu::*member;
};
constexpr Number kNumbers[] = {{"memory", &Gpu::memory},
                               {"peak", &Gpu::peak},
                               {"peak_f32", &Gpu::peak_f32},
                               {"products", &Gpu::products},
                               {"products_fp8", &Gpu::products_fp8},
                               {"attention_forward", &Gpu::attention_forward},
                               {"attention_backward", &Gpu::attention_backward},
                               {"attention_fp8", &Gpu::attention_fp8},
                               {"own_forward", &Gpu::own_forward},
                               {"own_backward", &Gpu::own_backward},
                               {"convolutions", &Gpu::convolutions},
                               {"own_convolutions", &Gpu::own_convolutions},
                               {"bandwidth", &Gpu::bandwidth},
                               {"host_link", &Gpu::host_link},
                               {"gap", &Gpu::gap},
                               {"tp_hidden", &Gpu::tp_hidden}};

void read_positive(const Json& from, const char* name, double& value, const std::string& what) {
  const std::optional<double> number = get_number(from, name);
  if (!number) return;
  if (!std::isfinite(*number) || *number < 0) fail_usage("{}: '{}' is {}", what, name, *number);
  value = *number;
}

void read_link(const Json& from, const char* name, Link& link, const std::string& what) {
  if (!from.contains(name)) return;
  const Json& one = from[name];
  if (!one.is_object()) fail_usage("{}: '{}' is not an object", what, name);
  for (const auto& [key, value] : one.items())
    if (key != "bandwidth" && key != "latency") fail_usage("{}: no '{}.{}'", what, name, key);
  read_positive(one, "bandwidth", link.bandwidth, what);
  read_positive(one, "latency", link.latency, what);
}

void read_kernels(const Json& from, std::vector<KernelRate>& kernels, const std::string& what) {
  if (!from.is_array()) fail_usage("{}: 'kernels' is not a list", what);
  for (const Json& one : from) {
    if (!one.is_object()) fail_usage("{}: one of 'kernels' is not an object", what);
    KernelRate& rate = kernels.emplace_back();
    rate.name = get_string(one, "name").value_or("");
    const std::string type = get_string(one, "type").value_or("");
    bool known = false;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f8e4m3})
      if (type == dtype_name(dtype)) rate.type = dtype, known = true;
    if (rate.name.empty() || !known)
      fail_usage("{}: each of 'kernels' needs a name, and a type of {}, {} or {}", what,
                 dtype_name(DType::f32), dtype_name(DType::bf16), dtype_name(DType::f8e4m3));
    read_positive(one, "seconds", rate.seconds, what);
    read_positive(one, "of_flop", rate.of_flop, what);
    read_positive(one, "of_byte", rate.of_byte, what);
    read_positive(one, "near", rate.near, what);
    read_positive(one, "of_far_byte", rate.of_far_byte, what);
    read_positive(one, "error", rate.error, what);
  }
}

/// What no GPU can do: nothing; or more than its peak, of which MFU is a part. FP8 is at most twice
/// as fast. A CPU's peak was measured, and so were its rates.
/// What was not measured may be 0.
void check_rates(const Gpu& gpu, bool measured, const std::string& what) {
  for (const double needed : {gpu.memory, gpu.peak, gpu.peak_f32, gpu.products, gpu.bandwidth,
                              gpu.inside.bandwidth, gpu.across.bandwidth})
    if (needed == 0)
      fail_usage("{}: memory, peak, peak_f32, products and bandwidths must be more than 0", what);
  if (gpu.cpu) return;
  constexpr std::pair<double Gpu::*, double> kMost[] = {
      {&Gpu::peak_f32, 1},          {&Gpu::products, 1},           {&Gpu::products_fp8, 2},
      {&Gpu::attention_forward, 1}, {&Gpu::attention_backward, 1}, {&Gpu::own_forward, 1},
      {&Gpu::own_backward, 1},      {&Gpu::attention_fp8, 2},      {&Gpu::convolutions, 1},
      {&Gpu::own_convolutions, 1}};
  for (const auto& [rate, times] : kMost) {
    const auto named = std::ranges::find(kNumbers, rate, &Number::member);
    if (gpu.*rate == 0 && !measured)
      fail_usage("{}: '{}' is 0, and must be more", what, named->name);
    if (gpu.*rate > times * gpu.peak)
      fail_usage("{}: '{}' is {:.4g}, more than {}'peak', which is {:.4g}: no GPU computes faster",
                 what, named->name, gpu.*rate, times == 1 ? "" : "twice ", gpu.peak);
  }
}

Gpu parse_gpu(const Json& json, const std::string& what) {
  if (!json.is_object()) fail_usage("{} is not a JSON object", what);
  const std::string device = get_string(json, "device").value_or("cuda");
  if (device != "cpu" && device != "cuda")
    fail_usage("{}: 'device' is {}, and neither cpu nor cuda", what, device);
  Gpu gpu = of_table(get_string(json, "like").value_or("h200"));
  gpu.cpu = device == "cpu";
  if (json.contains("kernels")) read_kernels(json["kernels"], gpu.kernels, what);
  gpu.name = get_string(json, "name").value_or("of a file");
  gpu.title = get_string(json, "title").value_or(gpu.name);
  const Json known = to_json(gpu);
  for (const auto& [key, value] : json.items())
    if (key != "like" && key != "measured" && key != "kernels" && !known.contains(key))
      fail_usage("{}: no '{}'; there are like, {}", what, key,
                 fmt::join(
                     [&] {
                       std::vector<std::string> names;
                       for (const auto& [name, unused] : known.items())
                         names.push_back(name);
                       return names;
                     }(),
                     ", "));
  for (const Number& number : kNumbers)
    read_positive(json, number.name, gpu.*number.member, what);
  if (const auto count = get_integer(json, "per_node")) {
    if (*count < 1 || *count > 1 << 16) fail_usage("{}: 'per_node' is {}", what, *count);
    gpu.per_node = static_cast<int>(*count);
  }
  read_link(json, "inside", gpu.inside, what);
  read_link(json, "across", gpu.across, what);
  check_rates(gpu, json.contains("measured"), what);
  if (gpu.tp_hidden > 1) fail_usage("{}: 'tp_hidden' is {}, more than all", what, gpu.tp_hidden);
  return gpu;
}

const Gpu& read_gpu(const std::string& path) {
  static std::mutex mutex;
  static std::deque<std::pair<std::string, Gpu>> read;
  const std::lock_guard lock(mutex);
  for (const auto& [name, gpu] : read)
    if (name == path) return gpu;
  if (!io::file_exists(path)) fail_usage("--gpu: there is no file '{}'", path);
  const std::string what = fmt::format("--gpu '{}'", path);
  return read
      .emplace_back(path,
                    parse_gpu(parse_json(io::read_file(path, io::kMostModelJson), what), what))
      .second;
}

Json to_json(const Link& link) {
  return {{"bandwidth", link.bandwidth}, {"latency", link.latency}};
}

}  // namespace

const Gpu& find_gpu(std::string_view name) {
  if (name.find('/') != std::string_view::npos || name.ends_with(".json"))
    return read_gpu(std::string(name));
  return of_table(name);
}

const Gpu* known_gpu(std::string_view description) {
  const Gpu* known = nullptr;  // "GB200" has "B200" in it, and is the longer one
  for (const Gpu& gpu : table())
    if (description.find(gpu.title) != std::string_view::npos &&
        (known == nullptr || gpu.title.size() > known->title.size()))
      known = &gpu;
  return known;
}

Json to_json(const Gpu& gpu) {
  Json json = {{"name", gpu.name}, {"title", gpu.title}};
  for (const Number& number : kNumbers)
    json[number.name] = gpu.*number.member;
  json["per_node"] = gpu.per_node;
  json["inside"] = to_json(gpu.inside);
  json["across"] = to_json(gpu.across);
  json["device"] = device_name(gpu.device());
  if (gpu.kernels.empty()) return json;
  for (const KernelRate& rate : gpu.kernels)
    json["kernels"].push_back({{"name", rate.name},
                               {"type", dtype_name(rate.type)},
                               {"seconds", rate.seconds},
                               {"of_flop", rate.of_flop},
                               {"of_byte", rate.of_byte},
                               {"near", rate.near},
                               {"of_far_byte", rate.of_far_byte},
                               {"error", rate.error}});
  return json;
}

}  // namespace vfm::models
