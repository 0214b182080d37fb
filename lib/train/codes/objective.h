// Autoregressive training as an objective: a decoder of discrete latents
// (models/decoder/decoder.h), which predicts every code from those before it, and the cross-entropy
// with a z-loss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "train/step/objective.h"

namespace vfm::train {

/// As Kind::make_objective() says. The sums of its losses are over codes: divided by their number
/// they are nats a code.
std::unique_ptr<Objective> make_code_objective(const Recipe& recipe, models::Recompute recompute,
                                               Device device, const models::NetworkLayout& layout);

}  // namespace vfm::train
