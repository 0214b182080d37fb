// Made-up numbers for tests: the same for the same key, everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "tensor/tensor.h"

namespace vfm {

/// Normal numbers.
inline std::vector<float> noise(std::size_t count, std::uint64_t key) {
  std::vector<float> values(count);
  Random(1, Purpose::test, 0, key).fill_normal(values);
  return values;
}

/// The same as a tensor of the CPU.
inline Tensor noise_tensor(Shape shape, std::uint64_t key, DType dtype = DType::f32) {
  const Tensor tensor(std::move(shape));
  Random(1, Purpose::test, 0, key).fill_normal(tensor.floats());
  return tensor.to(dtype);
}

/// Evenly distributed in [-1, 1).
inline std::vector<float> uniform_noise(std::size_t count, std::uint64_t key) {
  std::vector<float> values(count);
  Random(1, Purpose::test, 0, key).fill_uniform(values);
  for (float& v : values)
    v = 2 * v - 1;
  return values;
}

}  // namespace vfm
