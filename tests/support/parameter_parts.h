// Values of a model's parameters where ranks have parts of them: the same as on one rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "base/error.h"
#include "base/philox.h"
#include "nn/parameter.h"
#include "support/noise.h"

namespace vfm {

/// Calls use(place in the part, place in the whole, elements) for each run of a part's elements,
/// which is cut along one dim at most.
template <class Use>
void each_run(const nn::Parameter& p, const Use& use) {
  const Shape &shape = p.shape(), &whole = p.placement.global, &offset = p.placement.offset;
  if (p.whole()) return use(0, 0, p.elements());
  if (!p.here()) return;
  if (shape.size() != 2) fail("'{}' is cut, and is no matrix", p.name);
  for (std::int64_t row = 0; row < shape[0]; ++row)
    use(row * shape[1], (row + offset[0]) * whole[1] + offset[1], shape[1]);
}

/// Sets this rank's parts of noise in which nothing is zero that would hide a gradient.
inline void write_noise(const nn::ParameterList& parameters) {
  for (const nn::Parameter* p : parameters) {
    const Tensor all = noise_tensor(p->placement.global, random_key(p->name)), part(p->shape());
    each_run(*p, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i)
        part.data<float>()[to + i] = 0.1f * all.data<float>()[from + i];
    });
    p->write(part);
  }
}

/// Copies the gradient of this rank's part to where it stands in the whole one, which is made.
inline void place_gradient(const nn::Parameter& p, Tensor& whole) {
  if (!whole.defined()) whole = Tensor::zeros(p.placement.global);
  each_run(p, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::memcpy(whole.data<float>() + to, p.grad.data<float>() + from,
                static_cast<std::size_t>(count) * sizeof(float));
  });
}

}  // namespace vfm
