// The variants of GELU, and squared ReLU, which stands in its place in an MLP.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// Formulas in activations.h.
enum class Gelu { tanh, erf, quick, squared_relu };

}  // namespace vfm::ops
