// Runs a layer on ranks that are threads, forward and backward, and the formulas of layers in
// double.
//
// A pack has two samples. The stream before a layer is kInput, and kBefore is pending in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dist/world.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace vfm {

constexpr std::int64_t kTokens = 12, kLayerWidth = 16, kHead = 16, kText = 5, kTextWide = 24;
inline const std::vector<std::int64_t> kLengths = {7, 5}, kTexts = {2, 3};
constexpr nn::AttentionNames kLayerNames{"q", "k", "v", "q_norm", "k_norm", "out"};
inline const nn::HeadShape kLayerHeads{4, 2, kHead};
extern const Tensor kInput, kBefore;  // [tokens, width]
extern const Tensor kEmbedding;       // [2, width]
extern const Tensor kShared;          // [2, 3 width]
extern const Tensor kProjection;      // [2, 6 width]
extern const Tensor kWords;           // [text, text width]

struct LayerRanks {
  int tp = 1, cp = 1;
  nn::CpKind kind = nn::CpKind::gather;
  bool recompute = false;
  DType compute = DType::f32;
  int tp_chunks = 1;
};

/// What a layer is made and run with.
struct LayerRun {
  nn::WeightMaker& make;
  ops::Tape& tape;
  nn::Stream& x;
  nn::Conditions conditions;  ///< a row for each sample
  nn::SelfTokens self;
  nn::TextTokens text;
  std::vector<std::int64_t> tokens;  ///< this rank's, as rows of the pack
};
/// Makes a layer, and returns what it makes of the stream, for this rank's tokens.
using MakeAndRun = std::function<Tensor(LayerRun&)>;

struct LayerOutcome {
  Tensor y, dx;                                     ///< of the stream after and before
  std::map<std::string, Tensor> values, gradients;  ///< of whole parameters
};

ops::AttentionPack pack_of(std::vector<std::int64_t> queries, std::vector<std::int64_t> keys,
                           int ranks);
ops::RotaryAngles layer_angles();

/// Draws new values for the vectors made so far, which begin as zeros or ones.
void draw_vectors(const nn::WeightMaker& make);

/// One pass of the ranks. Gradients are the sums over the ranks that have the parameter's elements.
LayerOutcome run_layer(const LayerRanks& ranks, const MakeAndRun& layer);

/// Checks that a layer has the same bits if backward computes it again, and on several ranks the
/// same numbers. Returns the outcome of one rank that keeps all.
LayerOutcome check_layer(const MakeAndRun& layer, std::vector<LayerRanks> others = {});

using Doubles = std::vector<std::vector<double>>;

Doubles doubles(const Tensor& t);
Doubles times(const Doubles& x, const Tensor& matrix);
/// The product, plus `bias` if it is defined.
Doubles times(const Doubles& x, const Tensor& matrix, const Tensor& bias);
std::vector<double> joined(const Doubles& rows);
/// The stream before the layer, with what is pending.
Doubles stream_before();
std::vector<double> normed_row(std::vector<double> row, bool centred, double epsilon);
Doubles rms_normed(Doubles x);
double silu_of(double v);

/// Compares the stream with `gate(i, j)` times what the layer makes, and the stream before.
void check_formula(const LayerOutcome& outcome, const Doubles& made,
                   const std::function<double(std::size_t, std::size_t)>& gate);
void check_formula(const LayerOutcome& outcome, const Doubles& made);

nn::AttentionShape attention_shape_of(bool norms);
/// RMS norms of stretches of `width` columns. `weight` [width or all columns] may be undefined.
Doubles normed_stretches(Doubles x, std::size_t width, const Tensor& weight);
/// Heads turned by layer_angles().
Doubles rotated_heads(Doubles x, bool pairs);
/// Attention of heads that are normed and rotated already.
Doubles attended(const Doubles& q, const Doubles& k, const Doubles& v,
                 const std::vector<std::int64_t>& keys);

}  // namespace vfm
