// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/folder/checkpoint_folder.h"
#include "models/folder/load_tensors.h"
#include "models/folder/lora_file.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_errno(error.value(), "cannot remove '{}'", path);
}

/// Gives the i-th tensor of a set in whatever form it is; on whatever device.
using Getter = std::function<Tensor(std::size_t)>;

/// What a set says beside the tensors, and before their names.
struct Head {
  std::string_view prefix;
  std::map<std::string, std::string> metadata;
};

/// Writes a set of as many tensors as there are parameters, under their names. One at a time comes
/// from the device.
void write_set(const std::string& folder, const char* name, const nn::ParameterList& parameters,
               DType dtype, std::uint64_t max_file_bytes, const Getter& get,
               const Head& head = {}) {
  std::vector<io::TensorView> views;
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string full = std::string(head.prefix) + parameters[i]->name;
    views.push_back({full, std::string(dtype_name(dtype)), parameters[i]->shape(), {}});
    places[full] = i;
  }
  Tensor held;
  const auto fetch = [&](const io::TensorView& view) {
    held = get(places.at(view.name)).to(Device::cpu);
    return std::span<const std::byte>(held.data<std::byte>(), held.bytes());
  };
  io::write_safetensors(folder, name, views, max_file_bytes, fetch, head.metadata);
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

std::string write_checkpoint(const std::string& run, std::int64_t step, const Json& config,
                             const Optimizer& optimizer, const Json& train,
                             std::uint64_t max_file_bytes,
                             const std::map<std::string, std::string>& adapters) {
  const std::string target = checkpoint_path(run, step);
  const std::string parent = io::dir_name(target);
  const std::string temporary = io::join_path(parent, "." + io::base_name(target) + ".tmp");
  remove_tree(temporary);
  const std::string model_folder = io::join_path(temporary, "model");
  const std::string state_folder = io::join_path(temporary, "state");
  io::make_directories(model_folder);
  io::make_directories(state_folder);

  const nn::ParameterList& parameters = optimizer.parameters();
  io::write_file(io::join_path(model_folder, "config.json"), dump_json_pretty(config));
  const auto value = [&](std::size_t i) { return parameters[i]->read(); };
  if (adapters.empty()) {
    write_set(model_folder, models::kWeightsName, parameters, DType::f32, max_file_bytes, value);
  } else {
    const std::string lora_folder = models::lora_folder(temporary);
    io::make_directories(lora_folder);
    write_set(lora_folder, models::kLoraName, parameters, DType::f32, ~std::uint64_t{0}, value,
              {models::kLoraPrefix, adapters});
    write_set(lora_folder, models::kPeftName, parameters, DType::f32, ~std::uint64_t{0}, value,
              {models::kPeftPrefix, {}});
    const std::string base = get_string(train.value("init", Json()), "path").value_or("");
    io::write_file(io::join_path(lora_folder, "adapter_config.json"),
                   dump_json_pretty(models::peft_config(models::lora_settings(adapters), base)));
  }
  const auto write_state = [&](const char* name, const std::vector<Tensor>& tensors) {
    write_set(state_folder, name, parameters, tensors.front().dtype(), max_file_bytes,
              [&](std::size_t i) { return tensors[i]; });
  };
  write_state("adam_m", optimizer.m);
  write_state("adam_v", optimizer.v);
  if (optimizer.has_ema()) write_state("ema", optimizer.ema());
  io::write_file(io::join_path(temporary, "train.json"), dump_json_pretty(train));
  io::write_file(io::join_path(temporary, "COMPLETE"), make_complete(temporary));

  remove_tree(target);  // only a damaged one, or one of a run that went another way
  if (std::rename(temporary.c_str(), target.c_str()) != 0)
    fail_output(errno, "cannot create '{}'", target);
  io::sync_directory(parent);
  return target;
}

void read_checkpoint(const std::string& folder, const Optimizer& optimizer) {
  const nn::ParameterList& parameters = optimizer.parameters();
  const std::string state = io::join_path(folder, "state");
  const bool adapters = models::has_adapters(folder);
  std::vector<models::TensorTarget> values;
  for (nn::Parameter* parameter : parameters) {
    values.push_back(models::value_target(*parameter));
    if (adapters) values.back().name.insert(0, models::kLoraPrefix);
  }
  models::load_tensors(
      adapters ? io::SafetensorsSet(models::lora_folder(folder), models::kLoraName)
               : io::SafetensorsSet(io::join_path(folder, "model"), models::kWeightsName),
      values);
  const auto load = [&](const char* set, const std::vector<Tensor>& tensors) {
    std::vector<models::TensorTarget> targets;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      targets.push_back(
          {parameters[i]->name, parameters[i]->shape(),
           [&tensors, i](const Tensor& t) { copy(t.to(tensors[i].dtype()), tensors[i]); }});
    models::load_tensors(io::SafetensorsSet(state, set), targets);
  };
  load("adam_m", optimizer.m);
  load("adam_v", optimizer.v);
  if (optimizer.has_ema()) load("ema", optimizer.ema());
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
