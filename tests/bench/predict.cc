// Predicted times, as Markdown tables: a training step and a clip of 7 billion parameters, and that
// clip on 1 to 32 GPUs. Nothing is measured, and no GPU is needed.
//
// Usage: predict RECIPE.yaml     (examples/recipes/7b.yaml)
// SPDX-License-Identifier: Apache-2.0
#include "models/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "generate/ranks/shared_pass.h"
#include "models/cosmos/cost.h"
#include "models/cosmos/tokenizer.h"
#include "models/dit/dit.h"
#include "models/dit/network_cost.h"
#include "models/t5/t5.h"
#include "train/cost/memory.h"
#include "train/cost/step_work.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/run.h"

using namespace vfm;
using models::Gpu;
using models::TimeLine;

namespace {

struct Step {
  train::StepWork work;
  train::MemoryNeed need;
  double tokens = 0, flops = 0;
};

/// Of packs of one sample of this size and 512 tokens of text.
Step step_of(const std::string& recipe_file, const std::vector<std::string>& changes,
             const train::SampleSizes& size = {{8, 64, 64}},
             nn::Recompute recompute = nn::Recompute::elementwise) {
  train::RunOptions options;
  options.recipe = train::make_recipe(train::read_settings(recipe_file, changes));
  options.synthetic = size;
  train::Recipe& recipe = options.recipe;
  const auto set = train::kind_of(recipe.model.type).open(options, "train");
  set->fit(recipe);
  const std::vector<data::Entry> pack = train::fullest_pack(recipe, *set);
  Step step{train::step_work(recipe, 1, recompute, Device::cuda, pack),
            train::memory_need(recipe, 1, recompute, Device::cuda, pack)};
  train::SampleFlops flops(recipe);
  for (const data::Entry& sample : pack) {
    step.tokens += static_cast<double>(token_count(sample, recipe.model)) * recipe.data.packs;
    step.flops += flops.of(sample) * recipe.data.packs;
  }
  return step;
}

double seconds_of(const std::vector<TimeLine>& lines) {
  return models::sum_of("", lines).seconds;
}

void print_lines(const char* what, const std::vector<TimeLine>& lines) {
  fmt::print("\n| {} | calls | TFLOP | GB | ms | % |\n|---|---:|---:|---:|---:|---:|\n", what);
  const double all = seconds_of(lines);
  for (const TimeLine& line : lines)
    fmt::print("| {} | {:.0f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", line.name, line.calls,
               line.flops / 1e12, line.bytes / 1e9, 1e3 * line.seconds, 100 * line.seconds / all);
  fmt::print("| **all** | | | | **{:.1f}** | |\n", 1e3 * all);
}

/// Where memory decides what is recomputed, and what goes into blocks may wait on the host.
void long_packs(const std::string& recipe, const Gpu& gpu) {
  constexpr double kGiB = 1 << 30;
  fmt::print(
      "\n| {}, 8 packs of 73,728 tokens, recompute | memory, of {:.1f} GiB | pinned, GiB | copies, "
      "s "
      "| of these not hidden, s | step, s | tokens/s | MFU, % |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|\n",
      gpu.title, gpu.usable() / kGiB);
  for (const bool offload : {false, true})
    for (const nn::Recompute recompute :
         {nn::Recompute::block, nn::Recompute::block_but_attention}) {
      const std::vector<std::string> changes{"ema.mode=off", "data.tokens=73728",
                                             fmt::format("model.offload={}", offload),
                                             "model.recompute=auto"};
      const Step step = step_of(recipe, changes, {{32, 96, 96}}, recompute);
      const models::CopyTime copies = models::copy_time(gpu, step.work.copies);
      const double seconds =
          seconds_of(models::predict(gpu, step.work.packs, step.work.optimizer)) + copies.exposed;
      fmt::print("| {}{} | {:.1f} | {:.1f} | {:.2f} | {:.3f} | {:.3f} | {:.0f} | {:.1f} |\n",
                 nn::recompute_name(recompute), offload ? ", offload" : "",
                 step.need.total() / kGiB, step.need.pinned / kGiB, copies.seconds, copies.exposed,
                 seconds, step.tokens / seconds, 100 * step.flops / seconds / gpu.peak);
    }
}

void training(const std::string& recipe) {
  const Step eight = step_of(recipe, {"ema.mode=off"});
  const Step one = step_of(recipe, {"ema.mode=off", "data.packs=1"}), shipped = step_of(recipe, {});
  const Gpu& h200 = models::find_gpu("h200");
  print_lines("H200, eight packs of 8,192 tokens a step",
              models::predict(h200, eight.work.packs, eight.work.optimizer));
  print_lines("H200, one pack of 8,192 tokens a step",
              models::predict(h200, one.work.packs, one.work.optimizer));
  fmt::print(
      "\n| GPU, products in TFLOP/s | packs | step, s | tokens/s | MFU, % |\n"
      "|---|---|---:|---:|---:|\n");
  const auto row = [](const Gpu& gpu, const char* packs, const Step& step) {
    const double seconds = seconds_of(models::predict(gpu, step.work.packs, step.work.optimizer));
    fmt::print("| {}, {:.0f} | {} | {:.3f} | {:.0f} | {:.1f} |\n", gpu.title, gpu.products / 1e12,
               packs, seconds, step.tokens / seconds, 100 * step.flops / seconds / gpu.peak);
  };
  for (const double products : {650e12, 680e12, 720e12}) {
    Gpu gpu = h200;
    gpu.products = products;
    row(gpu, "8", eight);
    row(gpu, "1", one);
  }
  row(h200, "8, with the recipe's average on the host", shipped);
  for (const char* name : {"h100", "b200"})
    row(models::find_gpu(name), "8", eight);
  long_packs(recipe, h200);
}

/// Text to world, 121 frames of 704x1280, with guidance: diffusers' pipeline.
models::NetworkSample sample_of_clip() {
  models::NetworkSample sample{16, 88, 160, 24};
  sample.text_tokens = 512;
  return sample;
}

models::T5Config text_encoder() {
  models::T5Config t5;  // of 11 billion parameters
  t5.vocabulary = 32128, t5.width = 1024, t5.head_dim = 128, t5.feed_forward = 65536;
  t5.layers = 24, t5.heads = 128, t5.buckets = 32, t5.max_distance = 128, t5.epsilon = 1e-6f;
  return t5;
}

/// 35 steps of it.
void clip() {
  const Gpu& gpu = models::find_gpu("h200");
  const models::NetworkConfig config;
  const models::NetworkSample sample = sample_of_clip();
  models::PartCost network =
      models::forward_cost(config, {}, {sample, sample}, DType::bf16, {}, Device::cuda);
  const std::vector<TimeLine> pass = models::predict(gpu, network.calls);
  print_lines("H200, one of 35 passes of two samples of 56,320 tokens", pass);
  const models::PartCost low = models::forward_cost(config, {}, {sample, sample}, DType::bf16,
                                                    {.linear = true}, Device::cuda);
  print_lines("H200, the same pass with --fp8 linear", models::predict(gpu, low.calls));

  models::PartCost text =
      models::t5_cost(text_encoder(), 512, DType::bf16, DType::bf16, Device::cuda);
  text.repeat(2);
  std::vector<TimeLine> parts{models::sum_of("network, 35 passes", pass)};
  parts[0].calls *= 35, parts[0].flops *= 35, parts[0].bytes *= 35, parts[0].seconds *= 35;
  parts.push_back(models::sum_of("text encoder, two texts", models::predict(gpu, text.calls)));
  for (const DType compute : {DType::f32, DType::bf16}) {
    const models::CosmosConfig cosmos;
    const auto work = models::CosmosWork::decode;
    const std::int64_t at_once =
        models::cosmos_split(cosmos, work, 16, 88, 160, {}, Device::cuda, compute).step;
    const models::PartCost tokenizer =
        models::cosmos_cost(cosmos, work, 16, 88, 160, at_once, Device::cuda, compute);
    if (compute == DType::f32) {  // as such a folder asks for
      parts.push_back(models::sum_of("tokenizer, f32", models::predict(gpu, tokenizer.calls)));
      print_lines("H200, the whole clip", parts);
    } else {
      fmt::print("\nThe tokenizer in bf16: {:.2f} s.\n",
                 seconds_of(models::predict(gpu, tokenizer.calls)));
    }
  }
}

/// One pass of two samples on ranks that share it.
struct RankPass {
  double seconds = 0, exchanged = 0, memory = 0;
};
RankPass pass_on_ranks(const Gpu& gpu, const dist::Layout& parallel, models::Fp8Parts fp8) {
  const models::NetworkConfig config;
  const generate::SharedPass shared = generate::shared_pass(
      {config, {}, sample_of_clip(), 2, DType::bf16, fp8, Device::cuda}, parallel, &gpu);
  RankPass pass;
  const std::vector<TimeLine> computed = models::predict(gpu, shared.cost.calls);
  pass.exchanged = seconds_of(shared.exchanges);
  pass.seconds = seconds_of(computed) + pass.exchanged;
  pass.memory = shared.cost.weight_bytes + shared.cost.held_bytes;
  return pass;
}

/// How ranks share it, of those that the table has.
struct RankRow {
  int ranks, cfg, tp;
  const char* kind;  ///< of cp
  bool shard = false;
};

void print_row(const Gpu& gpu, const RankRow& row, double alone, double rest) {
  dist::Layout parallel;
  parallel.cfg = row.cfg, parallel.tp = row.tp, parallel.cp = row.ranks / row.cfg / row.tp;
  parallel.cp_kind = nn::parse_cp_kind(row.kind);
  if (row.shard) parallel.shard = dist::ShardKind::full;
  parallel = nn::settled_cp(parallel, models::NetworkConfig().heads(),
                            std::min(row.ranks, gpu.per_node), 56320);
  const RankPass pass = pass_on_ranks(gpu, parallel, {});
  const auto gain = [&](models::Fp8Parts fp8) {
    return 100 * (pass.seconds / pass_on_ranks(gpu, parallel, fp8).seconds - 1);
  };
  const std::string name = row.ranks == 1 ? "one" : generate::clip_layout_name(parallel);
  fmt::print(
      "| {} | {}{} | {:.3f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:+.0f} | {:+.0f} | {:+.0f} |\n",
      row.ranks, name, row.shard ? " --shard" : "", pass.seconds,
      100 * pass.exchanged / pass.seconds, 100 * alone / pass.seconds / row.ranks,
      35 * pass.seconds + rest, pass.memory / (1 << 30), gain({.linear = true}),
      gain({.attention = true}), gain({.linear = true, .attention = true}));
}

/// The clip on 1 to 32 GPUs, eight a node, by how they share it.
void clips_on_ranks() {
  const Gpu& gpu = models::find_gpu("h100");
  models::PartCost text =
      models::t5_cost(text_encoder(), 512, DType::bf16, DType::bf16, Device::cuda);
  text.repeat(2);
  const models::CosmosConfig cosmos;
  const auto work = models::CosmosWork::decode;
  const std::int64_t at_once =
      models::cosmos_split(cosmos, work, 16, 88, 160, {}, Device::cuda, DType::bf16).step;
  const models::PartCost tokenizer =
      models::cosmos_cost(cosmos, work, 16, 88, 160, at_once, Device::cuda, DType::bf16);
  const double decoding = seconds_of(models::predict(gpu, tokenizer.calls)),
               encoding = seconds_of(models::predict(gpu, text.calls));
  fmt::print(
      "\n| {}s | layout | pass, s | of it exchanged, % | scaling, % | clip, s | network, GiB a GPU "
      "| FP8 linear, gain, % | FP8 attention, gain, % | both, % "
      "|\n|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      gpu.title);
  const char *heads = "all_to_all", *ring = "all_to_all+ring";
  const RankRow rows[] = {
      {1, 1, 1, heads},   {2, 1, 1, heads},       {2, 1, 2, heads},   {2, 2, 1, heads},
      {4, 1, 1, heads},   {4, 1, 4, heads},       {4, 2, 1, heads},   {4, 2, 2, heads},
      {8, 1, 1, heads},   {8, 1, 8, heads},       {8, 1, 2, heads},   {8, 2, 1, heads},
      {8, 2, 2, heads},   {8, 2, 1, heads, true}, {16, 1, 1, heads},  {16, 1, 1, ring},
      {16, 1, 16, heads}, {16, 2, 1, heads},      {16, 2, 8, heads},  {16, 2, 2, heads},
      {32, 1, 1, heads},  {32, 1, 1, ring},       {32, 1, 32, heads}, {32, 2, 1, heads},
      {32, 2, 1, ring},   {32, 2, 8, heads},      {32, 2, 2, heads},  {32, 2, 1, heads, true}};
  const double alone = pass_on_ranks(gpu, {}, {}).seconds;
  for (const RankRow& row : rows)
    print_row(gpu, row, alone,
              encoding + decoding * static_cast<double>((16 + row.ranks - 1) / row.ranks) / 16);
  fmt::print("\nThe text encoder on one GPU: {:.2f} s; the tokenizer in bf16 on one: {:.2f} s.\n",
             encoding, decoding);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) fail_usage("usage: predict RECIPE.yaml");
    training(argv[1]);
    clip();
    clips_on_ranks();
  } catch (const Error& error) {
    fmt::print(stderr, "predict: {}\n", error.what());
    return 1;
  }
}
