// The time of one forward pass of a DiT for inference, on the CPU or a GPU. dit_forward.sh and
// wan.sh run it beside diffusers' modules; scripts/gpu-report a step of text to world of 7 billion
// parameters.
//
//   dit_forward 100m|7b-slice|7b-world|2b-world|wan-1.3b-slice|wan-14b-slice [f32|bf16 [RUNS]]
//     [OPTION]...
//     --device cpu|cuda            (cpu)
//     --fp8 linear|all             on a GPU: then once more in FP8, see models/dit/fp8.h
//     --gemm-cache FILE            see ops::set_gemm_cache
//     --json                       print a record of gpu.h's form
// Prints one line: model, dtype, parameters, tokens, best and median milliseconds, processor
// seconds of all runs, peak memory.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/dit/architecture.h"
#include "models/dit/fp8.h"
#include "models/dit/network_cost.h"
#include "models/gpu.h"
#include "models/wan/wan.h"
#include "ops/matmul/gemm.h"
#include "rehearsal.h"
#include "training.h"

using namespace vfm;

namespace {

struct Case {
  models::NetworkConfig config;
  std::vector<models::NetworkSample> samples;
};

// Wan of this width, with few of its layers; 512 text tokens, as its pipeline pads every text.
Case wan_slice(int heads, int ffn_dim, int layers) {
  Case c;
  c.config.architecture = &models::kWan;
  models::kWan.defaults(c.config);
  c.config.num_attention_heads = heads;
  c.config.own<models::WanFields>().ffn_dim = ffn_dim;
  c.config.num_layers = layers;
  c.samples = {{5, 30, 52, 16.f, 500.f, 512}};
  return c;
}

// A hundred million parameters on 2,048 tokens; two layers of the 7B model on 2,048, so wide that
// the matrices are most of it. 128 and 512 text tokens. And a step of sampling with guidance, of
// text to 121 frames of 704 x 1,280 pixels: two samples of 56,320 tokens. On 1,950 tokens two
// layers of Wan 1.3B, and one of Wan 14B.
Case find_case(const std::string& name) {
  Case c;
  if (name == "100m") {
    c.config.num_attention_heads = 12;
    c.config.attention_head_dim = 64;
    c.config.num_layers = 8;
    c.samples = {{8, 32, 32, 24.f, 0.1f, 128}};
  } else if (name == "7b-slice") {
    c.config.num_layers = 2;
    c.samples = {{8, 32, 32, 24.f, 0.1f, 512}};
  } else if (name == "7b-world" || name == "2b-world") {
    if (name == "2b-world") c.config.num_attention_heads = 16;
    c.samples.assign(2, {16, 88, 160, 24.f, 0.1f, 512});
  } else if (name == "wan-1.3b-slice") {
    c = wan_slice(12, 8960, 2);
  } else if (name == "wan-14b-slice") {
    c = wan_slice(40, 13824, 1);
  } else {
    fail_usage(
        "there is no model '{}'; there are 100m, 7b-slice, 7b-world, 2b-world, wan-1.3b-slice and "
        "wan-14b-slice",
        name);
  }
  return c;
}

struct Options {
  std::string model = "100m", gemm_cache;
  DType compute = DType::f32;
  Device device = Device::cpu;
  models::Fp8Parts fp8;  // of a second measurement
  int runs = 5;
  bool json = false;
};

Options parse(int argc, char** argv) {
  Options o;
  std::vector<std::string> plain;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      plain.push_back(word);
    } else if (word == "--json") {
      o.json = true;
    } else {
      if (i + 1 == argc) fail_usage("{} needs a value", word);
      const std::string value = argv[++i];
      if (word == "--device")
        o.device = parse_device(value);
      else if (word == "--fp8")
        o.fp8 = models::parse_fp8(value);
      else if (word == "--gemm-cache")
        o.gemm_cache = value;
      else
        fail_usage("there is no option {}", word);
    }
  }
  if (!plain.empty()) o.model = plain[0];
  if (plain.size() > 1 && plain[1] != "f32" && plain[1] != "bf16")
    fail_usage("no type '{}'; there are f32 and bf16", plain[1]);
  if (plain.size() > 1 && plain[1] == "bf16") o.compute = DType::bf16;
  if (plain.size() > 2) o.runs = std::atoi(plain[2].c_str());
  if (plain.size() > 3 || o.runs < 1) fail_usage("at most a model, a type and how often");
  return o;
}

// Small normal numbers; on a GPU a million of them over and over, as the host would take long.
void fill(const nn::Parameter& p, std::uint64_t key) {
  const bool gpu = p.device() == Device::cuda;
  Tensor values =
      noise_tensor(gpu ? Shape{std::min<std::int64_t>(p.elements(), 1 << 20)} : p.shape(), key);
  for (float& value : values.floats())
    value *= 0.02f;
  if (!gpu) return p.write(values);
  const Tensor piece = values.to(Device::cuda), whole(p.shape(), DType::f32, Device::cuda);
  for (std::size_t done = 0; done < whole.bytes(); done += piece.bytes())
    copy_bytes(whole.data<std::byte>() + done, Device::cuda, piece.raw(), Device::cuda,
               std::min(piece.bytes(), whole.bytes() - done));
  p.write(whole);
}

std::string title(const Options& o, models::Fp8Parts fp8) {
  const std::string type = o.compute == DType::bf16 ? "bf16" : "f32";
  return o.model + " " + (fp8.any() ? "fp8 " + std::string(models::fp8_name(fp8)) : type);
}

void print_error(const Options& o, models::Fp8Parts fp8, std::string why) {
  std::ranges::replace(why, '"', ' ');
  if (o.json)
    std::printf(
        "{\"bench\": \"forward\", \"case\": \"%s\", \"impl\": \"vfm\", \"error\": \"%s\"}\n",
        title(o, fp8).c_str(), why.c_str());
  else
    std::fprintf(stderr, "dit_forward: %s: %s\n", title(o, fp8).c_str(), why.c_str());
}

/// Of the runs that count.
struct Taken {
  std::vector<double> times;  ///< seconds of each
  std::clock_t processor = 0;
};

void print(const Options& o, models::Fp8Parts fp8, const Case& c, const test::Pack& pack,
           std::int64_t parameters, Taken taken) {
  std::vector<double>& times = taken.times;
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const bool gpu = o.device == Device::cuda;
  const double memory = gpu ? static_cast<double>(cuda_memory().peak) / (1 << 30)
                            : static_cast<double>(usage.ru_maxrss) / (1 << 20);
  if (o.json) {
    const double flops =
        models::forward_cost(c.config, {}, c.samples, o.compute, {}, o.device).flops;
    const double peak = gpu ? models::gpu_peak_tflops() : 0, rate = 1e-12 * flops / median;
    std::printf(
        "{\"bench\": \"forward\", \"case\": \"%s\", \"impl\": \"vfm\", \"value\": %.6g, \"unit\": "
        "\"s\", \"tflops\": %.6g, \"mfu\": %.4g, \"peak_tflops\": %.6g, \"memory_gib\": %.4g}\n",
        title(o, fp8).c_str(), median, rate, peak > 0 ? rate / peak : 0, peak, memory);
  } else {
    std::printf(
        "vfm %s parameters %lld tokens %lld best %.1f ms median %.1f ms cpu %.1f s peak %.2f "
        "GiB tokens/s %.0f\n",
        title(o, fp8).c_str(), static_cast<long long>(parameters),
        static_cast<long long>(pack.tokens), 1e3 * times.front(), 1e3 * median,
        static_cast<double>(taken.processor) / CLOCKS_PER_SEC, memory,
        static_cast<double>(pack.tokens) / median);
  }
  std::fflush(stdout);
}

void measure(const Options& o) {
  const Case c = find_case(o.model);
  std::vector<models::Fp8Parts> kinds(1);
  if (o.fp8.any()) {
    models::check_fp8(c.config, o.compute, o.fp8);
    kinds.push_back(o.fp8);
  }
  if (bench::rehearsal()) {
    for (const models::Fp8Parts fp8 : kinds) {
      models::forward_cost(c.config, {}, c.samples, o.compute, fp8, o.device);
      print_error(o, fp8, bench::kRehearsed);
    }
    return;
  }
  ops::set_gemm_cache(o.gemm_cache);
  const test::Pack pack = test::put(test::make_pack(c.config, c.samples), o.device);
  const auto network = models::make_network(c.config, 1, o.compute, o.device, false);
  std::int64_t parameters = 0;
  std::uint64_t key = 100;
  for (const nn::Parameter* p : network->parameters()) {
    fill(*p, ++key);
    parameters += p->elements();
  }
  for (const models::Fp8Parts fp8 : kinds)
    try {
      network->set_inference_fp8(fp8);
      Taken taken;
      for (int i = 0; i < o.runs + 1; ++i) {
        const std::clock_t processor = std::clock();
        const auto start = std::chrono::steady_clock::now();
        ops::Tape tape(false);
        network->forward(tape, pack.batch);
        if (o.device == Device::cuda) synchronize_gpu();
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
        if (i == 0) continue;  // it warms up
        taken.times.push_back(time.count());
        taken.processor += std::clock() - processor;
      }
      print(o, fp8, c, pack, parameters, taken);
    } catch (const Error& error) {
      if (!o.json) throw;
      print_error(o, fp8, error.what());
    }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    if (options.device == Device::cuda && !why_no_gpu().empty() && !bench::rehearsal()) {
      std::fprintf(stderr, "no GPU: %s\n", why_no_gpu().c_str());
      return 77;
    }
    measure(options);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "dit_forward: %s\n", error.what());
    return error.kind() == ErrorKind::usage ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dit_forward: %s\n", error.what());
    return 1;
  }
}
