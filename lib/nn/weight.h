// The storage of a weight as ops take it: one parameter, or several of one width stacked into one
// matrix, so that the projections to queries, keys and values are one product (nn/linear.h).
//
// Initial values are a function of (seed, parameter name), so equal names get equal values in any
// model and in any order. A part of a parameter gets the values that the whole parameter has there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "nn/block_shards.h"
#include "nn/parameter.h"
#include "nn/quantized_matrix.h"
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

/// Draws the initial value of a parameter.
void draw(const Parameter& parameter, Init init, std::uint64_t seed);

/// Options for making a model's weights.
struct WeightOptions {
  Init init = Init::xavier;
  DType compute = DType::f32;  ///< dtype of op(): f32, or bf16 with a split master
  bool decay = true;           ///< Parameter::decay
  bool trainable = true;       ///< false: no gradients, and no values before write()
  std::uint64_t seed = 0;
  Device device = Device::cpu;
  Cut cut = {};                ///< the part of each parameter that this rank has
  bool absent = false;         ///< this rank has nothing: another pipeline stage has it
  bool on_all_stages = false;  ///< Parameter::on_all_stages
  StateShares state = {};      ///< if trainable: how ranks share the state of this rank's part
  /// For matrices of blocks that are gathered when needed; null: they are always in memory.
  BlockShards* blocks = nullptr;
  bool of_products = false;  ///< only products use it, so quantize_rows() has an effect
  bool head = false;         ///< with of_products: after all blocks, so not Parameter::hidden
  /// quantize_rows() will be called: on a GPU the values wait on the host.
  bool to_quantize = false;
};

class Weight {
 public:
  /// One tensor per name, each of shape `each`, stacked along dim 0. Shapes are those of whole
  /// parameters; options.cut selects the part of this rank.
  Weight(std::vector<std::string> names, const Shape& each, const WeightOptions& options);
  /// Matrices of one width and different heights, stacked; or vectors, which have 0 columns.
  struct Part {
    std::string name;
    std::int64_t rows = 0;
  };
  Weight(std::vector<Part> parts, std::int64_t columns, const WeightOptions& options);

  Weight(const Weight&) = delete;  // others keep pointers to parameters()
  Weight& operator=(const Weight&) = delete;

  std::deque<Parameter>& parameters() { return parameters_; }
  /// The type that it computes in, which its adapters must have, too.
  DType dtype() const { return value_.dtype(); }

  /// Puts an adapter on parameters()[part], a matrix [O, I]: products add scale B A to it. `a` is
  /// [rank, I] and `b` [O, rank], of dtype(). Both must outlive this weight.
  void attach(std::size_t part, const Weight& a, const Weight& b, float scale);

  /// The matrix and its adapters for a product, watched by the tape. Not thread-safe.
  ops::LinearWeight matrix(ops::Tape& tape) const;
  /// The tensor alone, watched by the tape, for ops other than products. Throws Error if it has
  /// adapters, which would have no effect. Not thread-safe.
  const Tensor& op(ops::Tape& tape) const;
  /// Watches the trained tensor, without the adapters.
  void watch(ops::Tape& tape) const;
  /// The matrix that is gathered for its block; null: it is always in memory. Only products can use
  /// it. Watch it before the first, and enter its block before each matrix().
  ShardedMatrix* sharded() const { return sharded_.get(); }
  /// Tells the tape that no earlier op uses the matrix or its adapters. Watch them before this
  /// call.
  void first_use(ops::Tape& tape) const;

  /// If `keep`, makes an FP8 copy of the present value, for inference; else drops the copy. Without
  /// of_products does nothing. Call it again after the value changes. If `ranks` have the rest of
  /// the matrix or of its input, all round with the scale of the whole (nn/agreed_scale.h), and
  /// this is a collective. A matrix gathered for its block is gathered in FP8. Throws Error{usage}
  /// if it has adapters. Not thread-safe.
  void keep_fp8(bool keep, dist::Group* ranks = nullptr) const;
  /// Returns whether there is an FP8 copy; the copy; and the ranks that round the product's input
  /// together, or null.
  bool in_fp8() const { return fp8_.scale.defined(); }
  ops::Quantized fp8() const;
  dist::Group* fp8_ranks() const { return fp8_ranks_; }
  /// Keeps the matrix as 8-bit numbers from now on, for inference; without of_products does
  /// nothing. Its parameters lose their values. If a rank has some of the columns, it rounds with
  /// the `ranks` that have the others. In that case, and with shards, this is a collective. Not
  /// thread-safe.
  void quantize_rows(ops::RowFormat format, dist::Group* ranks);

 private:
  void allocate(const Shape& all, bool whole, const WeightOptions& options);
  void add_state(Parameter& parameter) const;
  Tensor whole_matrix() const;
  void forget_values();
  void add(std::string name, const PlacedPart& made, const WeightOptions& options);

  std::deque<Parameter> parameters_;
  Tensor value_;           // all parameters, one after another; what is computed with
  Tensor low_, grad_;      // low_: for the part whose state this rank keeps
  std::int64_t rows_ = 0;  // rows that have a parameter
  StateShare share_;
  std::shared_ptr<ShardedMatrix> sharded_;
  std::shared_ptr<QuantizedMatrix> quantized_;  // or waits for quantize_rows()
  bool of_products_ = false;
  struct Adapter {
    const Weight *a, *b;
    std::int64_t first;  // row
    float scale;
  };
  std::vector<Adapter> adapters_;
  mutable ops::Quantized fp8_;  // without values if the matrix is gathered for its block
  mutable dist::Group* fp8_ranks_ = nullptr;
};

}  // namespace vfm::nn
