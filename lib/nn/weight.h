// A weight as an op takes it: one parameter, or several of one width stacked into one matrix, so
// that the projections to queries, keys and values are one product.
//
// Initialisation is a function of (seed, parameter name), so that equal names get equal values in
// any model, in any order; and a part of a parameter gets those of the whole one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "nn/block_shards.h"
#include "nn/parameter.h"
#include "nn/quantized_matrix.h"
#include "ops/exchange.h"
#include "ops/matmul/low_rank.h"
#include "ops/matmul/quantize.h"
#include "ops/tape.h"

namespace vfm::nn {

/// How the elements of a new parameter are drawn.
enum class Init {
  zero,
  one,
  xavier,  ///< uniform in +-sqrt(6 / (rows + columns))
  normal,  ///< standard deviation 0.02
  fan_in,  ///< uniform in +-1 / sqrt(elements / rows), as PyTorch draws convolutions
};

/// Draws the parameter's value, as that of a new one is drawn.
void draw(const Parameter& parameter, Init init, std::uint64_t seed);

/// How a model's weights are made.
struct WeightOptions {
  Init init = Init::xavier;
  DType compute = DType::f32;  ///< what op() gives: f32, or bf16 of a split master
  bool decay = true;           ///< Parameter::decay
  bool trainable = true;       ///< else there are no gradients, and no values before write()
  std::uint64_t seed = 0;
  Device device = Device::cpu;
  Cut cut = {};                ///< what of each parameter is here
  bool absent = false;         ///< nothing is: another stage of a pipeline has it
  bool on_all_stages = false;  ///< Parameter::on_all_stages
  StateShares state = {};      ///< of what is here, whose state; for what is trained
  /// For matrices of blocks that are gathered when they are needed; null: they are always here.
  BlockShards* blocks = nullptr;
  bool of_products = false;  ///< nothing but products takes it: quantize_rows() does something
  bool to_quantize = false;  ///< and it will be called: on a GPU the values wait on the host
};

class Weight {
 public:
  /// One tensor a name, all of shape `each`, one under the other. Shapes are of whole parameters,
  /// of which options.cut is made.
  Weight(std::vector<std::string> names, const Shape& each, const WeightOptions& options);
  /// Matrices of one width and different heights, one under the other.
  struct Part {
    std::string name;
    std::int64_t rows = 0;
  };
  Weight(std::vector<Part> parts, std::int64_t columns, const WeightOptions& options);

  Weight(const Weight&) = delete;  // parameters() are pointed to
  Weight& operator=(const Weight&) = delete;

  std::deque<Parameter>& parameters() { return parameters_; }
  /// What it computes in, and so what its adapters are to be of.
  DType dtype() const { return value_.dtype(); }

  /// Puts an adapter on parameters()[part], a matrix [O, I]: products add scale B A to it. `a` is
  /// [rank, I] and `b` [O, rank], of dtype(), and must outlive this.
  void attach(std::size_t part, const Weight& a, const Weight& b, float scale);

  /// What a product takes: the matrix and its adapters, watched by the tape. Not thread-safe.
  ops::LinearWeight matrix(ops::Tape& tape) const;
  /// The tensor alone, watched by the tape, for what is no product. Throws Error if it has
  /// adapters, which would have no effect. Not thread-safe.
  const Tensor& op(ops::Tape& tape) const;
  /// Watches what is trained, without the adapters.
  void watch(ops::Tape& tape) const;
  /// What is gathered for its block; null: it is always here. Then products alone can take it, it
  /// is watched before the first of them, and for each matrix() its block must have been entered.
  ShardedMatrix* sharded() const { return sharded_.get(); }
  /// Tells the tape that no op before uses it or its adapters, which are watched.
  void first_use(ops::Tape& tape) const;

  /// Makes a copy in FP8 of the value as it is now, for inference, or drops it. Call it again after
  /// changing the value. Of a part of a matrix or of what is multiplied by it `ranks` have the
  /// rest, and all round with the scale of the whole (nn/agreed_scale.h): then this and multiply()
  /// are collectives. What is gathered for its block is gathered in FP8. Throws Error{usage} if it
  /// has adapters. Not thread-safe.
  void keep_fp8(bool keep, dist::Group* ranks = nullptr) const;
  /// Keeps the matrix as 8-bit numbers from now on, for inference, if it is of products alone: its
  /// parameters have no values any more. Where a rank has some columns of it, those that have the
  /// others, `ranks`, round with it: then, and with shards, a collective. Not thread-safe.
  void quantize_rows(ops::RowFormat format, dist::Group* ranks);
  /// x W^T; in FP8, without recording only, while there is that copy.
  Tensor multiply(ops::Tape& tape, const Tensor& x) const;
  /// The same of what an exchange makes of x; and what one makes of the same. Without that copy
  /// in parts, if the exchange can (ops/matmul/exchanged_linear.h).
  Tensor multiply_gathered(ops::Tape& tape, const Tensor& x, const ops::Exchange& gather) const;
  Tensor multiply_summed(ops::Tape& tape, const Tensor& x, const ops::Exchange& sum) const;
  /// Whether there is that copy: then x may be given as FP8, and x W^T is of dtype `out`.
  bool in_fp8() const { return fp8_.scale.defined(); }
  Tensor multiply(const ops::Tape& tape, const ops::Quantized& x, DType out) const;
  /// x as multiply() rounds it; and whether that is this rank's alone.
  ops::Quantized quantize(const Tensor& x) const;
  bool rounds_alone() const { return fp8_ranks_ == nullptr; }

 private:
  void allocate(const Shape& all, bool whole, const WeightOptions& options);
  void add_state(Parameter& parameter) const;
  Tensor whole_matrix() const;
  void forget_values();
  void add(std::string name, const PlacedPart& made, const WeightOptions& options);

  std::deque<Parameter> parameters_;
  Tensor value_;           // of all, one after the other; what is computed with
  Tensor low_, grad_;      // low: of what the state of is here
  std::int64_t rows_ = 0;  // that have a parameter
  StateShare share_;
  std::shared_ptr<ShardedMatrix> sharded_;
  std::shared_ptr<QuantizedMatrix> quantized_;  // or waits to be so
  bool of_products_ = false;
  struct Adapter {
    const Weight *a, *b;
    std::int64_t first;  // row
    float scale;
  };
  std::vector<Adapter> adapters_;
  mutable ops::Quantized fp8_;  // of what is gathered for its block the scale alone
  mutable dist::Group* fp8_ranks_ = nullptr;
};

}  // namespace vfm::nn
