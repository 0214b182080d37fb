// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "dist/together.h"
#include "io/at_once.h"
#include "io/file.h"
#include "io/folder.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/lora_file.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/checkpoint/checkpoint_reading.h"

namespace vfm::train {
namespace {

/// Names of tables of positions begin so (models/dit/network_frame.cc).
constexpr std::string_view kPositionTables = "learnable_pos_embed.";

/// Of a set of tensors where a parameter's values come from.
models::RangeTarget target_in(const io::TensorSet& set, const std::string& name,
                              const nn::Parameter& parameter, Tables tables) {
  models::RangeTarget target{
      name, models::held_range(parameter), {}, parameter.placement.begin, parameter.elements()};
  const io::TensorView* saved = set.find(name);
  if (tables == Tables::same || saved == nullptr || !parameter.name.starts_with(kPositionTables))
    return target;
  Shape& whole = target.range.shape;
  // Tables are never cut along tp, so a rank's part is a stretch of rows.
  if (saved->shape.size() != whole.size() || saved->shape[0] >= whole[0]) return target;
  target.range = {saved->shape, Shape(saved->shape.size(), 0), saved->shape};
  const std::int64_t there = target.range.elements();
  target.count = std::clamp<std::int64_t>(there - target.first, 0, target.count);
  target.first = std::min(target.first, there);
  return target;
}

/// Those of a checkpoint's files that have a copy: path -> copy.
std::map<std::string, std::string> copies_of(const std::string& folder, const FileCopies& copies) {
  const std::string complete = io::join_path(folder, "COMPLETE");
  std::map<std::string, std::string> found;
  for (const auto& [name, hash] :
       models::parse_complete(io::read_file(complete), "'" + complete + "'"))
    if (const auto copy = copies.find(hash); copy != copies.end())
      found[io::join_path(folder, name)] = copy->second;
  return found;
}

/// The step in the name of a checkpoint folder, -1 if there is none.
std::int64_t step_of(const std::string& folder) {
  const std::string digits = io::base_name(folder).substr(5);  // after "step-"
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return error == std::errc{} && end == digits.data() + digits.size() ? step : -1;
}

}  // namespace

std::string checkpoint_path(const std::string& run, std::int64_t step) {
  return io::join_path(run, fmt::format("checkpoints/step-{:08}", step));
}

void read_checkpoint(dist::World& world, const std::string& folder, const Optimizer& optimizer,
                     Tables tables, const std::vector<OtherState>& others,
                     const FileCopies& copies) {
  std::map<std::string, std::string> in_memory;  // path -> copy
  // `store` gets the number of the tensor, values, and which are before them.
  const auto read = [&](const std::string& place, const std::string& name, std::string_view prefix,
                        const nn::ParameterList& of, const auto& store, bool codes = false) {
    CheckpointReading reading(world, place, name, in_memory);
    std::vector<models::RangeTarget> targets;
    for (std::size_t i = 0; i < of.size(); ++i) {
      targets.push_back(
          target_in(reading.set(), std::string(prefix) + of[i]->name, *of[i], tables));
      targets.back().codes = codes;
      targets.back().store = [&store, i](const Tensor& t, std::int64_t at) { store(i, t, at); };
    }
    reading.load(targets);
  };
  const auto read_tensors = [&](const std::string& place, const std::string& name,
                                const nn::ParameterList& of, const std::vector<Tensor>& tensors) {
    const auto store = [&](std::size_t i, const Tensor& values, std::int64_t begin) {
      const Tensor flat = tensors[i].reshape({tensors[i].elements()});
      copy(values.to(flat.dtype()), flat.rows(begin, begin + values.elements()));
    };
    const bool codes = !tensors.empty() && tensors.front().dtype() == DType::u8;
    read(place, name, {}, of, store, codes);
  };
  const auto read_network = [&](const Optimizer& own, const std::string& weights,
                                const std::string& name, std::string_view prefix,
                                const std::string& state) {
    const nn::ParameterList& parameters = own.parameters();
    const auto store = [&](std::size_t i, const Tensor& values, std::int64_t begin) {
      parameters[i]->write(values, begin);
    };
    read(weights, name, prefix, parameters, store);
    for (const OptimizerState& kept : own.state())
      read_tensors(state, kept.name, kept.parameters, kept.tensors);
    if (own.has_ema()) read_tensors(state, "ema", parameters, own.ema());
  };
  bool adapters = false;
  on_all_ranks(world, [&] {
    if (!copies.empty()) in_memory = copies_of(folder, copies);
    adapters = world.rank() == 0 && models::has_adapters(folder);
  });
  adapters = dist::broadcast(world, adapters ? "yes" : "") == "yes";
  const std::string state = io::join_path(folder, "state");
  if (adapters)
    read_network(optimizer, models::lora_folder(folder), models::kLoraName, models::kLoraPrefix,
                 state);
  else
    read_network(optimizer, io::join_path(folder, "model"), models::kWeightsName, {}, state);
  for (const OtherState& other : others) {
    const std::string place = io::join_path(folder, folder_of(other));
    read_network(other.optimizer, place, models::kWeightsName, {}, place);
  }
}

void prune_checkpoints(const std::string& run, std::int64_t step, std::int64_t every,
                       std::int64_t last, int keep, std::int64_t keep_every) {
  const std::vector<std::string> folders = models::list_checkpoints(run);
  int regular = step % every == 0 || step == last ? 1 : 0;
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    const std::int64_t other = step_of(*folder);
    if (other < 0 || other == step) continue;
    if (other < step && other % every == 0 && regular < keep) {
      ++regular;
      continue;
    }
    if (other < step && keep_every > 0 && other % keep_every == 0) continue;
    models::remove_checkpoint(*folder);
  }
  models::remove_unfinished_checkpoints(run);
}

std::string damage_of(dist::World& world, const std::string& folder, const FileCopies& copies) {
  std::string problem;
  std::vector<models::CompleteFile> files;
  Json shared = Json::array();
  on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    try {
      for (const models::CompleteFile& file : models::list_complete(folder))
        shared.push_back({file.name, file.hash, file.bytes});
    } catch (const Error& error) {
      problem = error.what();
    }
  });
  problem = dist::broadcast(world, problem);
  if (!problem.empty()) return problem;
  shared = parse_json(dist::broadcast(world, dump_json(shared)), "the files of a checkpoint");
  std::vector<std::uint64_t> sizes;
  std::vector<double> copied;  // ranks that have a copy
  for (const Json& file : shared) {
    sizes.push_back(file[2].get<std::uint64_t>());
    copied.push_back(copies.contains(file[1].get<std::string>()) ? 1 : 0);
  }
  world.all_reduce_sum(std::span<double>(copied));
  const auto nobody_reads = [&](std::size_t i) { return copied[i] > 0; };
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (nobody_reads(i)) sizes[i] = 0;
  const std::vector<int> ranks = dist::deal(sizes, world.size());
  std::string mine;  // "NUMBER MESSAGE" of my first that is damaged
  on_all_ranks(world, [&] {
    std::vector<std::size_t> own;  // numbers of files
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] == world.rank() && !nobody_reads(i)) own.push_back(i);
    const auto verify = [&](std::size_t k) {
      const std::size_t i = own[k];
      try {
        models::verify_file(folder, {shared[i][0], shared[i][1], sizes[i]});
      } catch (const Error& error) {
        throw Error(fmt::format("{:08} {}", i, error.what()));
      }
    };
    try {
      io::for_each_at_once(own.size(), io::requests_at_once(folder), verify);
    } catch (const Error& error) {
      mine = error.what();
    }
  });
  for (const std::string& text : world.gather(mine))
    if (!text.empty() && (problem.empty() || text < problem)) problem = text;
  problem = dist::broadcast(world, problem);
  return problem.empty() ? "" : problem.substr(problem.find(' ') + 1);
}

std::string newest_good_checkpoint(dist::World& world, const std::string& run,
                                   const FileCopies& copies) {
  const bool leader = world.rank() == 0;
  std::vector<std::string> folders;  // on rank 0
  if (leader) folders = models::list_checkpoints(run);
  const bool any = !folders.empty();
  for (;;) {
    const std::string newest = dist::broadcast(world, folders.empty() ? "" : folders.back());
    if (newest.empty()) break;
    const std::string damage = damage_of(world, newest, copies);
    if (damage.empty()) return newest;
    if (!leader) continue;
    log_warning("{}; going back to the checkpoint before it", damage);
    folders.pop_back();
  }
  on_all_ranks(world, [&] {
    if (any)
      fail("none of the checkpoints in '{}' is usable; --force starts over",
           io::join_path(run, "checkpoints"));
  });
  return {};
}

}  // namespace vfm::train
