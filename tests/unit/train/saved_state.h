// A small model and its optimizer, on ranks that are threads, and the checkpoints that they save.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/stop.h"
#include "dist/mesh.h"
#include "dist/threads.h"
#include "io/file.h"
#include "train/checkpoint/checkpoint.h"

namespace vfm::train {

/// Runs `work` on every rank; returns what it threw there by itself, "RANK: MESSAGE".
inline std::vector<std::string> on_ranks(int ranks, const std::function<void(dist::World&)>& work) {
  std::mutex mutex;
  std::vector<std::string> errors;
  const auto note = [&](dist::World& world, const std::string& message) {
    const std::lock_guard lock(mutex);
    if (message.find(" failed: ") == std::string::npos)  // which tells of another rank
      errors.push_back(fmt::format("{}: {}", world.rank(), message));
  };
  try {
    dist::thread_worlds(ranks, [&](dist::World& world) {
      try {
        work(world);
      } catch (const Error& error) {
        note(world, error.what());
        throw;
      } catch (const Stopped&) {
        note(world, "stopped");
        throw;
      }
    });
  } catch (const Error&) {  // all are noted
  } catch (const Stopped&) {
  }
  return errors;
}

/// Some parameters, split and not, and an optimizer of them: all, or what one of `ranks` holds.
/// Numbers of `seed`; 0: zeros.
struct SavedState {
  explicit SavedState(std::uint32_t first_seed, const char* moments = "bf16", int part = 0,
                      int parts = 1)
      : seed(first_seed), rank(part), ranks(parts) {
    parameters.reserve(8);
    add("b.weight", {40, 7}, false, 1);
    add("a.weight", {33, 5}, true, 0);
    add("a.bias", {33}, false, 0);
    add("scale", {}, false);
    add("nothing", {0, 4}, false, 0);
    add("c.weight", {200, 3}, true);
    add("box", {4, 7, 3}, false, 1);
    add("few", {2, 3}, true, 0);  // of three ranks the last one has nothing
    for (nn::Parameter& parameter : parameters)
      list.push_back(&parameter);
    OptimizerRecipe recipe;
    recipe.moments = moments;
    optimizer.emplace(recipe, EmaRecipe(), list);
    for (std::size_t i = 0; i < list.size(); ++i)
      for (const Tensor& tensor : {optimizer->state("adam_m").tensors[i],
                                   optimizer->state("adam_v").tensors[i], optimizer->ema()[i]})
        copy(draw(*list[i]).to(tensor.dtype()), tensor);
  }
  SavedState(std::uint32_t first_seed, const dist::Group& tp)
      : SavedState(first_seed, "bf16", tp.rank(), tp.size()) {}

  /// Cut along `dim`, or whole.
  void add(const char* name, const Shape& shape, bool split, int dim = -1) {
    nn::Parameter& parameter = parameters.emplace_back();
    parameter.name = name;
    const nn::PlacedPart part =
        nn::cut_part(shape, dim < 0 ? nn::Cut() : nn::Cut{dim, rank, ranks});
    parameter.placement = part.placement;
    if (split) {
      parameter.high = Tensor::zeros(part.shape, DType::bf16);
      parameter.low = Tensor::zeros(part.shape, DType::i16);
    } else {
      parameter.value = Tensor::zeros(part.shape);
    }
    parameter.write(draw(parameter));
  }
  /// The next values of a tensor like this parameter: drawn whole, and of these its part.
  Tensor draw(const nn::Parameter& parameter) {
    const Shape &global = parameter.placement.global, &offset = parameter.placement.offset;
    const Tensor whole = Tensor::zeros(global), part = Tensor::zeros(parameter.shape());
    if (seed != 0) Random(seed, Purpose::test, 0, drawn++).fill_normal(whole.floats());
    float* next = part.data<float>();
    for (std::int64_t at = 0; at < whole.elements(); ++at) {
      std::int64_t rest = at;
      bool inside = true;
      for (std::size_t d = global.size(); d-- > 0; rest /= global[d]) {
        const std::int64_t i = rest % global[d] - offset[d];
        inside = inside && i >= 0 && i < parameter.shape()[d];
      }
      if (inside) *next++ = whole.data<float>()[at];
    }
    return part;
  }
  Checkpoint checkpoint(std::int64_t step) const {
    return {step, Json{{"_class_name", "None"}}, Json{{"step", step}}, *optimizer};
  }

  std::uint32_t seed;
  int rank, ranks;
  std::uint64_t drawn = 0;
  std::vector<nn::Parameter> parameters;
  nn::ParameterList list;
  std::optional<Optimizer> optimizer;
};

inline dist::Layout layout_of(int tp, int cp, int dp) {
  dist::Layout layout;
  layout.tp = tp, layout.cp = cp, layout.dp = dp;
  return layout;
}

/// Runs `work` on every rank of a mesh, and checks that none fails.
inline void on_mesh(const dist::Layout& layout,
                    const std::function<void(const dist::Mesh&)>& work) {
  const auto errors = on_ranks(layout.tp * layout.cp * layout.dp,
                               [&](dist::World& world) { work(dist::Mesh(world, layout)); });
  CHECK(errors == std::vector<std::string>());
}

inline std::vector<float> floats_of(const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f32);
  return {values.floats().begin(), values.floats().end()};
}

/// All values of a state.
inline std::vector<std::vector<float>> values_of(const SavedState& state) {
  std::vector<std::vector<float>> values;
  for (std::size_t i = 0; i < state.list.size(); ++i) {
    values.push_back(floats_of(state.list[i]->read()));
    for (const Tensor& tensor :
         {state.optimizer->state("adam_m").tensors[i], state.optimizer->state("adam_v").tensors[i],
          state.optimizer->ema()[i]})
      values.push_back(floats_of(tensor));
  }
  return values;
}

inline std::map<std::string, std::string> files_of(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder)] = io::read_file(entry.path());
  return files;
}

/// Saved by ranks that have all of it; the checkpoint's folder.
inline std::string save(const SavedState& state, const std::string& run, int ranks,
                        std::uint64_t limit) {
  dist::thread_worlds(ranks, [&](dist::World& world) {
    write_checkpoint(dist::Mesh(world, {}), run, state.checkpoint(3), {limit});
  });
  return checkpoint_path(run, 3);
}

}  // namespace vfm::train
