// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/qwen_weights.h"

#include "base/error.h"
#include "models/encoder/encoder_folder.h"
#include "models/encoder/encoder_stack.h"
#include "models/folder/load_tensors.h"
#include "ops/matmul/quantize.h"
#include "tensor/meta.h"

namespace vfm::models {

QwenLinear QwenWeights::linear(const std::string& name) const {
  const io::TensorView& view = *set_.find(name + ".weight");
  const bool gpu = layout_device(device()) == Device::cuda;
  QwenLinear linear;
  linear.compute = compute();
  if (set_.find(name + ".bias") != nullptr) linear.bias = vector(name + ".bias");
  const std::optional<BlockFormat> blocks = block_format(view.dtype);
  if (blocks && int8_)
    fail_usage("'{}' of '{}' is {}: what is stored in few bits is not rounded again, to int8",
               view.name, set_.path(), view.dtype);
  if (blocks && !gpu) {
    linear.blocks = blocks;
    linear.weight = stored_blocks(view, device()).bytes;
    return linear;
  }
  const auto matrix = [&](DType dtype) {
    const Tensor all = use_weight(view, dtype, device());
    if (device() == Device::cuda) set_.release(view);
    return all.reshape({all.size(0), all.elements() / all.size(0)});
  };
  // What a GPU has no products for is made what it computes in.
  const DType stored = is_coded(view) ? compute() : float_type(view.dtype);
  const DType held = gpu && stored == DType::f16 ? compute() : stored;
  if (int8_) {
    const Tensor all = matrix(stored == DType::f16 ? DType::f32 : stored);
    const ops::QuantizedRows rows =
        ops::quantize_rows(all, ops::largest_of_rows(all), ops::RowFormat::int8);
    linear.weight = rows.values;
    linear.scales = rows.scales;
  } else {
    linear.weight = matrix(compute() == DType::f32 ? held : compute());
  }
  return linear;
}

Tensor QwenWeights::vector(const std::string& name) const {
  return use_weight(*set_.find(name), DType::f32, device());
}

Tensor QwenWeights::rows(const std::string& name, std::span<const std::int32_t> numbers) const {
  return table_rows(*set_.find(name), numbers, device(), set_.path());
}

}  // namespace vfm::models
