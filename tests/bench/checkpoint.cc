// Checkpoints by all ranks against checkpoints by rank 0 alone, as far as the machine's disk
// allows.
//
//   checkpoint DIR MIB                    times both, of as many MiB of f32 weights with moments
//                                         and average; DIR must not exist
//   checkpoint DIR MIB --wait             how long a step waits for one that is written beside it
//   checkpoint DIR --again FROM           loads a checkpoint and saves it as the run DIR: the same
//                                         bytes
// All as they are, or by mpirun.
// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "dist/together.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_reader.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/lora_file.h"
#include "train/checkpoint/checkpoint_saver.h"

namespace {

using namespace vfm;
using namespace vfm::train;

struct Weights {
  std::vector<std::unique_ptr<nn::Parameter>> owned;
  nn::ParameterList list;

  void add(const std::string& name, const Shape& shape) {
    auto parameter = std::make_unique<nn::Parameter>();
    parameter->name = name;
    parameter->value = Tensor::zeros(shape);
    parameter->placement = {shape, Shape(shape.size(), 0)};
    Random(1, Purpose::test, 0, owned.size()).fill_normal(parameter->value.floats());
    list.push_back(parameter.get());
    owned.push_back(std::move(parameter));
  }
};

/// Seconds of the slowest rank.
template <class Act>
double seconds_of(dist::World& world, const Act& act) {
  world.barrier();
  const auto begin = std::chrono::steady_clock::now();
  act();
  world.barrier();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// As rank 0 alone: writes all, reads it again for its hashes. The files have no headers.
void save_alone(dist::World& world, const std::string& folder, const Optimizer& optimizer) {
  if (world.rank() != 0) return;
  io::make_directories(folder);
  std::vector<Tensor> weights;
  for (const nn::Parameter* parameter : optimizer.parameters())
    weights.push_back(parameter->value);
  int number = 0;
  for (const auto* tensors : {&std::as_const(weights), &optimizer.state("adam_m").tensors,
                              &optimizer.state("adam_v").tensors, &optimizer.ema()}) {
    const std::string path = fmt::format("{}/{}", folder, number++);
    io::AtomicFile file(path);
    for (const Tensor& tensor : *tensors)
      file.write(tensor.raw(), tensor.bytes());
    file.commit();
    if (io::hash_file(path).empty()) fail("no hash");
  }
}

/// As rank 0 alone: verifies all, reads all, and gives it to the others.
void resume_alone(dist::World& world, const std::string& folder, const Optimizer& optimizer) {
  const nn::ParameterList& list = optimizer.parameters();
  if (world.rank() == 0) {
    models::verify_checkpoint(folder);
    models::load_parameters(io::SafetensorsSet(folder + "/model", models::kWeightsName), list);
    const auto load = [&](const char* name, const std::vector<Tensor>& tensors) {
      std::vector<models::TensorTarget> targets;
      for (std::size_t i = 0; i < list.size(); ++i)
        targets.push_back({list[i]->name, list[i]->shape(),
                           [&tensors, i](const Tensor& values) { copy(values, tensors[i]); }});
      models::load_tensors(io::SafetensorsSet(folder + "/state", name), targets);
    };
    for (const char* name : {"adam_m", "adam_v"})
      load(name, optimizer.state(name).tensors);
    load("ema", optimizer.ema());
  }
  for (const nn::Parameter* parameter : list)
    world.broadcast({parameter->value.data<std::byte>(), parameter->value.bytes()});
  for (const auto* tensors :
       {&optimizer.state("adam_m").tensors, &optimizer.state("adam_v").tensors, &optimizer.ema()})
    for (const Tensor& tensor : *tensors)
      world.broadcast({tensor.data<std::byte>(), tensor.bytes()});
}

/// What is measured removes the folder again and again.
void need_new_folder(dist::World& world, const std::string& out) {
  dist::on_all_ranks(world, [&] {
    if (world.rank() == 0 && std::filesystem::exists(std::filesystem::symlink_status(out)))
      fail("'{}' is there, and would be removed: give a folder that is not", out);
  });
}

Weights weights_of(int mib) {
  Weights weights;
  for (int at = 0; at < mib; at += 16)  // 16 MiB each
    weights.add(fmt::format("blocks.{:04}.weight", at / 16), {2048, 2048});
  return weights;
}

/// A step waits for the disk, or for memory.
void measure_wait(dist::World& world, const std::string& out, int mib) {
  need_new_folder(world, out);
  const Weights weights = weights_of(mib);
  const Optimizer optimizer({}, {}, weights.list);
  const dist::Mesh mesh(world, {});
  SaveLimits no_memory;
  no_memory.snapshot_bytes = 0;
  CheckpointSaver waited(mesh, out, no_memory), beside(mesh, out);
  beside.prepare({0, Json::object(), Json::object(), optimizer});  // as after a run's first step
  for (int round = 0; round < 4; ++round) {
    const Checkpoint checkpoint{round, Json::object(), Json::object(), optimizer};
    const double whole = seconds_of(world, [&] {
      waited.begin(checkpoint);
      waited.finish()->need(world);
    });
    if (world.rank() == 0) std::filesystem::remove_all(out);
    // On a busy machine the processor's time says what is waited for without others.
    double busy = 0;
    const double step = seconds_of(world, [&] {
      const std::clock_t begin = std::clock();
      beside.begin(checkpoint);
      busy = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    });
    const double rest = seconds_of(world, [&] { beside.finish()->need(world); });
    if (world.rank() == 0)
      std::printf(
          "%d ranks, %d MiB: saved in %.2f s; beside steps, which wait %.3f s (%.2f %%), of them "
          "%.3f s busy, in %.2f s\n",
          world.size(), 4 * mib, whole, step, 100 * step / whole, busy, step + rest);
    if (world.rank() == 0) std::filesystem::remove_all(out);
  }
  beside.forget();
}

void measure(dist::World& world, const std::string& out, int mib) {
  need_new_folder(world, out);
  const Weights weights = weights_of(mib);
  const Optimizer optimizer({}, {}, weights.list);
  const Checkpoint checkpoint{1, Json::object(), Json::object(), optimizer};
  const dist::Mesh mesh(world, {});
  for (int round = 0; round < 5; ++round) {
    if (world.rank() == 0) std::filesystem::remove_all(out);
    const double alone = seconds_of(world, [&] { save_alone(world, out + "/x", optimizer); });
    if (world.rank() == 0) std::filesystem::remove_all(out);
    const double save = seconds_of(world, [&] { write_checkpoint(mesh, out, checkpoint); });
    const std::string folder = checkpoint_path(out, 1);
    const double resume_all = seconds_of(
        world, [&] { read_checkpoint(world, newest_good_checkpoint(world, out), optimizer); });
    const double resume = seconds_of(world, [&] { resume_alone(world, folder, optimizer); });
    if (world.rank() == 0)
      std::printf("%d ranks, %d MiB: save %.2f s, by rank 0 alone %.2f s; resume %.2f s, %.2f s\n",
                  world.size(), 4 * mib, save, alone, resume_all, resume);
  }
  if (world.rank() == 0) std::filesystem::remove_all(out);
}

void again(dist::World& world, const std::string& out, const std::string& from) {
  const std::string folder = models::find_checkpoint(from);
  const bool adapted = models::has_adapters(folder);
  Weights weights;
  const io::SafetensorsReader moments(folder + "/state", "adam_m");
  for (const io::TensorView& tensor : moments.tensors())
    weights.add(tensor.name, tensor.shape);
  OptimizerRecipe recipe;
  EmaRecipe average;
  if (moments.tensors().front().dtype == "BF16") recipe.moments = "bf16";
  if (!io::SafetensorsSet::exists(folder + "/state", "ema")) average.mode = "off";
  const Optimizer optimizer(recipe, average, weights.list);
  read_checkpoint(world, folder, optimizer);
  Checkpoint checkpoint{0, {}, models::read_train_json(folder), optimizer};
  checkpoint.step = checkpoint.train["step"].get<std::int64_t>();
  checkpoint.config = parse_json(io::read_file(folder + "/model/config.json"), "config.json");
  if (adapted) {
    const io::SafetensorsSet lora(models::lora_folder(folder), models::kLoraName);
    checkpoint.adapters = lora.metadata();
    checkpoint.adapters.erase("format");
  }
  write_checkpoint(dist::Mesh(world, {}), out, checkpoint);
}

}  // namespace

int main(int argc, char** argv) {
  const bool many = std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMI_SIZE");
  const auto world = many ? dist::mpi_world() : dist::self_world();
  try {
    if (argc == 3)
      measure(*world, argv[1], std::atoi(argv[2]));
    else if (argc == 4 && std::string(argv[3]) == "--wait")
      measure_wait(*world, argv[1], std::atoi(argv[2]));
    else if (argc == 4 && std::string(argv[2]) == "--again")
      again(*world, argv[1], argv[3]);
    else
      fail("usage: checkpoint DIR MIB [--wait], or checkpoint DIR --again FROM");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkpoint: %s\n", error.what());
    if (world->size() > 1) world->end_all(1);
    return 1;
  }
}
