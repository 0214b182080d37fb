// The MLP of a block, W_down a(W_up x), with biases or without. Ranks of tp divide the hidden
// columns.
// Shape letters: S tokens, D width, F hidden width.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/linear.h"

namespace vfm::nn {

/// GELU in its exact form, or with tanh; max(x, 0)^2; SwiGLU of two projections in one product.
enum class Activation { gelu, tanh_gelu, squared_relu, swiglu };

/// The activation of a hidden tensor, [S, F] or, for two projections, [S, 2 F].
Operand activated(Activation activation, const Tensor& hidden);

/// Returns feed(x), [S, any], for inference: some rows at a time go through `feed`, an MLP of
/// hidden width `hidden`, so that memory never has the hidden values of all.
Tensor feed_by_rows(const Tensor& x, std::int64_t hidden,
                    const std::function<Tensor(const Tensor& rows)>& feed);

struct MlpShape {
  std::int64_t width = 0, hidden = 0;
  Activation activation = Activation::gelu;
  std::optional<DType> out = {};  ///< LinearOptions::out of the result; only with SwiGLU
  bool bias = false;              ///< of all matrices
};

class Mlp {
 public:
  /// The matrices are UP.weight [F, D] for each name in `up`, two for SwiGLU, and DOWN.weight
  /// [D, F]. Their biases are UP.bias and DOWN.bias.
  Mlp(WeightMaker& make, const std::vector<std::string>& up, const std::string& down,
      const MlpShape& shape);
  Tensor forward(ops::Tape& tape, const Operand& x, const Pass& pass) const;

 private:
  Activation activation_;
  Linear up_, down_;
};

}  // namespace vfm::nn
