// Makes the weights of a model, in the order of its state dict. For the models of this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "nn/weight.h"

namespace vfm::models {

struct WeightMaker {
  std::deque<nn::Weight>& weights;
  nn::WeightOptions options;  // seed, device, and the matrices' dtype

  nn::Weight& make(std::vector<std::string> names, const Shape& shape, nn::Init init, DType compute,
                   bool decay, const nn::Cut& cut = {}) {
    nn::WeightOptions own = options;
    own.cut = cut;
    own.init = init;
    own.compute = compute;
    own.decay = decay;
    return weights.emplace_back(std::move(names), shape, own);
  }
  nn::Weight& matrix(std::vector<std::string> names, std::int64_t rows, std::int64_t columns,
                     nn::Init init = nn::Init::xavier) {
    return make(std::move(names), {rows, columns}, init, options.compute, true);
  }
  // A rank's part of matrices.
  nn::Weight& part(std::vector<std::string> names, std::int64_t rows, std::int64_t columns,
                   const nn::Cut& cut) {
    nn::WeightOptions own = options;
    own.cut = cut;
    own.init = nn::Init::xavier;
    own.of_products = true;
    return weights.emplace_back(std::move(names), Shape{rows, columns}, own);
  }
  // Matrices of different heights that are one product.
  nn::Weight& stacked(std::vector<nn::Weight::Part> parts, std::int64_t columns,
                      const nn::Cut& cut = {}) {
    nn::WeightOptions own = options;
    own.cut = cut;
    own.init = nn::Init::xavier;
    own.of_products = true;
    return weights.emplace_back(std::move(parts), columns, own);
  }
  // Conditioning is computed in f32: it is small, and sigma must not be rounded.
  nn::Weight& conditioning(std::string name, std::int64_t rows, std::int64_t columns,
                           nn::Init init) {
    return make({std::move(name)}, {rows, columns}, init, DType::f32, true);
  }
  // No product takes it, so it is always here.
  nn::Weight& table(std::string name, const Shape& shape, nn::Init init) {
    nn::WeightOptions own = options;
    own.init = init;
    own.compute = DType::f32;
    own.decay = false;
    own.blocks = nullptr;
    return weights.emplace_back(std::vector{std::move(name)}, shape, own);
  }
};

}  // namespace vfm::models
