// The activations between the two matrices of an MLP that take one value to one value: GELU, its
// approximations, and squared ReLU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// Formulas in activations.h.
enum class ActivationKind { gelu, tanh_gelu, quick_gelu, squared_relu };

}  // namespace vfm::ops
