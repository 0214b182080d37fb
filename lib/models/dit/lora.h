// Chooses the matrices of a diffusion network that get adapters (low-rank adaptation).
// models/decoder/decoder_lora.h does so for a decoder.
//
// A target is the name of a matrix, or the last words of the name, as in peft: "to_q" names the
// matrices of every attention of every block, "attn1.to_q" those of self-attention alone.
// ops/matmul/low_rank.h computes adapters; models/folder/lora_file.h reads and writes their files.
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
  /// Names of matrices, or their last words. Empty: those of the architecture or decoder.
  std::vector<std::string> targets;
};

/// A matrix [rows, columns] of a network.
struct NetworkMatrix {
  std::string module;
  std::int64_t rows = 0, columns = 0;
};

/// Returns all matrices of a network of this configuration: those in no block, then block by block.
/// Does not allocate the network's memory.
std::vector<NetworkMatrix> network_matrices(const NetworkConfig& config);

/// Returns true if `target` is the name of the module, or the last words of that name.
bool names_module(std::string_view target, std::string_view module);

/// Returns the matrices of `all` that the targets name. If a target names none, throws
/// Error{usage}, which lists the last words that exist.
std::vector<NetworkMatrix> named_matrices(const std::vector<NetworkMatrix>& all,
                                          const std::vector<std::string>& targets);
/// Returns an adapter for each of the matrices.
std::vector<nn::AdapterShape> adapter_shapes(const std::vector<NetworkMatrix>& matrices,
                                             const LoraOptions& options);

/// Returns the options' targets, or the default targets if the options have none.
std::vector<std::string> lora_target_names(const NetworkConfig& config, const LoraOptions& options);

/// Returns the matrices that the options' targets name. Throws what named_matrices() throws.
std::vector<NetworkMatrix> lora_targets(const NetworkConfig& config, const LoraOptions& options);

/// Returns an adapter for each of lora_targets(). Throws what lora_targets() throws.
std::vector<nn::AdapterShape> lora_shapes(const NetworkConfig& config, const LoraOptions& options);

}  // namespace vfm::models
