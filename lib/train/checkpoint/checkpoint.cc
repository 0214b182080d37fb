// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "dist/together.h"
#include "io/at_once.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/lora_file.h"
#include "train/checkpoint/checkpoint_files.h"
#include "train/checkpoint/checkpoint_reading.h"
#include "train/state/state_shards.h"

namespace vfm::train {
namespace {

/// Names of tables of positions begin so (models/dit/network_frame.cc).
constexpr std::string_view kPositionTables = "learnable_pos_embed.";

/// "HASH  NAME", a line a file, sorted by name.
std::string lines_of(const std::map<std::string, std::string>& hashes) {
  std::string text;
  for (const auto& [name, hash] : hashes)
    text += hash + "  " + name + "\n";
  return text;
}

std::string folder_of(const OtherState& other) {
  return io::join_path("networks", other.name);
}

/// What an optimizer keeps, into the sets of `folder`.
void add_state(const Optimizer& optimizer, const std::string& folder, std::uint64_t max_file_bytes,
               std::vector<SavedSet>& sets) {
  const auto add = [&](const std::string& name, const nn::ParameterList& of,
                       const std::vector<Tensor>& tensors) {
    const auto read = [&tensors](std::size_t i, std::int64_t begin, std::int64_t end) {
      return tensors[i].reshape({tensors[i].elements()}).rows(begin, end);
    };
    sets.push_back({folder, name, tensors.front().dtype(), read, of, max_file_bytes});
  };
  for (const OptimizerState& state : optimizer.state())
    add(state.name, state.parameters, state.tensors);
  if (optimizer.has_ema()) add("ema", optimizer.parameters(), optimizer.ema());
}

/// The sets of tensors.
std::vector<SavedSet> sets_of(const Checkpoint& checkpoint, std::uint64_t max_file_bytes) {
  const nn::ParameterList& parameters = checkpoint.optimizer.parameters();
  const auto values_of = [](const nn::ParameterList& of) {
    return [&of](std::size_t i, std::int64_t begin, std::int64_t end) {
      return of[i]->read(begin, end);
    };
  };
  std::vector<SavedSet> sets;
  if (checkpoint.adapters.empty()) {
    sets.push_back({"model", models::kWeightsName, DType::f32, values_of(parameters), parameters,
                    max_file_bytes});
  } else {
    // Programs look for these under one name.
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    const std::string lora = models::lora_folder("");
    sets.push_back({lora, models::kLoraName, DType::f32, values_of(parameters), parameters, kNone,
                    std::string(models::kLoraPrefix), checkpoint.adapters});
    sets.push_back({lora, models::kPeftName, DType::f32, values_of(parameters), parameters, kNone,
                    std::string(models::kPeftPrefix)});
  }
  add_state(checkpoint.optimizer, "state", max_file_bytes, sets);
  for (const OtherState& other : checkpoint.others) {
    const nn::ParameterList& own = other.optimizer.parameters();
    sets.push_back(
        {folder_of(other), models::kWeightsName, DType::f32, values_of(own), own, max_file_bytes});
    add_state(other.optimizer, folder_of(other), max_file_bytes, sets);
  }
  return sets;
}

/// All that is not tensors, name -> contents.
std::map<std::string, std::string> texts_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> texts = {
      {"model/config.json", dump_json_pretty(checkpoint.config)},
      {"train.json", dump_json_pretty(checkpoint.train)}};
  if (!checkpoint.adapters.empty()) {
    const std::string base =
        get_string(checkpoint.train->value("init", Json()), "path").value_or("");
    texts[io::join_path(models::lora_folder(""), "adapter_config.json")] =
        dump_json_pretty(models::peft_config(models::lora_settings(checkpoint.adapters), base));
  }
  return texts;
}

/// Writes what rank 0 writes; returns name -> hash.
std::map<std::string, std::string> write_texts(const std::string& folder,
                                               std::map<std::string, std::string> texts) {
  std::map<std::string, std::string> hashes;
  for (const auto& [name, text] : texts) {
    io::write_file(io::join_path(folder, name), text);
    hashes[name] = hash_hex(text);
  }
  return hashes;
}

/// COMPLETE, of the lines that each rank wrote.
std::string merge_lines(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> hashes;
  for (const std::string& text : texts)
    hashes.merge(models::parse_complete(text, "a rank's list of files"));
  return lines_of(hashes);
}

/// The place where a checkpoint is built.
std::string place_of(const std::string& target) {
  if (io::is_bucket(target)) return target;
  return io::join_path(io::dir_name(target), "." + io::base_name(target) + ".tmp");
}

/// Throws Error unless rank 0 sees the files of all ranks.
void check_seen(const CheckpointFiles& files, const std::string& folder) {
  std::set<std::string> seen;
  for (const io::FolderEntry& entry : io::files_below(folder))
    seen.insert(entry.name);
  for (const CheckpointFiles::File& file : files.files())
    // A listing of a bucket may be some seconds old.
    if (!seen.contains(files.name(file)) && !io::is_file(io::join_path(folder, files.name(file))))
      fail("rank {} wrote '{}', and rank 0 does not find it: all ranks need one file system (-o)",
           file.writer, io::join_path(folder, files.name(file)));
}

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

std::string write_checkpoint(const dist::Mesh& mesh, const std::string& run,
                             const Checkpoint& checkpoint, const SaveLimits& limits) {
  dist::World& world = mesh.world();
  const bool leader = world.rank() == 0;
  const std::string target = checkpoint_path(run, checkpoint.step);
  const std::string temporary = place_of(target);
  const auto clean_up = [&] {
    try {
      io::remove_folder(temporary);
    } catch (const Error& error) {
      log_info("{}", error.what());  // the next checkpoint, or the next start, removes it
    }
  };
  const CheckpointFiles files(sets_of(checkpoint, limits.file_bytes), world.size(),
                              limits.piece_bytes);
  const auto prepare = [&] {
    if (!leader) return;
    models::remove_checkpoint(temporary);
    for (const char* folder : {"model", "state"})
      io::make_directories(io::join_path(temporary, folder));
    for (const OtherState& other : checkpoint.others)
      io::make_directories(io::join_path(temporary, folder_of(other)));
    if (!checkpoint.adapters.empty()) io::make_directories(models::lora_folder(temporary));
  };
  on_all_ranks(world, prepare, clean_up);

  std::string lines;
  CheckpointFiles::Written written =
      files.write(temporary, holders_of(mesh, checkpoint.optimizer.parameters()));
  const auto write = [&] {
    if (written.failure) std::rethrow_exception(written.failure);
    std::map<std::string, std::string>& hashes = written.hashes;
    if (leader) {
      hashes.merge(write_texts(temporary, files.texts()));
      hashes.merge(write_texts(temporary, texts_of(checkpoint)));
    }
    lines = lines_of(hashes);
  };
  on_all_ranks(world, write, clean_up);

  const std::vector<std::string> all = world.gather(lines);
  const auto complete = [&] {
    if (!leader) return;
    check_seen(files, temporary);
    io::write_file(io::join_path(temporary, "COMPLETE"), merge_lines(all));
    if (temporary == target) return;
    io::remove_folder(target);  // only a damaged one, or one of a run that went another way
    io::rename_path(temporary, target);
  };
  on_all_ranks(world, complete, clean_up);
  return target;
}

void read_checkpoint(dist::World& world, const std::string& folder, const Optimizer& optimizer,
                     Tables tables, const std::vector<OtherState>& others) {
  // `store` gets the number of the tensor, values, and which are before them.
  const auto read = [&](const std::string& place, const std::string& name, std::string_view prefix,
                        const nn::ParameterList& of, const auto& store, bool codes = false) {
    CheckpointReading reading(world, place, name);
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
  on_all_ranks(world, [&] { adapters = world.rank() == 0 && models::has_adapters(folder); });
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
                       std::int64_t last, int keep) {
  const std::vector<std::string> folders = models::list_checkpoints(run);
  int regular = step % every == 0 || step == last ? 1 : 0;
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    const std::int64_t other = step_of(*folder);
    if (other < 0 || other == step) continue;
    if (other < step && other % every == 0 && regular < keep) {
      ++regular;
      continue;
    }
    models::remove_checkpoint(*folder);
  }
  models::remove_unfinished_checkpoints(run);
}

std::string damage_of(dist::World& world, const std::string& folder) {
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
  for (const Json& file : shared)
    sizes.push_back(file[2].get<std::uint64_t>());
  const std::vector<int> ranks = dist::deal(sizes, world.size());
  std::string mine;  // "NUMBER MESSAGE" of my first that is damaged
  on_all_ranks(world, [&] {
    std::vector<std::size_t> own;  // numbers of files
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] == world.rank()) own.push_back(i);
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

std::string newest_good_checkpoint(dist::World& world, const std::string& run) {
  const bool leader = world.rank() == 0;
  std::vector<std::string> folders;  // on rank 0
  if (leader) folders = models::list_checkpoints(run);
  const bool any = !folders.empty();
  for (;;) {
    const std::string newest = dist::broadcast(world, folders.empty() ? "" : folders.back());
    if (newest.empty()) break;
    const std::string damage = damage_of(world, newest);
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
