// The objective of autoregressive training. A decoder of discrete latents
// (models/decoder/decoder.h) predicts every code from the codes before it. The loss is the
// cross-entropy with a z-loss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "train/step/objective.h"

namespace vfm::train {

/// See Kind::make_objective(). The sums of its losses are over codes; divided by the number of
/// codes they are nats a code.
std::unique_ptr<Objective> make_code_objective(const Recipe& recipe, nn::Recompute recompute,
                                               Device device, const nn::NetworkLayout& layout);

}  // namespace vfm::train
