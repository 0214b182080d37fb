// The weights of a Qwen2.5-VL as its folder has them.
//
// On the CPU matrices stay as the file has them, mapped. Only for products in bf16 what is f32 or
// f16 is converted, once, when the model is opened, and kept in memory; or all are rounded to 8
// bits then (ops/matmul/quantize_rows.h). A GPU gets a copy of each: f32 or bf16 as they are
// stored, in bf16 where products are, or in 8 bits; f16 and blocks (base/block_format.h), for which
// it has no products, in the type of products. Of a table whose rows are asked for by number only
// these go there. Vectors are f32. Thread-safety: const members from any thread; a GPU, one thread
// at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/tensor_set.h"
#include "models/vlm/qwen_linear.h"

namespace vfm::models {

class QwenWeights final : public QwenMatrices {
 public:
  /// `set` must outlive it, and hold the tensors that are asked for.
  /// `int8`: matrices are rounded to 8 bits; linear() throws Error{usage} for one that is stored in
  /// so few already. On Device::meta only headers are read.
  QwenWeights(const io::TensorSet& set, DType compute, bool int8 = false,
              Device device = Device::cpu)
      : QwenMatrices(compute, device), set_(set), int8_(int8) {}

  QwenLinear linear(const std::string& name) const override;
  Tensor vector(const std::string& name) const override;
  Tensor rows(const std::string& name, std::span<const std::int32_t> numbers) const override;

 private:
  const io::TensorSet& set_;
  bool int8_;
};

}  // namespace vfm::models
