// The time of a training step (forward, loss gradient, backward, clipping norm, AdamW) of a DiT, on
// the CPU or a GPU. train_step.sh and scripts/gpu-report run it beside the same model in PyTorch.
//
//   train_step quick|100m|7b|7b-37k|7b-74k [f32|bf16 [STEPS]] [OPTION]...
//     --device cpu|cuda            (cpu)
//     --recompute none|elementwise|block   (none)
//     --moments f32|bf16           (f32; bf16 for the 7b models)
//     --ema 0|1                    keep the moving average too (1; 0 for the 7b models)
//     --warmup N                   steps before those that are timed (2)
//     --attention auto|own|cudnn   see ops/attention/attention_choice.h (auto)
//     --gemm-cache FILE            see ops::set_gemm_cache
//     --graph                      on a GPU: then once more, the same steps as CUDA graphs
//     --json                       print a record of gpu.h's form
// Prints one line: model, dtype, parameters, tokens, best and median milliseconds, processor time a
// step over all threads, tokens/s.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/dit/dit.h"
#include "ops/attention/attention_choice.h"
#include "ops/matmul/gemm.h"
#include "tensor/meta.h"
#include "training.h"

using namespace vfm;

namespace {

struct Case {
  models::NetworkConfig config;
  std::vector<models::NetworkSample> samples;
};

// The model of scripts/quickstart: sixteen samples of 48 tokens, five text tokens each.
Case quick() {
  Case c;
  c.config.in_channels = c.config.out_channels = 24;
  c.config.num_attention_heads = 6;
  c.config.attention_head_dim = 32;
  c.config.num_layers = 6;
  c.config.text_embed_dim = 64;
  c.config.adaln_lora_dim = 32;
  c.config.max_size = {16, 32, 32};
  c.config.patch_size = {1, 2, 2};
  c.config.concat_padding_mask = false;
  for (int i = 0; i < 16; ++i)
    c.samples.push_back({3, 8, 8, 8.f, 0.05f * static_cast<float>(i), 5});
  return c;
}

// A hundred million parameters, one sample of 2,048 tokens, 128 text tokens.
Case hundred() {
  Case c;
  c.config.num_attention_heads = 12;
  c.config.attention_head_dim = 64;
  c.config.num_layers = 8;
  c.samples = {{8, 32, 32, 24.f, 0.1f, 128}};
  return c;
}

// Seven thousand million parameters: 28 layers, 4,096 wide, 32 heads, AdaLN-LoRA of 256, which are
// NetworkConfig's defaults. One sample, 512 text tokens.
Case seven(int frames, int size) {
  Case c;
  c.samples = {{frames, size, size, 24.f, 0.1f, 512}};
  return c;
}

Case find_case(const std::string& name) {
  if (name == "quick") return quick();
  if (name == "100m") return hundred();
  if (name == "7b") return seven(8, 64);        // 8,192 tokens
  if (name == "7b-37k") return seven(9, 128);   // 36,864
  if (name == "7b-74k") return seven(18, 128);  // 73,728
  fail_usage("there is no model '{}'; there are quick, 100m, 7b, 7b-37k and 7b-74k", name);
}

struct Options {
  std::string model = "quick", gemm_cache;
  models::Recompute recompute = models::Recompute::none;
  DType compute = DType::f32, moments = DType::f32;
  Device device = Device::cpu;
  int steps = 10, warmup = 2;
  bool ema = true, graph = false, json = false;
};

models::Recompute parse_recompute(const std::string& name) {
  using models::Recompute;
  for (const Recompute one :
       {Recompute::none, Recompute::elementwise, Recompute::block_but_attention, Recompute::block})
    if (name == models::recompute_name(one)) return one;
  fail_usage("no recompute '{}'; there are none, elementwise and block", name);
}

Options parse(int argc, char** argv) {
  Options o;
  std::vector<std::string> plain;
  std::map<std::string, std::string> named;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      o.json = true;
    } else if (word == "--graph") {
      o.graph = true;
    } else if (word.starts_with("--")) {
      if (++i == argc) fail_usage("{} needs a value", word);
      named[word] = argv[i];
    } else {
      plain.push_back(word);
    }
  }
  if (!plain.empty()) o.model = plain[0];
  if (plain.size() > 1) o.compute = plain[1] == "bf16" ? DType::bf16 : DType::f32;
  if (plain.size() > 2) o.steps = std::max(1, std::atoi(plain[2].c_str()));
  o.ema = !o.model.starts_with("7b");
  o.moments = o.ema ? DType::f32 : DType::bf16;
  for (const auto& [name, value] : named) {
    if (name == "--device") {
      o.device = parse_device(value);
    } else if (name == "--recompute") {
      o.recompute = parse_recompute(value);
    } else if (name == "--moments") {
      o.moments = value == "bf16" ? DType::bf16 : DType::f32;
    } else if (name == "--ema") {
      o.ema = value == "1";
    } else if (name == "--warmup") {
      o.warmup = std::atoi(value.c_str());
    } else if (name == "--attention") {
      ops::set_attention_body(ops::parse_attention_body(value));
    } else if (name == "--gemm-cache") {
      o.gemm_cache = value;
    } else {
      fail_usage("there is no option {}", name);
    }
  }
  return o;
}

// What a step must compute for a token, forward and backward, without what is computed again.
double flops_per_token(const models::NetworkConfig& config, const test::Pack& pack, DType compute) {
  const MetaAccount account(Device::cuda);
  const auto network = models::make_network(config, 0, compute, Device::meta);
  models::NetworkBatch batch = pack.batch;
  batch.latents = Tensor(batch.latents.shape(), DType::f32, Device::meta);
  batch.text = Tensor(batch.text.shape(), DType::f32, Device::meta);
  batch.c_noise = Tensor();
  ops::Tape tape;
  const Tensor output = network->forward(tape, batch);
  tape.backward(output, Tensor(output.shape(), DType::f32, Device::meta));
  return account.work().flops / static_cast<double>(pack.tokens);
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Result {
  std::int64_t parameters = 0, tokens = 0;
  double best = 0, median = 0, cpu = 0;  // seconds a step
  double peak_tflops = 0, mfu = 0;       // of the GPU's data sheet; 0: not known
  double peak_bytes = 0;
};

// What is measured: made once, as the weights of a large model take longer than its steps.
struct Subject {
  Case c;
  test::Pack pack;
  models::Dit dit;
  test::Optimizer optimizer;

  explicit Subject(const Options& o)
      : c(find_case(o.model)),
        pack(test::put(test::make_pack(c.config, c.samples), o.device)),
        dit(c.config, 1, o.compute, o.device),
        optimizer(dit, o.moments, o.ema) {
    dit.set_recompute(o.recompute);
  }
};

Result measure(const Options& o, Subject& subject, GraphCache* graphs) {
  auto& [c, pack, dit, optimizer] = subject;
  Result result;
  for (const nn::Parameter* p : dit.parameters())
    result.parameters += p->elements();
  result.tokens = pack.tokens;
  std::vector<double> times;
  for (int i = 0; i < o.steps + o.warmup; ++i) {
    if (i == o.warmup && o.device == Device::cuda) reset_cuda_peak();
    const double start = seconds();
    const std::clock_t busy = std::clock();
    test::compute_gradients(dit, pack, graphs);
    optimizer.step();
    if (o.device == Device::cuda) synchronize_gpu();
    if (i < o.warmup) continue;
    times.push_back(seconds() - start);
    result.cpu += static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC / o.steps;
  }
  if (graphs != nullptr && graphs->replays() < o.steps)
    fail("of {} steps only {} ran as a graph", o.steps, graphs->replays());
  std::ranges::sort(times);
  result.best = times.front();
  result.median = times[times.size() / 2];
  const double rate = static_cast<double>(pack.tokens) / result.median;
  if (o.device == Device::cuda) result.peak_tflops = gpu_peak_tflops();
  if (result.peak_tflops > 0)
    result.mfu = 1e-12 * rate * flops_per_token(c.config, pack, o.compute) / result.peak_tflops;
  result.peak_bytes =
      static_cast<double>(o.device == Device::cuda ? cuda_memory().peak : cpu_memory().peak);
  return result;
}

// "elementwise", and what is special.
std::string kind(const Options& o, bool graphs) {
  return std::string(models::recompute_name(o.recompute)) + (graphs ? " graph" : "");
}

void print_json(const Options& o, const Result& r, bool graphs) {
  std::printf(
      "{\"bench\": \"train\", \"case\": \"%s %s\", \"impl\": \"vfm\", \"value\": %.6g, \"unit\": "
      "\"tokens/s\", \"ms\": %.6g, \"mfu\": %.4g, \"peak_tflops\": %.6g, \"memory_gib\": %.4g}\n",
      o.model.c_str(), kind(o, graphs).c_str(), static_cast<double>(r.tokens) / r.median,
      1e3 * r.median, r.mfu, r.peak_tflops, r.peak_bytes / (1 << 30));
}

void print_line(const Options& o, const Result& r, bool graphs) {
  std::printf(
      "vfm %s %s%s parameters %lld tokens %lld best %.2f ms median %.2f ms cpu %.2f ms tokens/s "
      "%.0f\n",
      o.model.c_str(), o.compute == DType::bf16 ? "bf16" : "f32", graphs ? " graph" : "",
      static_cast<long long>(r.parameters), static_cast<long long>(r.tokens), 1e3 * r.best,
      1e3 * r.median, 1e3 * r.cpu, static_cast<double>(r.tokens) / r.median);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool as_graph = false;
  try {
    options = parse(argc, argv);
    if (options.device == Device::cuda && !why_no_gpu().empty()) {
      std::fprintf(stderr, "no GPU: %s\n", why_no_gpu().c_str());
      return 77;
    }
    ops::set_gemm_cache(options.gemm_cache);
    Subject subject(options);
    const auto run = [&](GraphCache* graphs) {
      const Result result = measure(options, subject, graphs);
      (options.json ? print_json : print_line)(options, result, graphs != nullptr);
      std::fflush(stdout);
    };
    run(nullptr);
    if (options.graph && options.device == Device::cuda) {
      as_graph = true;
      GraphCache graphs(1);
      run(&graphs);
    }
    return 0;
  } catch (const std::exception& error) {
    std::string why = error.what();
    std::ranges::replace(why, '"', ' ');
    if (options.json)
      std::printf(
          "{\"bench\": \"train\", \"case\": \"%s %s\", \"impl\": \"vfm\", \"error\": \"%s\"}\n",
          options.model.c_str(), kind(options, as_graph).c_str(), why.c_str());
    std::fprintf(stderr, "train_step: %s\n", error.what());
    return options.json ? 0 : 1;
  }
}
