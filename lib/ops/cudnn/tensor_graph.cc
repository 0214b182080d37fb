// SPDX-License-Identifier: Apache-2.0
#include "ops/cudnn/tensor_graph.h"

#include <utility>

namespace vfm::ops::graph {

Layout packed(std::int64_t samples, std::int64_t heads, std::int64_t rows, std::int64_t columns) {
  return {{samples, heads, rows, columns}, {heads * rows * columns, rows * columns, columns, 1}};
}

Layout strided(std::int64_t samples, std::int64_t heads, std::int64_t rows, std::int64_t columns,
               std::int64_t stride) {
  return {{samples, heads, rows, columns}, {rows * stride, columns, stride, 1}};
}

Layout transposed(const Layout& layout) {
  Layout turned = layout;
  std::swap(turned.dims[2], turned.dims[3]);
  std::swap(turned.strides[2], turned.strides[3]);
  return turned;
}

Edge Graph::make(const TensorOfGraph& tensor) {
  tensors_.push_back(tensor);
  TensorOfGraph& made = tensors_.back();
  const auto edge = static_cast<Edge>(tensors_.size()) - 1;
  if (made.id == 0) made.id = 1000 + edge;
  return edge;
}

Edge Graph::memory(std::int64_t id, Type type, const Layout& layout, Edge ragged) {
  return make({id, type, layout, Place::memory, ragged, 0});
}

Edge Graph::number(float value) {
  return make({0, Type::f32, packed(1, 1, 1, 1), Place::number, none, value});
}

Edge Graph::inner(const Layout& layout, Type type, Edge ragged) {
  return make({0, type, layout, Place::inner, ragged, 0});
}

}  // namespace vfm::ops::graph
