// The cost of the encoders of clips beside the training: for vfm-train cost, and for the memory
// that is left to the model. Uses headers and Device::meta (models/part_cost.h), and reads no
// weights. Thread-safety: free functions.
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

/// The memory is that of the largest sample. The work is that of the mean sample: the work of the
/// largest, scaled by latent pixels or tokens.
struct EncoderCost {
  std::string_view part;  ///< "tokenizer" or "text encoder"
  std::string name;       ///< name in the encoder's configuration
  models::PartCost cost;
};
/// The cost of the tokenizer, and of the text encoder if captions are encoded.
std::vector<EncoderCost> encoder_costs(const Encoders& encoders, const data::SampleIndex& index);

/// Bytes of the device that encoding takes: weights, and the largest activations.
double encoder_bytes(const std::vector<EncoderCost>& costs);

/// [{"part", "name", "parameters", "weight_bytes", "activation_bytes", "flops_per_step"}, ...], for
/// `samples_a_step` samples a step on all ranks.
Json encoder_json(const std::vector<EncoderCost>& costs, double samples_a_step);
/// One line for each encoder: the time of one rank's share of a step. `ranks` ranks encode on such
/// GPUs before each step.
std::vector<models::TimeLine> encoder_lines(const std::vector<EncoderCost>& costs,
                                            double samples_a_step, int ranks,
                                            const models::Gpu& gpu);

}  // namespace vfm::train
