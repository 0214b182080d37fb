// Muon: matrices of blocks move by their momentum made orthogonal.
//
//   m = momentum m + g;  O = orthogonalize(g + momentum m)
//   w = w (1 - lr weight_decay) - lr 0.2 sqrt(max(rows, columns)) O
//
// The momentum is Nesterov's. The factor gives an update the size of AdamW's, so its learning rate
// and weight decay serve both. A matrix is a parameter: queries, keys and values are apart, heads
// are together. What the whole matrix is gathered for is orthogonalize()
// (ops/optim/orthogonalize.h) alone; it computes in the type of the network. Sources: Jordan et
// al., "Muon: an optimizer for hidden layers in neural networks" (2024); Liu et al., "Muon is
// scalable for LLM training" (2025), which has the factor and the decay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/state/optimizer_kinds.h"

namespace vfm::train {

const UpdateRule& muon_rule();

}  // namespace vfm::train
