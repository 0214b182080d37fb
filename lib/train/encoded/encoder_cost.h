// What the encoders of clips cost beside the training: for vfm-train cost, and for the memory that
// is left to the model. By headers and Device::meta (models/part_cost.h), no weights are read.
// Thread-safety: free functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "data/sample_index.h"
#include "models/gpu_table.h"
#include "models/part_cost.h"
#include "models/predict.h"
#include "train/encoded/encoders.h"

namespace vfm::train {

/// The memory is that of the largest sample, the work that of the mean one: as much less as it has
/// fewer latent pixels, or tokens, than the largest.
struct EncoderCost {
  std::string_view part;  ///< "tokenizer" or "text encoder"
  std::string name;       ///< of its configuration
  models::PartCost cost;
};
/// The tokenizer's, and the text encoder's where captions are encoded.
std::vector<EncoderCost> encoder_costs(const Encoders& encoders, const data::SampleIndex& index);

/// Bytes of the device that encoding takes: weights, and for a while activations.
double encoder_bytes(const std::vector<EncoderCost>& costs);

/// [{"part", "name", "parameters", "weight_bytes", "activation_bytes", "flops_per_step"}, ...], of
/// so many samples a step on all ranks.
Json encoder_json(const std::vector<EncoderCost>& costs, double samples_a_step);
/// A line for each, of the share of one of `ranks`, which encode on that GPU before each step.
std::vector<models::TimeLine> encoder_lines(const std::vector<EncoderCost>& costs,
                                            double samples_a_step, int ranks,
                                            const models::Gpu& gpu);

}  // namespace vfm::train
