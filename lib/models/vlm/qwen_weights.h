// The weights of Qwen2.5-VL from its folder.
//
// On the CPU matrices stay as the file has them, mapped. There are two exceptions, made once when
// the model is opened and kept in memory. For products in bf16, f32 and f16 are converted. With
// int8 all matrices are rounded to 8 bits (ops/matmul/quantize.h).
// A GPU gets a copy of each matrix: f32 or bf16 as stored, bf16 if products are in bf16, or 8 bits.
// f16 and blocks (base/block_format.h), for which it has no products, are converted to the type of
// products. If a table is read by row number, only the requested rows are copied to the GPU.
// Vectors are f32.
// Thread-safety: const members from any thread; on a GPU one thread at a time.
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
  /// `set` must outlive this object and hold the requested tensors. `int8`: matrices are rounded to
  /// 8 bits; linear() throws Error{usage} for a matrix that is stored in 8 bits or fewer. On
  /// Device::meta only headers are read.
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
