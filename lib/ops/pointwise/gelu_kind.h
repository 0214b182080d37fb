// The variants of GELU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// Formulas in text_activations.h.
enum class Gelu { tanh, erf, quick };

}  // namespace vfm::ops
