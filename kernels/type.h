// The element type of a kernel's matrices. lib/tensor/kernel_type.h converts a tensor's DType to
// it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::kernels {

enum class Type { f32, bf16 };

}  // namespace vfm::kernels
