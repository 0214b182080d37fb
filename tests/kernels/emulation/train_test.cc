// Training on the GPU, as the emulation runs it, against the CPU: steps, the average on the host,
// validation, and checkpoints that go from one device to the other.
// SPDX-License-Identifier: Apache-2.0
#include "train_test.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "io/file.h"
#include "models/folder/checkpoint_folder.h"
#include "ops/optim/sums.h"
#include "streams.h"
#include "support/temporary_folder.h"
#include "tensor/device.h"
#include "tensor/download.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_saver.h"
#include "train/recipe/recipe_file.h"
#include "train/step/trainer.h"
#include "train/step/validation.h"
#include "train/tokenizer/objective.h"

using namespace vfm;
using namespace vfm::train;

TEST_CASE("steps on the GPU lose what those on the CPU lose") {
  const std::string dtype = GENERATE("f32", "bf16");
  const auto set = made_up();
  const Dataset& data = *set;
  Recipe recipe = small();
  recipe.model.compute = recipe.optimizer.moments = dtype;
  data.fit(recipe);
  const auto world = dist::self_world();
  Side cpu(recipe, data, *world, Device::cpu), gpu(recipe, data, *world, Device::cuda);
  const double tolerance = dtype == "f32" ? 1e-5 : 1e-2;
  for (int i = 0; i < 4; ++i) {
    const StepResult a = cpu.trainer.train_step(), b = gpu.trainer.train_step();
    CHECK(b.loss.mean() == Approx(a.loss.mean()).epsilon(tolerance));
    CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(10 * tolerance));
    CHECK(b.loss.elements() == a.loss.elements());
  }
  Validation validation(recipe, data, "train");
  const double here =
      validation.run(cpu.trainer.objective(), cpu.trainer.parallel())["val_loss"].get<double>();
  const double there =
      validation.run(gpu.trainer.objective(), gpu.trainer.parallel())["val_loss"].get<double>();
  CHECK(there == Approx(here).epsilon(tolerance));
}

TEST_CASE("frames that are given cost nothing on the GPU either") {
  const auto set = made_up();
  const Dataset& data = *set;
  Recipe recipe = small("diffusion: {condition_frames: [0, 1], text_padding: 3}");
  data.fit(recipe);
  const auto world = dist::self_world();
  Side cpu(recipe, data, *world, Device::cpu), gpu(recipe, data, *world, Device::cuda);
  for (int i = 0; i < 3; ++i) {
    const StepResult a = cpu.trainer.train_step(), b = gpu.trainer.train_step();
    CHECK(b.loss.mean() == Approx(a.loss.mean()).epsilon(1e-5));
    CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(1e-4));
    CHECK(b.loss.video_elements == a.loss.video_elements);
  }
}

TEST_CASE("a tokenizer's gradients on the GPU are the CPU's") {
  const std::string kind = GENERATE("[]", "[8, 5, 3]");
  const Recipe recipe = make_recipe(
      parse_yaml("model: {type: tokenizer, latent_channels: 3, encoder_block_out_channels: [4, 6], "
                 "decode_block_out_channels: [4, 6], num_layers: 1, patch_size: 2, "
                 "spatial_compression_ratio: 2, temporal_compression_ratio: 2, levels: " +
                     kind + "}\ntokenizer: {l1: 1, l2: 0.5}\ndata: {frames: 3, size: 8}\n",
                 "a test"));
  PlacedSample placed;
  placed.sample.key = "noise";
  placed.sample.frames = 3, placed.sample.height = placed.sample.width = 8;
  placed.sample.pixels.resize(3 * 3 * 8 * 8);
  Random(1, Purpose::test).fill_uniform(placed.sample.pixels);
  const TokenizerObjective cpu(recipe, nn::Recompute::none, Device::cpu);
  const TokenizerObjective gpu(recipe, nn::Recompute::block, Device::cuda);
  const auto passed = [&](const TokenizerObjective& objective) {
    const auto batch = objective.build(0, 1, {placed});
    objective.pass(*batch, true, {});
    return objective.loss(*batch);
  };
  const LossSums here = passed(cpu), there = passed(gpu);
  CHECK(there.mean() == Approx(here.mean()).epsilon(1e-5));
  for (std::size_t i = 0; i < cpu.parameters().size(); ++i) {
    INFO(cpu.parameters()[i]->name);
    const Tensor a = cpu.parameters()[i]->grad;
    const Tensor b = gpu.parameters()[i]->grad.to(Device::cpu);
    float largest = 0, apart = 0;
    for (std::size_t j = 0; j < a.floats().size(); ++j) {
      largest = std::max(largest, std::abs(a.floats()[j]));
      apart = std::max(apart, std::abs(a.floats()[j] - b.floats()[j]));
    }
    CHECK(apart <= 2e-4f * largest + 1e-4f);
  }
  const double seen = cpu.validate(0, {placed.sample}).psnr_sum;
  CHECK(gpu.validate(0, {placed.sample}).psnr_sum == Approx(seen).epsilon(1e-4));
}

TEST_CASE("the average lies on the host or on the GPU, with the same values") {
  const auto set = made_up();
  const Dataset& data = *set;
  Recipe on_gpu = small("model.compute: bf16"), on_host;
  data.fit(on_gpu);
  on_host = on_gpu;
  on_host.ema.place = "host";
  const auto world = dist::self_world();
  Side a(on_gpu, data, *world, Device::cuda), b(on_host, data, *world, Device::cuda);
  for (int i = 0; i < 3; ++i) {
    a.trainer.train_step();
    b.trainer.train_step();
  }
  CHECK(a.trainer.optimizer().ema()[0].device() == Device::cuda);
  CHECK(b.trainer.optimizer().ema()[0].device() == Device::cpu);
  for (std::size_t i = 0; i < a.trainer.optimizer().ema().size(); ++i) {
    const Tensor x = a.trainer.optimizer().ema()[i].to(Device::cpu);
    const Tensor y = b.trainer.optimizer().ema()[i];
    for (std::size_t j = 0; j < x.floats().size(); ++j)
      REQUIRE(y.floats()[j] == Approx(x.floats()[j]).epsilon(1e-6).margin(1e-9));
  }
  const std::vector<Tensor> before = b.weights();
  b.trainer.optimizer().swap_ema();
  CHECK_FALSE(same(before, b.weights()));
  b.trainer.optimizer().swap_ema();
  CHECK(same(before, b.weights()));
}

TEST_CASE("an average on the host is that of its step, whichever stream is late") {
  const auto [compute, every, late] =
      GENERATE(table<std::string, int, emulation::Late>({{"bf16", 1, emulation::Late::copies},
                                                         {"bf16", 2, emulation::Late::kernels},
                                                         {"f32", 1, emulation::Late::copies}}));
  const auto set = made_up();
  const Dataset& data = *set;
  Recipe recipe = small();
  recipe.model.compute = compute;
  recipe.ema.place = "host";
  recipe.ema.every = every;
  data.fit(recipe);
  const auto world = dist::self_world();
  Side one(recipe, data, *world, Device::cuda);
  // The same by hand, when all that was queued is done.
  recipe.ema.mode = "off";
  Side other(recipe, data, *world, Device::cuda);
  std::vector<Tensor> expected = other.weights();
  emulation::set_late(late);
  for (int n = 1; n <= 6; ++n) {
    one.trainer.train_step();
    other.trainer.train_step();
    if (n % every != 0) continue;
    double decay = 1;
    for (int update = n - every + 1; update <= n; ++update)
      decay *= ema_beta(one.recipe.ema, update);
    const std::vector<Tensor> now = other.weights();
    for (std::size_t i = 0; i < now.size(); ++i)
      ops::moving_average(expected[i], now[i], static_cast<float>(decay));
    if (n == 4) {  // between two steps, as a checkpoint has it; elsewhere nobody waits
      REQUIRE(same(one.trainer.optimizer().ema(), expected));
    }
  }
  CHECK(same(one.trainer.optimizer().ema(), expected));
  CHECK(same(one.weights(), other.weights()));
  one.trainer.train_step();  // is under way when it ends
  emulation::set_late(emulation::Late::none);
}

TEST_CASE("what comes from the GPU in pieces is what was there when it began") {
  const auto late = GENERATE(emulation::Late::copies, emulation::Late::kernels);
  constexpr std::size_t kPieces = 11;
  std::vector<Tensor> sources;
  std::vector<Download::Piece> pieces;
  const Tensor zeros = Tensor::zeros({300});
  for (std::size_t i = 0; i < kPieces; ++i) {
    const Tensor values({300});
    std::ranges::fill(values.floats(), static_cast<float>(i));
    sources.push_back(values.to(Device::cuda));
    const Tensor& there = sources.back();
    pieces.push_back({{there.rows(100, 300).raw(), 800}, {there.raw(), 400}});
    if (i % 2 == 0) pieces.back().pop_back();
  }
  std::vector<std::size_t> taken;
  bool right = true;
  emulation::set_late(late);
  Download download;
  download.release();
  download.finish();  // nothing is under way
  download.start({}, {});
  download.release();
  const auto take = [&](std::size_t piece, const std::byte* bytes) {
    taken.push_back(piece);
    const auto* values = reinterpret_cast<const float*>(bytes);
    for (std::size_t i = 0; i < (piece % 2 == 0 ? 200u : 300u); ++i)
      right = right && values[i] == static_cast<float>(piece);
  };
  for (int round = 1; round <= 2; ++round) {
    download.start(pieces, take);
    download.release();
    if (round == 2)
      for (const Tensor& source : sources)
        copy(zeros, source);
    download.finish();
    CHECK(right);
    CHECK(taken.size() == static_cast<std::size_t>(round) * kPieces);
    CHECK(taken.back() == kPieces - 1);
  }

  // What goes wrong early keeps nobody waiting, and is told once.
  download.start(pieces, [](std::size_t piece, const std::byte*) {
    if (piece == 2) fail("enough");
  });
  CHECK_THROWS_WITH(download.release(), "enough");
  download.release();
  download.finish();
  // Late, when all copies are queued.
  download.start(pieces, [](std::size_t piece, const std::byte*) {
    if (piece == kPieces - 1) fail("the last");
  });
  download.release();
  CHECK_THROWS_WITH(download.start(pieces, take), "the last");
  download.start(pieces, take);  // given up
  emulation::set_late(emulation::Late::none);
}

TEST_CASE("a checkpoint that is copied beside a step is that of its own step") {
  const auto [compute, average, late] = GENERATE(table<std::string, std::string, emulation::Late>({
      {"bf16", "device", emulation::Late::copies},
      {"bf16", "host", emulation::Late::kernels},
      {"f32", "device", emulation::Late::kernels},
      {"f32", "host", emulation::Late::copies},
  }));
  const TemporaryFolder folder;
  const auto set = made_up();
  const Dataset& data = *set;
  Recipe recipe = small("optimizer: {moments: bf16}");
  recipe.model.compute = compute;
  recipe.ema.place = average;
  data.fit(recipe);
  const auto world = dist::self_world();
  Side one(recipe, data, *world, Device::cuda), other(recipe, data, *world, Device::cuda);
  for (Side* side : {&one, &other})
    for (int i = 0; i < 2; ++i)
      side->trainer.train_step();
  const auto checkpoint = [](Side& side) {
    return Checkpoint{2, side.trainer.objective().config(), Json::object(),
                      side.trainer.optimizer()};
  };
  // The steps after it come when all is copied.
  const std::string waited =
      write_checkpoint(other.trainer.parallel().mesh(), folder / "waited", checkpoint(other));
  emulation::set_late(late);
  const std::string run = folder / "beside";
  // So small that not all of them have come when the next update is queued.
  CheckpointSaver saver(one.trainer.parallel().mesh(), run, {.piece_bytes = 16}, "");
  saver.begin(checkpoint(one));
  for (int i = 0; i < 2; ++i)
    one.trainer.train_step();
  emulation::set_late(emulation::Late::none);
  const auto saved = saver.finish();
  REQUIRE(saved);
  REQUIRE(saved->complete);
  models::verify_checkpoint(saved->folder);
  CHECK(io::read_file(saved->folder + "/COMPLETE") == io::read_file(waited + "/COMPLETE"));
  // The steps are those of a run that saves nothing.
  for (int i = 0; i < 2; ++i)
    other.trainer.train_step();
  CHECK(same(one.weights(), other.weights()));
}

TEST_CASE("a checkpoint of the GPU is the CPU's, and goes on there to the same bits") {
  const TemporaryFolder run;
  const auto set = made_up();
  const Dataset& data = *set;
  Recipe recipe = small("optimizer: {moments: bf16}");
  recipe.model.compute = "bf16";
  data.fit(recipe);
  const auto world = dist::self_world();
  Side first(recipe, data, *world, Device::cuda);
  first.trainer.train_step();
  first.trainer.train_step();
  const std::string folder = write_checkpoint(
      first.trainer.parallel().mesh(), run.path,
      {2, first.trainer.objective().config(), Json::object(), first.trainer.optimizer()});
  for (const Device device : {Device::cpu, Device::cuda}) {
    Side second(recipe, data, *world, device);
    read_checkpoint(*world, folder, second.trainer.optimizer());
    second.trainer.restore(first.trainer.state());
    CHECK(same(first.weights(), second.weights()));
    CHECK(same(first.trainer.optimizer().state("adam_m").tensors,
               second.trainer.optimizer().state("adam_m").tensors));
    CHECK(same(first.trainer.optimizer().state("adam_v").tensors,
               second.trainer.optimizer().state("adam_v").tensors));
    CHECK(same(first.trainer.optimizer().ema(), second.trainer.optimizer().ema()));
    if (device == Device::cpu) continue;
    second.trainer.train_step();
    first.trainer.train_step();
    CHECK(same(first.weights(), second.weights()));
  }
}
