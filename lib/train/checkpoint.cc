// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/checkpoint.h"
#include "models/dit_json.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_errno(error.value(), "cannot remove '{}'", path);
}

/// The parameters' names with `tensors` in their order.
std::vector<io::TensorView> views(const nn::ParameterList& parameters,
                                  const std::vector<Tensor>& tensors) {
  std::vector<io::TensorView> result;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    result.push_back({parameters[i]->name,
                      std::string(dtype_name(tensors[i].dtype())),
                      tensors[i].shape(),
                      {static_cast<const std::byte*>(tensors[i].raw()), tensors[i].bytes()}});
  return result;
}

std::vector<Tensor> values(const nn::ParameterList& parameters) {
  std::vector<Tensor> tensors;
  for (const nn::Parameter* parameter : parameters)
    tensors.push_back(parameter->value);
  return tensors;
}

/// Hash and name of every file, sorted by name.
std::string make_complete(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), folder).string());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names)
    text += io::hash_file(io::join_path(folder, name)) + "  " + name + "\n";
  return text;
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

std::string write_checkpoint(const std::string& run, std::int64_t step, const models::Dit& model,
                             const Optimizer& optimizer, const Json& train,
                             std::uint64_t max_file_bytes) {
  const std::string target = checkpoint_path(run, step);
  const std::string parent = io::dir_name(target);
  const std::string temporary = io::join_path(parent, "." + io::base_name(target) + ".tmp");
  remove_tree(temporary);
  const std::string model_folder = io::join_path(temporary, "model");
  const std::string state_folder = io::join_path(temporary, "state");
  io::make_directories(model_folder);
  io::make_directories(state_folder);

  const nn::ParameterList& parameters = optimizer.parameters();
  io::write_file(io::join_path(model_folder, "config.json"),
                 dump_json_pretty(models::dit_config_to_json(model.config())));
  io::write_safetensors(model_folder, models::kWeightsName, views(parameters, values(parameters)),
                        max_file_bytes);
  io::write_safetensors(state_folder, "adam_m", views(parameters, optimizer.m), max_file_bytes);
  io::write_safetensors(state_folder, "adam_v", views(parameters, optimizer.v), max_file_bytes);
  if (optimizer.has_ema())
    io::write_safetensors(state_folder, "ema", views(parameters, optimizer.ema), max_file_bytes);
  io::write_file(io::join_path(temporary, "train.json"), dump_json_pretty(train));
  io::write_file(io::join_path(temporary, "COMPLETE"), make_complete(temporary));

  remove_tree(target);  // only a damaged one, or one of a run that went another way
  if (std::rename(temporary.c_str(), target.c_str()) != 0)
    fail_errno(errno, "cannot create '{}'", target);
  io::sync_directory(parent);
  return target;
}

void read_checkpoint(const std::string& folder, const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const nn::Parameter* parameter : optimizer.parameters())
    names.push_back(parameter->name);
  const std::string state = io::join_path(folder, "state");
  const auto load = [&](const std::string& where, const char* set,
                        const std::vector<Tensor>& tensors) {
    models::load_tensors(io::SafetensorsSet(where, set), names, tensors);
  };
  load(io::join_path(folder, "model"), models::kWeightsName, values(optimizer.parameters()));
  load(state, "adam_m", optimizer.m);
  load(state, "adam_v", optimizer.v);
  if (optimizer.has_ema()) load(state, "ema", optimizer.ema);
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
    // COMPLETE goes first: what a kill leaves of the rest is no checkpoint any more.
    std::error_code ignored;
    fs::remove(io::join_path(*folder, "COMPLETE"), ignored);
    remove_tree(*folder);
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(io::join_path(run, "checkpoints"), error))
    if (entry.path().filename().string().starts_with(".step-")) remove_tree(entry.path().string());
}

std::string newest_good_checkpoint(const std::string& run) {
  std::vector<std::string> folders = models::list_checkpoints(run);
  const bool any = !folders.empty();
  for (; !folders.empty(); folders.pop_back()) {
    try {
      models::verify_checkpoint(folders.back());
      return folders.back();
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      log_warning("{}; going back to the checkpoint before it", error.what());
    }
  }
  if (any)
    fail("none of the checkpoints in '{}' is usable; --force starts over",
         io::join_path(run, "checkpoints"));
  return {};
}

}  // namespace vfm::train
