// The types of a tensor's elements. Includes little, so that CPU kernels (ops/cpu/isa.h) may use
// it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace vfm {

enum class DType { f32, bf16, f16, i16, i32, i64, u8, f8e4m3 };

std::size_t dtype_size(DType dtype);
std::string_view dtype_name(DType dtype);  ///< as in safetensors: "F32", "F8_E4M3", ...

}  // namespace vfm
