// A graph of tensor operations as plain data. cudnn_plan_cuda.h passes it to cuDNN, which compiles
// it into one or a few kernels.
//
// It does not depend on cuDNN, so a test can compute the operations one by one. The operations and
// their meaning are a selection from NVIDIA, "cuDNN backend API" (9.x).
// Shape letters: B samples, H heads, R rows, C columns, the four dimensions of every tensor. In
// convolutions the dimensions are images, channels, height and width.
// Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace vfm::ops::graph {

enum class Type { f32, bf16, f8e4m3, i32, i64, boolean };

/// Dimensions, and strides in elements.
struct Layout {
  std::array<std::int64_t, 4> dims{}, strides{};
};

/// Layout [B, H, R, C] without gaps.
Layout packed(std::int64_t samples, std::int64_t heads, std::int64_t rows, std::int64_t columns);
/// Layout [B, H, R, C] in a matrix with the heads side by side in each row. Rows are `stride`
/// elements apart.
Layout strided(std::int64_t samples, std::int64_t heads, std::int64_t rows, std::int64_t columns,
               std::int64_t stride);
/// Layout [B, H, C, R] of the same elements.
Layout transposed(const Layout& layout);

/// Index of a tensor in Graph::tensors(); `none` stands for no tensor.
using Edge = int;
inline constexpr Edge none = -1;

enum class Place {
  memory,  ///< in memory of the caller
  number,  ///< a constant of one element, known when the graph is made
  inner,   ///< in no memory: stays inside a kernel
};

struct TensorOfGraph {
  std::int64_t id = 0;  ///< unique; given by the caller for memory
  Type type = Type::f32;
  Layout layout;
  Place place = Place::inner;
  /// B + 1 offsets (i64): sample i begins at element offset[i], not at i times the first stride.
  /// `none` if samples are not ragged.
  Edge ragged = none;
  float number = 0;
};

enum class Op {
  matmul,  ///< a [R, D] times b [D, C]; a or b may have fewer heads, each shared by a group of
           ///< heads
  add,     ///< a + b; here and below, b is repeated along dimensions of size 1
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
  position,  ///< index of an element along `axis`
  sum,       ///< here and below: over the dimensions in which `out` is smaller; heads in groups
  largest,
  largest_magnitude,  ///< of |a|
  reshape,            ///< the same elements in the layout of `out`, here transposed
  convolution,        ///< of images a with weights b [out, in, height, width] (cross-correlation)
  convolution_back,   ///< gradient of the images, from a, the gradient of the result
};

/// Strides of a convolution along height and width, and the zeros around the image.
struct Window {
  std::array<std::int64_t, 2> strides{1, 1}, before{}, after{};
};

struct Operation {
  Op op = Op::add;
  Edge a = none, b = none, c = none, out = none;
  int axis = 0;
  /// matmul only: the actual number of rows of a, of columns of b, and the actual depth, for each
  /// sample (i32 [B, 1, 1, 1]).
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
