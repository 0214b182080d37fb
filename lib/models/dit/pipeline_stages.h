// How many blocks each chunk of a pipeline gets, so that all take about as long.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/decoder/decoder.h"
#include "models/dit/network.h"

namespace vfm::models {

/// Operations of the parts of a network, forward and backward.
struct PartWork {
  double embed = 0, block = 0, head = 0;
};

/// Of a pack of these samples, found by running a network of one block on Device::meta. What each
/// stage computes anew of noise levels and positions is not counted: it is small, and on all.
PartWork part_work(const NetworkConfig& config, const std::vector<NetworkSample>& samples,
                   DType compute);
PartWork part_work(const DecoderConfig& config, const CodeSample& sample, DType compute);

/// The blocks of each of pp·vpp chunks, of which the first has the embedding and the last the head,
/// with the least work of the chunk that has most. Of several alike the rank with less work gets a
/// block first, and the later chunk, whose rank keeps fewer microbatches. Throws Error{usage} for
/// fewer blocks than chunks.
std::vector<int> balance_stages(const PartWork& work, int blocks, int pp, int vpp);

}  // namespace vfm::models
