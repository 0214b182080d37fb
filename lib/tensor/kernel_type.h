// Converts a DType to the type that kernels/ uses, which cannot include headers of lib/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/dtype.h"

namespace vfm {

namespace kernels {
enum class Type;  // kernels/type.h
}

/// Throws Error for a type that no kernel supports.
kernels::Type kernel_type(DType dtype);

}  // namespace vfm
