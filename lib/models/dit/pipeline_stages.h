// Balances a pipeline: chooses how many blocks each chunk gets, so that all chunks take about
// equally long.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/decoder/decoder.h"
#include "models/dit/network.h"

namespace vfm::models {

/// What the parts of a network are.
struct PartWork {
  double embed = 0, head = 0;   ///< operations, forward and backward together
  std::vector<double> blocks;   ///< the same of each block
  std::vector<double> weights;  ///< the blocks' shares of the weights, in any unit
};

/// Returns the work for a pack of these samples, counted by running one block of each kind on
/// Device::meta. The embedding of noise levels and positions is not counted: it is small, and every
/// stage computes it.
PartWork part_work(const NetworkConfig& config, const std::vector<NetworkSample>& samples,
                   DType compute);
PartWork part_work(const DecoderConfig& config, const CodeSample& sample, DType compute);

/// Returns the number of blocks of each of pp·vpp chunks, such that the chunk with the most work
/// has the least possible. The first chunk also has the embedding, and the last chunk the head. If
/// all blocks have the same work, a block goes among chunks with equal work to the chunk whose rank
/// has less work, then to the later chunk, whose rank keeps fewer microbatches. Otherwise the sum
/// of the squares of the chunks' work is the least possible as well. Throws Error{usage} for fewer
/// blocks than chunks.
std::vector<int> balance_stages(const PartWork& work, int pp, int vpp);

/// Returns the layout of a decoder that ranks of tp and pp share to write codes (CodeWriter): tp
/// divides outputs, and the stages take about equally long for a code. Throws what
/// balance_stages() throws.
nn::NetworkLayout writing_layout(const DecoderConfig& config, nn::NetworkLayout layout);

}  // namespace vfm::models
