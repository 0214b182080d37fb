// The norms between the residual stream and the sub-layers.
//
// of() adds what is pending in the stream and norms the sum, as the operand of the sub-layer's
// first product (nn/operand.h). The stream is changed when the product asks for the operand.
// AdaptiveNorm is a layer norm or RMS norm n, then n (1 + scale) + shift. It leaves gates in the
// stream for the branch to come. Norm is an RMS norm with weights. NoNorm gives the stream itself.
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

/// The result of AdaptiveNorm: see ops/norm/modulate.h.
class ModulatedStream final : public Operand {
 public:
  /// `stream` gets as gates the D columns of `input.modulation` after shift and scale.
  ModulatedStream(Stream& stream, ops::ModulateInput input) : stream_(stream), input_(input) {}
  Tensor values(ops::Tape& tape) override;
  ops::Quantized rounded(ops::Tape& tape) override;
  Tensor gathered(ops::Tape& tape, const ops::LinearWeight& w,
                  const ops::Exchange& gather) override;

 private:
  void leave(Tensor sum);

  Stream& stream_;
  const ops::ModulateInput input_;
};

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
  ModulatedStream of(ops::Tape& tape, Stream& x, const Conditions& conditions) const {
    return of(x, modulation_->forward(tape, conditions), 0, conditions);
  }
  /// Norm `number` of a block whose norms share `modulation`, [R, P D] with three parts each.
  ModulatedStream of(Stream& x, const Tensor& modulation, int number,
                     const Conditions& conditions) const;

 private:
  std::optional<Modulation> modulation_;
  DType compute_;
  AdaptiveNormOptions options_;
};

/// The result of Norm.
class NormedStream final : public Operand {
 public:
  NormedStream(Stream& stream, Tensor weight, float epsilon, DType compute)
      : stream_(stream), weight_(std::move(weight)), epsilon_(epsilon), compute_(compute) {}
  Tensor values(ops::Tape& tape) override;
  Tensor gathered(ops::Tape& tape, const ops::LinearWeight& w,
                  const ops::Exchange& gather) override;

 private:
  Stream& stream_;
  const Tensor weight_;
  const float epsilon_;
  const DType compute_;
};

class Norm {
 public:
  /// The weights [D] are the parameter NAME.weight.
  Norm(WeightMaker& make, const std::string& name, std::int64_t width, float epsilon);
  NormedStream of(ops::Tape& tape, Stream& x) const {
    return {x, weight_.op(tape), epsilon_, compute_};
  }

 private:
  const Weight& weight_;
  float epsilon_;
  DType compute_;
};

/// The result of NoNorm.
class BareStream final : public Operand {
 public:
  BareStream(Stream& stream, DType compute) : stream_(stream), compute_(compute) {}
  Tensor values(ops::Tape& tape) override;

 private:
  Stream& stream_;
  const DType compute_;
};

struct NoNorm {
  BareStream of(Stream& x) const { return {x, compute}; }
  DType compute = DType::f32;
};

}  // namespace vfm::nn
