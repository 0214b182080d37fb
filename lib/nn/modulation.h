// Makes shift, scale and gate (adaLN) from the noise level, one row for each sample, frame or
// token. Norms and gates of a diffusion transformer read them.
//
//   modulation = W2 (W1 e) + shared      W1 and `shared` may be missing
//   modulation = table + shared          a table of the block's own, as in Wan
//
// Sources: Peebles and Xie, "Scalable diffusion models with transformers" (2023); Wan Team, "Wan:
// open and advanced large-scale video generative models" (2025).
// Shape letters: R rows of modulations, D width, P parts: 3 (shift, scale, gate), or 2 without
// gate.
// Thread-safety: one thread, that of the tape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/linear.h"
#include "ops/norm/row_map.h"

namespace vfm::nn {

/// The tensors that all modulations of a pass are made of, f32.
struct Conditions {
  Tensor embedding;  ///< e, [R, D]
  Tensor shared;     ///< [R, P D or more], whose first columns are added; undefined: nothing is
  Tensor ones;       ///< [R, D], the gates of branches without gates; undefined: all have gates
  ops::RowMap rows;  ///< row of each token
};

class Modulation {
 public:
  /// P parts from one matrix, NAME.weight [P D, D].
  Modulation(WeightMaker& make, const std::string& name, std::int64_t width, int parts);
  /// From two, DOWN.weight [rank, D] and UP.weight [P D, rank].
  Modulation(WeightMaker& make, const std::string& down, const std::string& up, std::int64_t width,
             int parts, int rank);
  /// From the table `name`, [1, P, D].
  static Modulation of_table(WeightMaker& make, const std::string& name, std::int64_t width,
                             int parts);

  /// Returns [R, P D].
  Tensor forward(ops::Tape& tape, const Conditions& conditions) const;

 private:
  explicit Modulation(const Weight& table) : table_(&table) {}

  std::optional<Linear> down_, up_;
  const Weight* table_ = nullptr;
};

struct TimeEmbeddingOptions {
  std::optional<std::int64_t> wave = {};  ///< W; none: D
  bool bias = false;                      ///< of both matrices
};

/// The embedding of a noise level or frame rate, W2 SiLU(W1 wave), with the matrices NAME.linear_1
/// [D, W] and NAME.linear_2 [O, D].
class TimeEmbedding {
 public:
  TimeEmbedding(WeightMaker& make, const std::string& name, std::int64_t width,
                std::int64_t outputs, const TimeEmbeddingOptions& options = {});
  /// `wave` [R, W] is the sinusoid of the numbers (ops/position/positions.h). Returns [R, O].
  Tensor forward(ops::Tape& tape, const Tensor& wave) const;

 private:
  Linear first_, second_;
};

}  // namespace vfm::nn
