// The time of a training step (forward, loss gradient, backward, clipping norm, AdamW) of a DiT, on
// the CPU or a GPU. train_step.sh and scripts/gpu-report run it beside the same model in PyTorch.
//
//   train_step MODEL[,MODEL]... [f32|bf16 [STEPS]] [OPTION]...
//     MODEL: quick, 100m, or of 1.9, 4.1 and 7.2 billion parameters 2b, 4b and 7b, at 8,192 tokens,
//     or at 36,864 and 73,728: 2b-37k, 2b-74k and so on. Of several, the first whose memory,
//     counted on Device::meta, fits the GPU, and that can be run; a record says why others were not
//     --device cpu|cuda            (cpu)
//     --recompute none|elementwise|block_but_attention|block   (none); several with commas: the
//     first that fits
//     --moments f32|bf16           (f32; bf16 for the models of billions)
//     --ema 0|1                    keep the moving average too (1; 0 for the models of billions)
//     --warmup N                   steps before those that are timed (2)
//     --attention auto|own|cudnn   see ops/attention/attention_choice.h (auto)
//     --gemm-cache FILE            see ops::set_gemm_cache
//     --graph                      on a GPU: then once more, the same steps as CUDA graphs
//     --packs N                    then once more, steps of N packs, half as many (1: not)
//     --json                       print a record of gpu.h's form
// Prints a line for each: model, dtype, parameters, tokens, best and median milliseconds, processor
// time a step over all threads, tokens/s.
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
#include "models/gpu.h"
#include "ops/attention/attention_choice.h"
#include "ops/matmul/gemm.h"
#include "rehearsal.h"
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
  c.config.own<models::DitFields>().adaln_lora_dim = 32;
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

// 28 layers, AdaLN-LoRA of 256, which are NetworkConfig's defaults, of so many heads of 128. One
// sample, 512 text tokens.
Case billions(int heads, int frames, int size) {
  Case c;
  c.config.num_attention_heads = heads;
  c.samples = {{frames, size, size, 24.f, 0.1f, 512}};
  return c;
}

bool of_billions(const std::string& name) {
  return name.starts_with("2b") || name.starts_with("4b") || name.starts_with("7b");
}

Case find_case(const std::string& name) {
  if (name == "quick") return quick();
  if (name == "100m") return hundred();
  if (of_billions(name)) {
    const int heads = name[0] == '2' ? 16 : name[0] == '4' ? 24 : 32;
    const std::string length = name.substr(2);
    if (length.empty()) return billions(heads, 8, 64);      // 8,192 tokens
    if (length == "-37k") return billions(heads, 9, 128);   // 36,864
    if (length == "-74k") return billions(heads, 18, 128);  // 73,728
  }
  fail_usage(
      "there is no model '{}'; there are quick, 100m, and 2b, 4b, 7b, each also with -37k or -74k",
      name);
}

struct Options {
  std::vector<std::string> models{"quick"};
  std::vector<nn::Recompute> recomputes{nn::Recompute::none};
  std::string model, gemm_cache;  // model and recompute: chosen of these
  nn::Recompute recompute = nn::Recompute::none;
  DType compute = DType::f32, moments = DType::f32;
  Device device = Device::cpu;
  int steps = 10, warmup = 2, packs = 1;
  bool ema = true, graph = false, json = false;
};

nn::Recompute parse_recompute(const std::string& name) {
  using nn::Recompute;
  for (const Recompute one :
       {Recompute::none, Recompute::elementwise, Recompute::block_but_attention, Recompute::block})
    if (name == nn::recompute_name(one)) return one;
  fail_usage("no recompute '{}'; there are none, elementwise, block_but_attention and block", name);
}

DType parse_dtype(const std::string& name) {
  if (name != "f32" && name != "bf16") fail_usage("no type '{}'; there are f32 and bf16", name);
  return name == "bf16" ? DType::bf16 : DType::f32;
}

int parse_count(const std::string& text) {
  const int count = std::atoi(text.c_str());
  if (count < 1 || std::to_string(count) != text) fail_usage("'{}' is no number above zero", text);
  return count;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size(); at = list.find(',', at) + 1) {
    parts.push_back(list.substr(at, list.find(',', at) - at));
    if (list.find(',', at) == std::string::npos) break;
  }
  return parts;
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
  if (!plain.empty()) o.models = split(plain[0]);
  for (const std::string& model : o.models)
    find_case(model);
  o.model = o.models[0];
  if (plain.size() > 1) o.compute = parse_dtype(plain[1]);
  if (plain.size() > 2) o.steps = parse_count(plain[2]);
  if (plain.size() > 3) fail_usage("'{}' is one word too many", plain[3]);
  o.ema = !of_billions(o.model);
  o.moments = o.ema ? DType::f32 : DType::bf16;
  for (const auto& [name, value] : named) {
    if (name == "--device") {
      o.device = parse_device(value);
    } else if (name == "--recompute") {
      o.recomputes.clear();
      for (const std::string& one : split(value))
        o.recomputes.push_back(parse_recompute(one));
    } else if (name == "--moments") {
      o.moments = parse_dtype(value);
    } else if (name == "--ema") {
      o.ema = value == "1";
    } else if (name == "--warmup") {
      o.warmup = parse_count(value);
    } else if (name == "--packs") {
      o.packs = parse_count(value);
    } else if (name == "--attention") {
      ops::set_attention_body(ops::parse_attention_body(value));
    } else if (name == "--gemm-cache") {
      o.gemm_cache = value;
    } else {
      fail_usage("there is no option {}", name);
    }
  }
  o.recompute = o.recomputes[0];
  return o;
}

// Of a step of one pack, counted on Device::meta.
struct Counted {
  double bytes = 0;  // of GPU memory
  double flops = 0;  // without what is computed again
  double tokens = 0;
};

Counted count(const Options& o, nn::Recompute recompute) {
  const Case c = find_case(o.model);
  const MetaAccount account(Device::cuda);
  const auto network = models::make_network(c.config, 0, o.compute, Device::meta);
  network->set_recompute(recompute);
  const test::Optimizer optimizer(*network, o.moments, o.ema);
  const test::Pack pack = test::put(test::make_pack(c.config, c.samples), Device::meta);
  ops::Tape tape;
  const Tensor output = network->forward(tape, pack.batch);
  tape.backward(output, Tensor(output.shape(), DType::f32, Device::meta));
  const Work& work = account.work();
  return {static_cast<double>(account.memory().peak + work.workspace), work.flops,
          static_cast<double>(pack.tokens)};
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

Result measure(const Options& o, Subject& subject, GraphCache* graphs, int packs) {
  auto& [c, pack, dit, optimizer] = subject;
  Result result;
  for (const nn::Parameter* p : dit.parameters())
    result.parameters += p->elements();
  result.tokens = packs * pack.tokens;
  const int steps = packs == 1 ? o.steps : std::max(1, o.steps / 2);
  std::vector<double> times;
  for (int i = 0; i < steps + o.warmup; ++i) {
    if (i == o.warmup && o.device == Device::cuda) reset_cuda_peak();
    const double start = seconds();
    const std::clock_t busy = std::clock();
    for (int of_step = 0; of_step < packs; ++of_step)
      test::compute_gradients(dit, pack, graphs, of_step > 0);
    optimizer.step();
    if (o.device == Device::cuda) synchronize_gpu();
    if (i < o.warmup) continue;
    times.push_back(seconds() - start);
    result.cpu += static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC / steps;
  }
  if (graphs != nullptr && graphs->replays() < steps)
    fail("of {} steps only {} ran as a graph", steps, graphs->replays());
  std::ranges::sort(times);
  result.best = times.front();
  result.median = times[times.size() / 2];
  const double rate = static_cast<double>(result.tokens) / result.median;
  if (o.device == Device::cuda) result.peak_tflops = models::gpu_peak_tflops();
  if (result.peak_tflops > 0) {
    const Counted needed = count(o, nn::Recompute::none);
    result.mfu = 1e-12 * rate * needed.flops / needed.tokens / result.peak_tflops;
  }
  result.peak_bytes =
      static_cast<double>(o.device == Device::cuda ? cuda_memory().peak : cpu_memory().peak);
  return result;
}

// "7b elementwise graph, 8 packs": what is measured.
std::string title(const Options& o, bool graphs, int packs) {
  return o.model + " " + std::string(nn::recompute_name(o.recompute)) + (graphs ? " graph" : "") +
         (packs > 1 ? ", " + std::to_string(packs) + " packs" : "");
}

void print_error(const Options& o, const std::string& what, std::string why) {
  std::ranges::replace(why, '"', ' ');
  if (o.json)
    std::printf("{\"bench\": \"train\", \"case\": \"%s\", \"impl\": \"vfm\", \"error\": \"%s\"}\n",
                what.c_str(), why.c_str());
  else
    std::fprintf(stderr, "train_step: %s: %s\n", what.c_str(), why.c_str());
  std::fflush(stdout);
}

void print_json(const Options& o, const Result& r, bool graphs, int packs) {
  std::printf(
      "{\"bench\": \"train\", \"case\": \"%s\", \"impl\": \"vfm\", \"value\": %.6g, \"unit\": "
      "\"tokens/s\", \"ms\": %.6g, \"mfu\": %.4g, \"peak_tflops\": %.6g, \"memory_gib\": %.4g}\n",
      title(o, graphs, packs).c_str(), static_cast<double>(r.tokens) / r.median, 1e3 * r.median,
      r.mfu, r.peak_tflops, r.peak_bytes / (1 << 30));
}

void print_line(const Options& o, const Result& r, bool graphs, int packs) {
  std::printf(
      "vfm %s %s%s%s parameters %lld tokens %lld best %.2f ms median %.2f ms cpu %.2f ms tokens/s "
      "%.0f\n",
      o.model.c_str(), o.compute == DType::bf16 ? "bf16" : "f32", graphs ? " graph" : "",
      packs > 1 ? " packs" : "", static_cast<long long>(r.parameters),
      static_cast<long long>(r.tokens), 1e3 * r.best, 1e3 * r.median, 1e3 * r.cpu,
      static_cast<double>(r.tokens) / r.median);
}

// Whether the memory of the GPU has room for a step; says what it would need if not. Not counted
// are what the driver takes, and pieces that the allocator cannot use: what nearly fills the GPU
// may fail.
bool fits(const Options& o) {
  constexpr double kGib = 1 << 30;
  const double room =
      bench::rehearsal() ? bench::rehearsal_gib() : static_cast<double>(gpu_memory().free) / kGib;
  const double need = count(o, o.recompute).bytes / kGib + 1;
  if (need <= room) return true;
  print_error(o, title(o, false, 1),
              vfm::format("it would need {:.1f} GiB, there are {:.1f}", need, room));
  return false;
}

// Runs `measured` for each kind of step: as it is, as graphs, of many packs.
template <class Measured>
void for_each_kind(const Options& o, const Measured& measured) {
  const bool graphs = o.graph && o.device == Device::cuda;
  measured(false, 1);
  if (graphs) measured(true, 1);
  if (o.packs > 1) measured(graphs, o.packs);
}

// False if the plain kind could not be measured.
bool measure_all(const Options& o) {
  if (bench::rehearsal()) {
    for_each_kind(o, [&](bool graphs, int packs) {
      print_error(o, title(o, graphs, packs), bench::kRehearsed);
    });
    return true;
  }
  bool whole = true;
  const auto attempt = [&](bool graphs, int packs, const auto& act) {
    try {
      act();
    } catch (const std::exception& error) {
      print_error(o, title(o, graphs, packs), error.what());
      if (!graphs && packs == 1) whole = false;
    }
  };
  attempt(false, 1, [&] {
    Subject subject(o);
    for_each_kind(o, [&](bool graphs, int packs) {
      if (!whole) return;
      attempt(graphs, packs, [&] {
        GraphCache cache(2);  // the first pack of a step, and the others
        const Result result = measure(o, subject, graphs ? &cache : nullptr, packs);
        (o.json ? print_json : print_line)(o, result, graphs, packs);
        std::fflush(stdout);
      });
    });
  });
  return whole;
}

// The first model, and for it the first way to recompute, that can be measured.
int run(Options& o) {
  ops::set_gemm_cache(o.gemm_cache);
  const bool choice = o.models.size() * o.recomputes.size() > 1 && o.device == Device::cuda;
  for (const std::string& model : o.models)
    for (const nn::Recompute recompute : o.recomputes) {
      o.model = model, o.recompute = recompute;
      if ((!choice || fits(o)) && measure_all(o)) return 0;
      if (!choice) return o.json ? 0 : 1;
    }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options = parse(argc, argv);
    if (options.device == Device::cuda && !why_no_gpu().empty() && !bench::rehearsal()) {
      std::fprintf(stderr, "no GPU: %s\n", why_no_gpu().c_str());
      return 77;
    }
    return run(options);
  } catch (const Error& error) {
    std::fprintf(stderr, "train_step: %s\n", error.what());
    return error.kind() == ErrorKind::usage ? 2 : 1;
  }
}
