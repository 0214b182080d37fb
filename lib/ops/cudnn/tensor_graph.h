// A graph of tensor operations as plain data: what is handed to cuDNN (cudnn_plan_cuda.h), which
// turns it into one or a few kernels.
//
// Knows nothing of cuDNN, so a test can go through the operations one by one and compute them. The
// operations, and what they mean, are a choice of those of NVIDIA, "cuDNN backend API" (9.x).
// Shape letters: B samples, H heads, R rows, C columns: tensors have these four dimensions. Of
// convolutions they are images, channels, height and width.
// Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace vfm::ops::graph {

enum class Type { f32, bf16, i32, i64, boolean };

/// Strides are counted in elements.
struct Layout {
  std::array<std::int64_t, 4> dims{}, strides{};
};

/// [B, H, R, C] without gaps.
Layout packed(std::int64_t samples, std::int64_t heads, std::int64_t rows, std::int64_t columns);
/// [B, H, R, C] in a matrix whose rows, those of all heads beside each other, are `stride` apart.
Layout strided(std::int64_t samples, std::int64_t heads, std::int64_t rows, std::int64_t columns,
               std::int64_t stride);
/// [B, H, C, R] of the same elements.
Layout transposed(const Layout& layout);

/// A tensor of a graph, by its place in tensors(); `none` where there is none.
using Edge = int;
inline constexpr Edge none = -1;

enum class Place {
  memory,  ///< the caller's
  number,  ///< known when the graph is made; one element
  inner,   ///< nowhere: it stays inside a kernel
};

struct TensorOfGraph {
  std::int64_t id = 0;  ///< unique; the caller's for memory
  Type type = Type::f32;
  Layout layout;
  Place place = Place::inner;
  /// B + 1 offsets (i64): sample i begins at element offset[i], not at i times the first stride.
  Edge ragged = none;
  float number = 0;
};

enum class Op {
  matmul,  ///< a [R, D] times b [D, C]; group heads share a head of a or b that has fewer
  add,     ///< a + b, also for those below: b is repeated along dimensions where it has 1
  subtract,
  multiply,
  divide,
  less,           ///< a < b
  greater_equal,  ///< a >= b
  both,           ///< a and b
  exp,
  log,
  copy,      ///< a in the type of `out`
  select,    ///< c ? a : b
  position,  ///< of an element along `axis`
  sum,       ///< over the dimensions that `out` has less of; heads in groups
  largest,
  reshape,           ///< the same elements, moved to the layout of `out`; here: transposed
  convolution,       ///< of images a with weights b [out, in, height, width] (cross-correlation)
  convolution_back,  ///< the gradient of its images from that of its result, a
};

/// Of a convolution, along height and width: the step, and the zeros beyond the edges.
struct Window {
  std::array<std::int64_t, 2> strides{1, 1}, before{}, after{};
};

struct Operation {
  Op op = Op::add;
  Edge a = none, b = none, c = none, out = none;
  int axis = 0;
  /// matmul only: rows of a, columns of b and depth that a sample really has (i32 [B, 1, 1, 1]).
  Edge rows = none, columns = none, depth = none;
  Window window{};  ///< convolutions only
};

/// Tensors and operations in the order in which they were added.
class Graph {
 public:
  /// `id` is above zero, below 1000, and unique in the graph.
  Edge memory(std::int64_t id, Type type, const Layout& layout, Edge ragged = none);
  Edge number(float value);
  Edge inner(const Layout& layout, Type type = Type::f32, Edge ragged = none);
  void add(const Operation& operation) { operations_.push_back(operation); }

  const std::vector<TensorOfGraph>& tensors() const { return tensors_; }
  const std::vector<Operation>& operations() const { return operations_; }
  const TensorOfGraph& at(Edge edge) const { return tensors_[static_cast<std::size_t>(edge)]; }

 private:
  Edge make(const TensorOfGraph& tensor);
  std::vector<TensorOfGraph> tensors_;
  std::vector<Operation> operations_;
};

}  // namespace vfm::ops::graph
