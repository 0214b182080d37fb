// The cost of a pass through the network for one of the ranks that share it, and the time of their
// exchanges on GPUs, which need not exist. Everything is counted on Device::meta, as in
// models/dit/network_cost.h. Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "generate/ranks/clip_ranks.h"
#include "models/dit/network_cost.h"
#include "models/predict.h"

namespace vfm::generate {

/// The network and its input.
struct SharedPassWork {
  const models::NetworkConfig& network;
  const std::vector<std::vector<nn::AdapterShape>>& adapters;
  models::NetworkSample sample;
  std::int64_t samples = 1;  ///< samples in the batch; two with guidance
  DType compute = DType::f32;
  models::Fp8Parts fp8;
  Device device = Device::cpu;
  std::optional<ops::RowFormat> quantize = {};
};

struct SharedPass {
  models::PartCost cost;  ///< cost of the leading rank
  /// Times that the leading rank waits for other ranks, by kind of exchange, if `gpu` is given.
  std::vector<models::TimeLine> exchanges;

  /// Multiplies the work and the exchanges, as of `times` passes.
  void repeat(double times);
  /// Adds the work and the exchanges of `times` other passes. Memory stays as it is.
  void add(const SharedPass& more, double times);
};

/// The decoder and the video that it writes.
struct SharedWritingWork {
  const models::DecoderConfig& decoder;
  const std::vector<std::vector<nn::AdapterShape>>& adapters;
  models::CodeSample sample;
  DType compute = DType::f32;
  Device device = Device::cpu;
};
/// The same for a decoder that writes all codes. Of a pipeline it is the stage with the most
/// memory, while as many videos are written as there are stages. Throws Error{usage} if the ranks
/// cannot share it.
SharedPass shared_writing(const SharedWritingWork& work, const dist::Layout& parallel,
                          const models::Gpu* gpu);

/// Exchanges of ring attention overlap with attention, except for one part of the keys. Exchanges
/// of tp overlap as far as the table says. Gathered blocks (with shards) overlap with computation,
/// except for one block. The batch goes from host to host. `parallel` leaves nothing open in cp.
/// Throws Error{usage} if the ranks cannot share it. `gpu` may be null.
SharedPass shared_pass(const SharedPassWork& work, const dist::Layout& parallel,
                       const models::Gpu* gpu);

}  // namespace vfm::generate
