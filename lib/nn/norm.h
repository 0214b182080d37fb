// The norms between the residual stream and the sub-layers.
//
// of() adds what is pending in the stream and norms the sum, as the operand of the sub-layer's
// first product (nn/operand.h). The stream is changed when the product asks for the operand.
// AdaptiveNorm is a layer norm or RMS norm n, then n (1 + scale) + shift. It leaves gates in the
// stream for the branch to come. Norm has weights: it is an RMS norm, or a layer norm with a bias,
// too. NoNorm gives the stream itself.
// After these two the branch has no gates.
// Shape letters: S tokens, D width, R rows of modulations, such as samples or frames.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "nn/modulation.h"
#include "nn/operand.h"
#include "nn/stream.h"
#include "nn/weight_maker.h"

namespace vfm::nn {

struct AdaptiveNormOptions {
  float epsilon = 1e-6f;
  bool centred = true;  ///< true: layer norm; false: RMS norm
};

class AdaptiveNorm {
 public:
  /// `compute` is the type of the result. Without a modulation of its own the norm is given one.
  AdaptiveNorm(std::optional<Modulation> modulation, DType compute,
               const AdaptiveNormOptions& options)
      : modulation_(std::move(modulation)), compute_(compute), options_(options) {}
  Operand of(ops::Tape& tape, Stream& x, const Conditions& conditions) const {
    return of(x, modulation_.value().forward(tape, conditions), 0, conditions);
  }
  /// Norm `number` of a block whose norms share `modulation`, [R, P D] with three parts each.
  Operand of(Stream& x, const Tensor& modulation, int number, const Conditions& conditions) const;

 private:
  std::optional<Modulation> modulation_;
  DType compute_;
  AdaptiveNormOptions options_;
};

class Norm {
 public:
  /// The weights [D] are the parameter NAME.weight. If `centred`, this is a layer norm, whose bias
  /// [D] is NAME.bias; else an RMS norm.
  Norm(WeightMaker& make, const std::string& name, std::int64_t width, float epsilon,
       bool centred = false);
  Operand of(ops::Tape& tape, Stream& x) const;

 private:
  const Weight& weight_;
  const Weight* bias_ = nullptr;  // of a layer norm
  float epsilon_;
  DType compute_;
};

struct NoNorm {
  Operand of(Stream& x) const;
  DType compute = DType::f32;
};

}  // namespace vfm::nn
