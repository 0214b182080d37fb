// The diffusion networks on the GPU against the CPU: output, loss and every gradient, packs of
// images and videos, text of several lengths; and training, step by step. Built twice: with the
// library for a real GPU, and for the emulation, where only the small models run.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "kernel_test.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "models/dit/lora.h"
#include "models/dit/network.h"
#include "models/moviegen/moviegen.h"
#include "models/wan/wan.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_choice.h"
#include "ops/attention/attention_fp8.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "ops/matmul/quantize.h"
#include "tensor/device.h"
#include "tensors.h"
#include "training.h"

using namespace vfm;
using vfm::test::apart;
using vfm::test::Checker;
using vfm::test::Pack;

namespace {

models::NetworkConfig tiny() {
  models::NetworkConfig config;
  config.in_channels = config.out_channels = 4;
  config.num_attention_heads = 2;
  config.attention_head_dim = 16;
  config.num_layers = 2;
  config.text_embed_dim = 8;
  config.own<models::DitFields>().adaln_lora_dim = 4;
  config.max_size = {4, 8, 8};
  config.patch_size = {1, 2, 2};
  return config;
}

// The model of examples/recipes/quickstart.yaml.
models::NetworkConfig quickstart() {
  models::NetworkConfig config;
  config.in_channels = config.out_channels = 24;
  config.num_attention_heads = 6;
  config.attention_head_dim = 32;
  config.num_layers = 6;
  config.text_embed_dim = 64;
  config.own<models::DitFields>().adaln_lora_dim = 32;
  config.max_size = {16, 64, 64};
  config.concat_padding_mask = false;
  return config;
}

// That of examples/recipes/100m.yaml.
models::NetworkConfig hundred_million() {
  models::NetworkConfig config;
  config.num_attention_heads = 12;
  config.attention_head_dim = 64;
  config.num_layers = 8;
  config.own<models::DitFields>().adaln_lora_dim = 256;
  return config;
}

// A video, an image and another video.
std::vector<models::NetworkSample> few_tokens() {
  return {{2, 4, 6, 8.f, 0.3f, 3}, {1, 8, 4, 0.f, -0.5f, 1}, {3, 2, 2, 12.f, 1.f, 5}};
}
std::vector<models::NetworkSample> hundreds_of_tokens() {
  return {{4, 16, 24, 24.f, 0.3f, 40}, {1, 20, 20, 0.f, -0.5f, 1}, {3, 12, 10, 12.f, 1.f, 128}};
}

// Weights that begin at zero would hide what stands behind them: all are made anew, or only those
// that are zero.
void stir(const nn::ParameterList& parameters, bool only_zeros, std::uint64_t key = 10) {
  for (nn::Parameter* parameter : parameters) {
    ++key;
    const Tensor values = parameter->read().to(Device::cpu);
    const bool zero = std::ranges::all_of(values.floats(), [](float v) { return v == 0; });
    if (only_zeros && !zero) continue;
    const Tensor fresh = noise_tensor(values.shape(), key);
    for (float& v : fresh.floats())
      v *= only_zeros ? 0.02f : 0.2f;
    parameter->write(fresh);
  }
}

void stir(const models::DiffusionNetwork& network, bool only_zeros) {
  stir(network.parameters(), only_zeros);
  stir(network.adapters(), only_zeros);
}

// With a rank, one whose weights are not trained, and adapters on all matrices that are.
std::unique_ptr<models::DiffusionNetwork> make(const models::NetworkConfig& config, DType compute,
                                               Device device, int rank) {
  auto network = models::make_network(config, 1, compute, device, rank == 0);
  models::LoraOptions options{rank, 1, {}};
  for (const models::NetworkMatrix& matrix : models::network_matrices(config))
    options.targets.push_back(matrix.module);
  if (rank > 0) network->attach(models::lora_shapes(config, options), true);
  return network;
}

struct Comparison {
  std::string name;
  models::NetworkConfig config;
  std::vector<models::NetworkSample> samples;
  DType compute = DType::f32;
  nn::Recompute recompute = nn::Recompute::none;
  bool only_zeros = false;
  double tolerance = 0;
  int rank = 0;  ///< of adapters
};

void compare(Checker& checker, const Comparison& c) {
  const auto cpu = make(c.config, c.compute, Device::cpu, c.rank);
  const auto gpu = make(c.config, c.compute, Device::cuda, c.rank);
  const Pack pack = test::make_pack(c.config, c.samples);
  std::vector<test::Passed> passed;
  for (models::DiffusionNetwork* network : {cpu.get(), gpu.get()}) {
    stir(*network, c.only_zeros);
    network->set_recompute(c.recompute);
    passed.push_back(test::compute_gradients(*network, test::put(pack, network->device())));
    checker.check(c.name + ": the output's device",
                  passed.back().output.device() == network->device());
  }
  checker.apart(c.name + ": output", apart(passed[1].output, passed[0].output), c.tolerance);
  checker.apart(c.name + ": loss", std::abs(passed[1].loss / passed[0].loss - 1), c.tolerance);
  const nn::ParameterList &there = test::trained(*gpu), &here = test::trained(*cpu);
  for (std::size_t i = 0; i < here.size(); ++i)
    checker.apart(c.name + ": gradient of " + here[i]->name, apart(there[i]->grad, here[i]->grad),
                  c.tolerance);
}

struct Course {
  std::string name;
  models::NetworkConfig config;
  std::vector<models::NetworkSample> samples;
  DType compute = DType::f32, moments = DType::f32;
  int steps = 0;
  double tolerance = 0;   ///< of each step's loss, as a part of the CPU's
  double ends_below = 0;  ///< the last loss, as a part of the first
};

// New data every step, so that nothing can be learnt by heart: the target is the input and noise,
// whose variance of 1/4 stays in the loss.
Pack lesson(const Course& c, int step) {
  Pack pack = test::make_pack(c.config, c.samples, static_cast<std::uint64_t>(step) + 1);
  for (std::size_t i = 0; i < pack.target.floats().size(); ++i)
    pack.target.floats()[i] = pack.batch.latents.floats()[i] + 0.5f * pack.target.floats()[i];
  return pack;
}

// Trains both from one start.
void train(Checker& checker, const Course& c) {
  std::vector<double> curves[2];
  for (const Device device : {Device::cpu, Device::cuda}) {
    const auto network = models::make_network(c.config, 1, c.compute, device);
    test::Optimizer optimizer(*network, c.moments, true);
    for (int i = 0; i < c.steps; ++i) {
      const Pack pack = test::put(lesson(c, i), device);
      curves[device == Device::cuda].push_back(test::compute_gradients(*network, pack).loss);
      optimizer.step();
    }
  }
  double worst = 0;
  for (std::size_t i = 0; i < curves[0].size(); ++i) {
    const double distance = std::abs(curves[1][i] / curves[0][i] - 1);
    worst = std::isfinite(distance) ? std::max(worst, distance) : 1e30;
  }
  checker.apart(c.name + ": loss curves", worst, c.tolerance);
  checker.check(c.name + ": the loss falls from " + std::to_string(curves[1].front()) + " to " +
                    std::to_string(curves[1].back()),
                curves[1].back() < c.ends_below * curves[1].front());
}

// A build without cuDNN, as the emulation is, says so to who asks for it by name.
void check_no_cudnn(Checker& checker) {
  ops::Tape silent(false);
  const Tensor qkv = noise_tensor({5, 192}, 1).to(DType::bf16).to(Device::cuda);
  ops::set_attention_body(ops::AttentionBody::cudnn);
  std::string why;
  try {
    ops::self_attention(silent, qkv, {{5}, {5}, 1, 1, 64, false});
  } catch (const std::exception& error) {
    why = error.what();
  }
  checker.check("no cuDNN: " + why, why.find("vfm was built without cuDNN") != std::string::npos);
  ops::set_attention_body(ops::AttentionBody::automatic);
  checker.check("attention without cuDNN",
                ops::self_attention(silent, qkv, {{5}, {5}, 1, 1, 64, false}).size(1) == 64);
}

// Where cuDNN is there, it is used: for packs of ragged samples, 3 and 4 of them, and whatever else
// a graph of its depends on. In a real run that it gives something else is a warning, and slow.
void check_cudnn(Checker& checker) {
  if (const std::string why = ops::why_no_cudnn(); !why.empty()) {
    std::printf("cuDNN is not tested: %s\n", why.c_str());
    return;
  }
  static std::string warned;
  set_log_sink([](LogLevel, std::string_view message) { warned += message; }, LogLevel::warning);
  for (const int dim : {64, 128})
    for (const int key_heads : {4, 2})
      for (const bool causal : {false, true})
        for (const std::vector<std::int64_t>& lengths :
             {std::vector<std::int64_t>{200, 7, 130}, {64, 1, 300, 129}}) {
          const std::int64_t rows =
              std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
          const Tensor qkv = noise_tensor({rows, (4 + 2 * key_heads) * dim}, 1).to(DType::bf16);
          const Tensor dout = noise_tensor({rows, 4 * dim}, 2).to(DType::bf16).to(Device::cuda);
          ops::Tape tape;
          const Tensor there = qkv.to(Device::cuda);
          tape.watch(there, Tensor::zeros(qkv.shape(), DType::f32, Device::cuda));
          warned.clear();
          tape.backward(
              ops::self_attention(tape, there, {lengths, lengths, 4, key_heads, dim, causal}),
              dout);
          checker.check("cuDNN's attention: " + warned, warned.empty());
        }
  set_log_sink(nullptr, LogLevel::warning);
}

// Whether this GPU has FP8; one without says so at the first op.
bool has_fp8() {
  try {
    ops::quantize(noise_tensor({16}, 1).to(Device::cuda));
    return true;
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("FP8 needs a GPU") == std::string_view::npos) throw;
    std::printf("FP8 is not tested: %s\n", error.what());
    return false;
  }
}

// The root mean square of the difference, as a part of the reference's.
double mean_apart(const Tensor& a, const Tensor& reference) {
  const Tensor x = a.to(Device::cpu), y = reference.to(Device::cpu);
  double difference = 0, sum = 0;
  for (std::size_t i = 0; i < y.floats().size(); ++i) {
    difference += std::pow(double{x.floats()[i]} - y.floats()[i], 2);
    sum += std::pow(y.floats()[i], 2);
  }
  return std::sqrt(difference / sum);
}

// What FP8 changes on the CPU, as a part of the output, and how far the GPU's FP8 is from the
// CPU's, as a part of that change. `seed`: of weights and batch.
std::pair<double, double> fp8_apart(std::uint64_t seed) {
  models::NetworkConfig config = tiny();
  config.num_attention_heads = 1;
  config.attention_head_dim = 64;
  config.text_embed_dim = 16;
  config.num_layers = 1;
  const Pack pack = test::make_pack(config, few_tokens(), seed);
  std::vector<Tensor> plain, low;
  for (const Device device : {Device::cpu, Device::cuda}) {
    const auto network = models::make_network(config, 1, DType::bf16, device);
    stir(network->parameters(), false, 10 + 1000 * seed);
    ops::Tape tape(false);
    const models::NetworkBatch batch = test::put(pack, device).batch;
    plain.push_back(network->forward(tape, batch));
    // Without cuDNN attention would be in bf16 on the GPU, and in FP8 on the CPU.
    network->set_inference_fp8(
        {.linear = true, .attention = ops::why_no_fp8_attention(Device::cuda).empty()});
    low.push_back(network->forward(tape, batch));
  }
  const double change = mean_apart(low[0], plain[0]);
  return {change, mean_apart(low[1], low[0]) / change};
}

// Both add in another order, so numbers of bf16 fall to another side of a rounding here and there.
// Where that is an ordinary number, a number of 8 bits may be another: a few of all. Where it is
// the largest of a matrix, its scale is another by up to 2^-7, and all of the matrix is rounded
// anew: then two errors of the size of the change are compared that have little to do with each
// other, and may be the root of two of it apart. (Of the first of these networks that is so.)
// A GPU that leaves FP8 out, or rounds otherwise, is a whole change away with every network.
void check_fp8(Checker& checker) {
  if (!has_fp8()) return;
  std::vector<double> all;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto [change, apart_by] = fp8_apart(seed);
    checker.check("FP8 changes the output: " + std::to_string(change), change > 1e-2);
    checker.apart("FP8, seed " + std::to_string(seed), apart_by, std::sqrt(2.));
    all.push_back(apart_by);
  }
  std::ranges::sort(all);
  checker.apart("FP8, of most networks", all[all.size() / 2], 1. / 3);
}

// What ranks do with their parts in FP8: the same bits on both.
void check_fp8_parts(Checker& checker) {
  if (!has_fp8()) return;
  const Tensor x = noise_tensor({14, 256}, 7).to(DType::bf16);
  const ops::HeadKinds kinds{2, 1, 1, 64};
  ops::AttentionPack pack;
  pack.heads = 2, pack.key_heads = 1, pack.head_dim = 64;
  pack.query_lengths = pack.key_lengths = {9, 0, 5};
  std::vector<std::vector<Tensor>> made;
  std::vector<Tensor> attended;
  for (const Device device : {Device::cpu, Device::cuda}) {
    const Tensor here = x.to(device), largest = ops::largest_magnitude(here),
                 heads = ops::largest_of_kinds(here, kinds),
                 codes = ops::quantize_heads(here, kinds, heads);
    const ops::Quantized part = ops::quantize_part(here.rows(0, 5), largest);
    std::vector<Tensor>& all = made.emplace_back();
    for (const Tensor& one :
         {largest, heads, codes, ops::restore_heads(codes, kinds, heads), part.values, part.scale})
      all.push_back(one.to(Device::cpu));
    attended.push_back(
        ops::self_attention_codes(codes, heads, pack).to(Device::cpu).to(DType::f32));
  }
  // By cuDNN; without it in bf16, where neither weights nor results are rounded to FP8.
  const double apart_by = apart(attended[1], attended[0]);
  checker.check("attention in FP8: " + std::to_string(apart_by), apart_by < 0.06);
  for (std::size_t i = 0; i < made[0].size(); ++i)
    checker.check("parts in FP8: " + std::to_string(i),
                  std::memcmp(made[0][i].raw(), made[1][i].raw(), made[0][i].bytes()) == 0);
}

// The tiny one of another type.
models::NetworkConfig tiny_of(const models::Architecture& type) {
  models::NetworkConfig config = tiny();
  config.architecture = &type;
  if (&type == &models::kMovieGen) config.own<models::MovieGenFields>().num_key_value_heads = 1;
  if (&type == &models::kWan) {
    config.own<models::WanFields>() = {.ffn_dim = 64, .freq_dim = 16};
    config.concat_padding_mask = false;
  }
  return config;
}

// The other networks, and all of them with adapters.
void small_other_networks(Checker& checker) {
  using models::Architecture, nn::Recompute, models::kDit;
  for (const Architecture* type : {&kDit, &models::kMovieGen, &models::kStdit, &models::kWan})
    for (const int rank : {0, 3}) {
      if (type == &kDit && rank == 0) continue;  // that has more tests
      Comparison c{std::string(type->name), tiny_of(*type), few_tokens()};
      c.name += rank > 0 ? " with adapters" : "";
      c.rank = rank;
      c.tolerance = 2e-5;
      compare(checker, c);
      c.name += " bf16", c.compute = DType::bf16, c.recompute = Recompute::elementwise;
      c.config.num_layers = 1;
      c.tolerance = 4e-2;
      compare(checker, c);
    }
}

// Of what a graph was made from nothing stays in it: batches of the same shape, each with other
// numbers, pass as they do plainly. In f32 to the last bit. In bf16 attention is by cuDNN where it
// is there, which may add up in any order; and a pass is recorded only when that was checked.
void check_graphs(Checker& checker, DType compute) {
  for (const auto& [type, rank] : {std::pair{&models::kDit, 0},
                                   {&models::kMovieGen, 0},
                                   {&models::kStdit, 0},
                                   {&models::kWan, 0},
                                   {&models::kDit, 2}}) {
    models::NetworkConfig config = tiny_of(*type);
    config.num_layers = 1;
    if (compute == DType::bf16) config.num_attention_heads = 1, config.attention_head_dim = 64;
    const auto network = make(config, compute, Device::cuda, rank);
    stir(*network, rank == 0);
    const std::string name = std::string(type->name) + (rank > 0 ? " with adapters" : "") +
                             (compute == DType::f32 ? " f32" : " bf16");
    GraphCache graphs(1);
    for (std::uint64_t i = 0; i < 3; ++i) {
      std::vector<models::NetworkSample> samples = few_tokens();
      for (models::NetworkSample& sample : samples)
        sample.c_noise += 0.3f * static_cast<float>(i);
      const Pack pack = test::put(test::make_pack(config, samples, i), Device::cuda);
      const auto passed = [&](GraphCache* by) {
        std::vector<Tensor> all = {test::compute_gradients(*network, pack, by).output.clone()};
        for (const nn::Parameter* parameter : test::trained(*network))
          all.push_back(parameter->grad.clone());
        return all;
      };
      const std::vector<Tensor> plain = passed(nullptr), repeated = passed(&graphs);
      double worst = 0;
      for (std::size_t j = 0; j < plain.size(); ++j)
        worst = std::max(worst, apart(repeated[j], plain[j]));
      if (compute == DType::f32)
        checker.check(name + " as a graph", worst == 0);
      else
        checker.apart(name + " as a graph", worst, 4e-2);
    }
    // cuDNN may want to be checked once more, by a pass that is done plainly.
    checker.check(name + " was a graph",
                  compute == DType::f32 ? graphs.replays() == 2 : graphs.replays() > 0);
  }
}

// What goes into blocks waits in the host's memory, or does not: the same bits in f32, with less
// memory of the GPU. On a real GPU copies and blocks take time beside each other.
void check_offload(Checker& checker) {
  models::NetworkConfig config = test::small() ? tiny() : hundred_million();
  config.num_layers = 8;
  const auto samples = test::small() ? few_tokens() : hundreds_of_tokens();
  const auto network = models::make_network(config, 1, DType::f32, Device::cuda);
  stir(*network, true);
  const Pack pack = test::put(test::make_pack(config, samples), Device::cuda);
  for (const auto how : {nn::Recompute::block, nn::Recompute::block_but_attention}) {
    const std::string name = "offload, " + std::string(nn::recompute_name(how));
    std::vector<Tensor> expected;
    double taken[2] = {};
    for (int i = 0; i < 5; ++i) {
      const bool offload = i > 1;  // after one more, in which is made what is made once
      network->set_recompute(how, offload);
      nn::zero_gradients(network->parameters());
      const double before = static_cast<double>(cuda_memory().current);
      reset_cuda_peak();
      std::vector<Tensor> all = {test::compute_gradients(*network, pack).output};
      taken[offload] = static_cast<double>(cuda_memory().peak) - before;
      all[0] = all[0].to(Device::cpu);
      for (const nn::Parameter* parameter : network->parameters())
        all.push_back(parameter->grad.to(Device::cpu));
      if (!offload) expected = all;
      double worst = 0;
      for (std::size_t j = 0; j < all.size(); ++j)
        worst = std::max(worst, apart(all[j], expected[j]));
      checker.check(name + ": the same bits", worst == 0);
    }
    checker.check(
        name + ": memory, " + std::to_string(taken[1]) + " of " + std::to_string(taken[0]),
        taken[1] < taken[0]);
  }
}

void small_models(Checker& checker) {
  using nn::Recompute;
  Comparison c{"tiny f32", tiny(), few_tokens(), DType::f32, Recompute::none, false, 2e-5};
  compare(checker, c);
  c.name = "tiny f32 recomputed", c.recompute = Recompute::block;
  compare(checker, c);
  c.name = "tiny bf16", c.recompute = Recompute::elementwise, c.compute = DType::bf16;
  c.tolerance = 4e-2;  // its rounding, through two blocks
  compare(checker, c);
  c.name = "bf16 with a head dimension that tensor cores take";
  c.config.num_attention_heads = 1;
  c.config.attention_head_dim = 64;
  c.config.num_layers = 1;
  compare(checker, c);
}

// The next two: some seconds on a real GPU, hours in the emulation.
void large_models(Checker& checker) {
  using nn::Recompute;
  Comparison c{"100 M f32", hundred_million(), hundreds_of_tokens(),
               DType::f32,  Recompute::none,   true,
               2e-4};
  compare(checker, c);
  c.compute = DType::bf16, c.recompute = Recompute::elementwise;
  c.tolerance = 4e-2;
  for (const auto body : {ops::AttentionBody::own, ops::AttentionBody::automatic}) {
    c.name = body == ops::AttentionBody::own ? "100 M bf16, own attention" : "100 M bf16";
    ops::set_attention_body(body);
    compare(checker, c);
  }
}

void two_hundred_steps(Checker& checker) {
  std::vector<models::NetworkSample> clips;
  for (int i = 0; i < 8; ++i)
    clips.push_back({3, 8, 8, 8.f, 0.05f * static_cast<float>(i), 5});
  Course course{"200 steps f32", quickstart(), clips, DType::f32, DType::f32, 200, 2e-3, 0.2};
  train(checker, course);
  course.name = "200 steps bf16", course.compute = course.moments = DType::bf16;
  course.tolerance = 3e-2;
  train(checker, course);
}

void tests(Checker& checker) {
  checker.part(small_models);
  checker.part(small_other_networks);
  for (const DType compute : {DType::f32, DType::bf16})
    checker.part(check_graphs, compute);
  checker.part(check_fp8);
  checker.part(check_fp8_parts);
  checker.part(check_offload);
  if (test::kEmulated) checker.part(check_no_cudnn);
  checker.part(
      train, Course{"4 steps, tiny f32", tiny(), few_tokens(), DType::f32, DType::f32, 4, 1e-4, 1});
  if (test::small()) return;
  checker.part(check_cudnn);
  checker.part(large_models);
  checker.part(two_hundred_steps);
}

}  // namespace

int main() {
  return vfm::test::run(tests);
}
