// The weights of a Qwen2.5-VL as they are used, and the sums that its two parts have in common.
//
// Matrices stay as the file has them, mapped: of a few rows, as when a text is written, products
// read them so (ops/matmul/few_rows.h, block_rows.h); of many they are converted some outputs at a
// time. Only for products in bf16 what is f32 or f16 is converted, once, when the model is opened,
// and kept in memory; or all are rounded to 8 bits then (ops/matmul/quantize_rows.h). All else is
// f32. On the CPU, or on Device::meta, where what it would cost is counted.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/block_format.h"
#include "io/tensor_set.h"
#include "ops/tape.h"
#include "tensor/tensor.h"

namespace vfm::models {

/// y = W x + b of a file's matrix; without b where it has none.
struct QwenLinear {
  Tensor weight;               ///< [O, I] f32, bf16 or f16; u8: codes, with their scales, or blocks
  Tensor scales, bias;         ///< [O] f32, or undefined
  DType compute = DType::f32;  ///< what x and W are rounded to before they are multiplied
  /// Of `weight` [O, bytes of a row], where those are blocks.
  std::optional<BlockFormat> blocks = {};

  /// x [N, I] f32; [N, O] f32. Of up to ops::kFewRows rows the bits of one do not depend on others.
  Tensor operator()(const Tensor& x) const;
  /// The same of many rows, into columns of `all` [N, more than O] f32 from column `first` on.
  void into(const Tensor& x, const Tensor& all, std::int64_t first) const;
};

class QwenWeights {
 public:
  /// `set` must outlive it, and hold the tensors that are asked for.
  /// `int8`: matrices are rounded to 8 bits; linear() throws Error{usage} for one that is stored in
  /// so few already. `device`: cpu, or meta, where only headers are read.
  QwenWeights(const io::TensorSet& set, DType compute, bool int8 = false,
              Device device = Device::cpu)
      : set_(set), compute_(compute), int8_(int8), device_(device) {}

  DType compute() const { return compute_; }
  Device device() const { return device_; }
  /// NAME.weight, a matrix of its first dimension by all others, and NAME.bias.
  QwenLinear linear(const std::string& name) const;
  /// In f32.
  Tensor vector(const std::string& name) const;

 private:
  const io::TensorSet& set_;
  DType compute_;
  bool int8_;
  Device device_;
};

/// W_down (silu(W_gate x) * (W_up x)), x [N, D] f32; some rows at a time.
struct QwenFeedForward {
  QwenLinear gate, up, down;
  static QwenFeedForward from(const QwenWeights& weights, const std::string& prefix);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor both(const Tensor& x) const;
};

/// x / rms(x) * weight, of rows.
Tensor qwen_norm(const Tensor& x, const Tensor& weight, float epsilon);

/// Rows of tensors [N, *] f32 beside each other.
Tensor beside(const Tensor& left, const Tensor& right);

/// Turns the first `heads` heads of each row of x [N, >= heads K] f32: (a, b), the halves of a
/// head, become (a cos - b sin, b cos + a sin). cosines and sines [N, K / 2] f32.
void turn_heads(const Tensor& x, int heads, const Tensor& cosines, const Tensor& sines);

}  // namespace vfm::models
