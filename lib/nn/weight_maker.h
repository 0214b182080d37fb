// Makes the weights of a model, in the order of its state dict.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "nn/network_layout.h"
#include "nn/weight.h"

namespace vfm::nn {

struct WeightMaker {
  std::deque<Weight>& weights;
  WeightOptions options;      // seed, device, and the matrices' dtype
  NetworkLayout layout = {};  // of the ranks that divide matrices among them

  Weight& make(std::vector<std::string> names, const Shape& shape, Init init, DType compute,
               bool decay, const Cut& cut = {}) {
    WeightOptions own = options;
    own.cut = cut;
    own.init = init;
    own.compute = compute;
    own.decay = decay;
    return weights.emplace_back(std::move(names), shape, own);
  }
  Weight& matrix(std::vector<std::string> names, std::int64_t rows, std::int64_t columns,
                 Init init = Init::xavier) {
    return make(std::move(names), {rows, columns}, init, options.compute, true);
  }
  // Makes a rank's part of matrices of a block, which are multiplied in one product.
  Weight& stacked(std::vector<Weight::Part> parts, std::int64_t columns, const Cut& cut = {}) {
    WeightOptions own = options;
    own.cut = cut;
    own.init = Init::xavier;
    own.of_products = true;
    return weights.emplace_back(std::move(parts), columns, own);
  }
  // Makes their biases.
  Weight& biases(std::vector<Weight::Part> parts, const Cut& cut = {}) {
    WeightOptions own = vector_options();
    own.cut = cut;
    own.init = Init::zero;
    return weights.emplace_back(std::move(parts), 0, own);
  }
  // Conditioning is computed in f32: it is small, and sigma must not be rounded.
  Weight& conditioning(std::string name, std::int64_t rows, std::int64_t columns, Init init) {
    return make({std::move(name)}, {rows, columns}, init, DType::f32, true);
  }
  // Makes a table. Tables are not in matrix products, so they are never sharded.
  Weight& table(std::string name, const Shape& shape, Init init, const Cut& cut = {}) {
    WeightOptions own = vector_options();
    own.cut = cut;
    own.init = init;
    return weights.emplace_back(std::vector{std::move(name)}, shape, own);
  }

 private:
  WeightOptions vector_options() const {
    WeightOptions own = options;
    own.compute = DType::f32;
    own.decay = false;
    own.blocks = nullptr;
    return own;
  }
};

}  // namespace vfm::nn
