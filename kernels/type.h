// The type of the elements of a kernel's matrices, where it is a choice. lib/tensor/kernel_type.h
// makes it of a tensor's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::kernels {

enum class Type { f32, bf16 };

}  // namespace vfm::kernels
