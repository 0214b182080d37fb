// DType as kernels/ says it, which knows nothing of lib/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/dtype.h"

namespace vfm {

namespace kernels {
enum class Type;  // kernels/type.h
}

/// Throws Error for a type that no kernel takes.
kernels::Type kernel_type(DType dtype);

}  // namespace vfm
