// 8-bit floats with factors, as ComfyUI and its relatives write the weights of a model into a
// safetensors file:
//
//   NAME.weight        F8_E4M3 or F8_E5M2 [O, I]
//   NAME.scale_weight  or NAME.weight_scale: F32, F16 or BF16, one number or one for each of O
//   rows.
//                      A value is a stored value times its factor. Without such a tensor, the
//                      values are those stored.
//   NAME.scale_input, NAME.input_scale, scaled_fp8, NAME.comfy_quant
//                      what other programs need for products in 8 bits; ignored here. comfy_quant
//                      is JSON bytes, whose "format" must be float8_e4m3fn or float8_e5m2.
// Sources: files of Comfy-Org and Kijai on Hugging Face; ComfyUI's names of these tensors.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "io/tensor_set.h"

namespace vfm::models {

/// The set without the tensors of factors, which its other views have as TensorView::scales. A set
/// without any such tensor is returned as it is. No weight is read. Throws Error for factors
/// without a weight in 8-bit floats, of another number, or of another format.
std::unique_ptr<io::TensorSet> take_scales(std::unique_ptr<io::TensorSet> set);

}  // namespace vfm::models
