// What the tests of networks against golden data share. The data are written by scripts/golden.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "models/dit/network.h"
#include "support/distance.h"

namespace vfm {

/// The tensors of tests/golden/NAME.safetensors.
class Golden {
 public:
  explicit Golden(const std::string& name) : set_(VFM_GOLDEN, name) {}

  const io::TensorView& view(const std::string& name) const {
    const io::TensorView* found = set_.find(name);
    INFO(name);
    REQUIRE(found != nullptr);
    return *found;
  }
  std::vector<float> operator[](const std::string& name) const {
    const io::TensorView& from = view(name);
    std::vector<float> values(static_cast<std::size_t>(from.elements()));
    std::memcpy(values.data(), from.data.data(), from.data.size());
    return values;
  }
  /// "PREFIX.0SUFFIX", "PREFIX.1SUFFIX", ... one after the other.
  std::vector<float> joined(const std::string& prefix, const std::string& suffix,
                            std::size_t count) const {
    std::vector<float> all;
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<float> part = (*this)[prefix + "." + std::to_string(i) + suffix];
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  /// Gives each parameter its "weight.NAME"; there must be no other.
  void load_weights(const nn::ParameterList& parameters) const {
    for (const nn::Parameter* p : parameters) {
      INFO(p->name);
      CHECK(view("weight." + p->name).shape == p->shape());
      p->write(Tensor::from((*this)["weight." + p->name], p->shape()));
    }
    const auto theirs = std::ranges::count_if(
        set_.tensors(), [](const io::TensorView& t) { return t.name.starts_with("weight."); });
    CHECK(theirs == static_cast<std::ptrdiff_t>(parameters.size()));
  }

 private:
  io::SafetensorsSet set_;
};

inline Tensor flat(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace vfm
