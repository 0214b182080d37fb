// SPDX-License-Identifier: Apache-2.0
#include "nn/weight.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "tensor/device.h"

namespace vfm::nn {
namespace {

// In pieces, on all threads: an element's number depends on its place alone, so the pieces are no
// matter, and billions of them take seconds.
template <class Draw>
void draw_pieces(std::span<float> out, Draw draw) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  const auto pieces = static_cast<std::int64_t>((out.size() + kPiece - 1) / kPiece);
#pragma omp parallel for if (pieces > 1)
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::size_t first = static_cast<std::size_t>(i) * kPiece;
    draw(out.subspan(first, std::min(kPiece, out.size() - first)), first);
  }
}

void fill(const Tensor& value, Init init, std::uint64_t seed, const std::string& name) {
  const std::span<float> out = value.floats();
  const Random random(seed, Purpose::weight_init, 0, random_key(name));
  switch (init) {
    case Init::zero:
      std::ranges::fill(out, 0.f);
      break;
    case Init::one:
      std::ranges::fill(out, 1.f);
      break;
    case Init::xavier: {
      const float bound = std::sqrt(6.f / static_cast<float>(value.size(0) + value.size(1)));
      draw_pieces(out, [&](std::span<float> piece, std::size_t first) {
        random.fill_uniform(piece, first);
        for (float& v : piece)
          v = (2 * v - 1) * bound;
      });
      break;
    }
    case Init::normal:
      draw_pieces(out, [&](std::span<float> piece, std::size_t first) {
        random.fill_normal(piece, first);
        for (float& v : piece)
          v *= 0.02f;
      });
      break;
  }
}

}  // namespace

void zero_gradients(const ParameterList& parameters) {
  for (const Parameter* parameter : parameters)
    zero_bytes(parameter->grad.raw(), parameter->grad.device(), parameter->grad.bytes());
}

Weight::Weight(std::vector<std::string> names, Shape each, Init init, std::uint64_t seed,
               DType compute, Device device, bool decay)
    : compute_(compute) {
  const auto count = static_cast<std::int64_t>(names.size()), rows = each.front();
  Shape all = each;
  all.front() = rows * count;
  const Tensor initial(all);
  for (std::int64_t i = 0; i < count; ++i)
    fill(initial.rows(i * rows, (i + 1) * rows), init, seed, names[static_cast<std::size_t>(i)]);
  value_ = initial.to(device);
  grad_ = Tensor::zeros(all, DType::f32, device);
  for (std::int64_t i = 0; i < count; ++i) {
    Parameter& p = parameters_.emplace_back();
    p.name = std::move(names[static_cast<std::size_t>(i)]);
    p.value = value_.rows(i * rows, (i + 1) * rows);
    p.grad = grad_.rows(i * rows, (i + 1) * rows);
    p.decay = decay;
  }
}

const Tensor& Weight::op(ops::Tape& tape) const {
  if (compute_ == DType::f32) {
    tape.watch(value_, grad_);
    return value_;
  }
  std::uint64_t version = 0;
  for (const Parameter& parameter : parameters_)
    version += parameter.version;
  if (version != low_version_) {
    if (!low_.defined()) low_ = Tensor(value_.shape(), compute_, value_.device());
    convert(value_, low_);
    low_version_ = version;
  }
  tape.watch(low_, grad_);
  return low_;
}

}  // namespace vfm::nn
