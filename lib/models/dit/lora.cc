// SPDX-License-Identifier: Apache-2.0
#include "models/dit/lora.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "models/dit/architecture.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

/// "to_q" of "attn1.to_q", "to_out.0" of "attn1.to_out.0".
std::string last_word(const std::string& module) {
  std::size_t dot = module.rfind('.');
  if (dot != std::string::npos && dot + 2 == module.size()) dot = module.rfind('.', dot - 1);
  return dot == std::string::npos ? module : module.substr(dot + 1);
}

}  // namespace

std::vector<NetworkMatrix> network_matrices(const NetworkConfig& config) {
  constexpr std::string_view kEnd = ".weight";
  const MetaAccount apart(Device::cpu);  // what it would take counts nowhere
  const auto network = make_network(config, 0, DType::f32, Device::meta, false);
  std::vector<NetworkMatrix> all, of_blocks;
  for (const nn::Parameter* parameter : network->parameters()) {
    // Weights that do not decay are norms and tables.
    if (!parameter->decay || parameter->shape().size() != 2) continue;
    std::string module = parameter->name.substr(0, parameter->name.size() - kEnd.size());
    (block_of(module) ? of_blocks : all)
        .push_back({std::move(module), parameter->shape()[0], parameter->shape()[1]});
  }
  all.insert(all.end(), of_blocks.begin(), of_blocks.end());
  return all;
}

bool names_module(std::string_view target, std::string_view module) {
  if (target.empty() || !module.ends_with(target)) return false;
  return module.size() == target.size() || module[module.size() - target.size() - 1] == '.';
}

std::vector<std::string> lora_target_names(const NetworkConfig& config,
                                           const LoraOptions& options) {
  if (!options.targets.empty()) return options.targets;
  const auto usual = config.architecture->lora_targets;
  return {usual.begin(), usual.end()};
}

std::vector<NetworkMatrix> named_matrices(const std::vector<NetworkMatrix>& all,
                                          const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    const auto named = [&](const NetworkMatrix& m) { return names_module(target, m.module); };
    if (std::ranges::any_of(all, named)) continue;
    std::set<std::string> words;
    for (const NetworkMatrix& m : all)
      words.insert(last_word(m.module));
    std::string list;
    for (const std::string& word : words)
      list += (list.empty() ? "" : ", ") + word;
    fail_usage("'lora.targets': no matrix of the model is called '{}'; there are {}", target, list);
  }
  std::vector<NetworkMatrix> chosen;
  for (const NetworkMatrix& m : all)
    if (std::ranges::any_of(targets,
                            [&](const std::string& t) { return names_module(t, m.module); }))
      chosen.push_back(m);
  return chosen;
}

std::vector<nn::AdapterShape> adapter_shapes(const std::vector<NetworkMatrix>& matrices,
                                             const LoraOptions& options) {
  std::vector<nn::AdapterShape> shapes;
  const double alpha = options.alpha > 0 ? options.alpha : options.rank;
  for (const NetworkMatrix& m : matrices)
    shapes.push_back({m.module, options.rank, static_cast<float>(alpha / options.rank)});
  return shapes;
}

std::vector<NetworkMatrix> lora_targets(const NetworkConfig& config, const LoraOptions& options) {
  return named_matrices(network_matrices(config), lora_target_names(config, options));
}

std::vector<nn::AdapterShape> lora_shapes(const NetworkConfig& config, const LoraOptions& options) {
  return adapter_shapes(lora_targets(config, options), options);
}

}  // namespace vfm::models
