// Which matrices of a diffusion network adapters go to (low-rank adaptation); those of a decoder
// are in models/decoder/decoder_lora.h.
//
// A target is the name of a matrix, or its last words, as peft has it: "to_q" is that of every
// attention of every block, "attn1.to_q" that of self-attention. What an adapter computes is in
// ops/matmul/low_rank.h; its files are in models/folder/lora_file.h.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/dit/network.h"
#include "nn/attached_adapters.h"

namespace vfm::models {

struct LoraOptions {
  int rank = 0;      ///< 0: no adapters
  double alpha = 0;  ///< B A is scaled by alpha / rank; 0: by 1
  /// Empty: the projections of every attention.
  std::vector<std::string> targets;
};

/// A matrix [rows, columns] of a network.
struct NetworkMatrix {
  std::string module;
  std::int64_t rows = 0, columns = 0;
};

/// All matrices of a network of this configuration, without building it, in no particular order.
std::vector<NetworkMatrix> network_matrices(const NetworkConfig& config);

/// Whether `target` names the module: it is the module, or its last words.
bool names_module(std::string_view target, std::string_view module);

/// Those of `all` that the targets name. Throws Error{usage} for a target that names none, saying
/// which last words there are.
std::vector<NetworkMatrix> named_matrices(const std::vector<NetworkMatrix>& all,
                                          const std::vector<std::string>& targets);
/// An adapter on each of the matrices.
std::vector<nn::AdapterShape> adapter_shapes(const std::vector<NetworkMatrix>& matrices,
                                             const LoraOptions& options);

/// The options' targets, or what they are by default.
std::vector<std::string> lora_target_names(const NetworkConfig& config, const LoraOptions& options);

/// The matrices that the options' targets name. Throws what named_matrices() throws.
std::vector<NetworkMatrix> lora_targets(const NetworkConfig& config, const LoraOptions& options);

/// An adapter on each of lora_targets(). Throws what that throws.
std::vector<nn::AdapterShape> lora_shapes(const NetworkConfig& config, const LoraOptions& options);

}  // namespace vfm::models
