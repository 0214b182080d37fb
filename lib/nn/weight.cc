// SPDX-License-Identifier: Apache-2.0
#include "nn/weight.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/linear_fp8.h"

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

// Draws elements of a part where they stand in the whole one: rows of it that follow each other
// there are drawn at once.
template <class Draw>
void draw_part(std::span<float> out, const PlacedPart& part, Draw draw) {
  const Shape& whole = part.placement.global;
  std::size_t line = 1;    // elements of the part that stand together in the whole one
  std::uint64_t step = 1;  // from one line to the next in the whole one
  std::size_t dim = whole.size();
  while (dim > 0 && part.shape[dim - 1] == whole[dim - 1]) {
    line *= static_cast<std::size_t>(whole[--dim]);
    step *= static_cast<std::uint64_t>(whole[dim]);
  }
  std::uint64_t first = 0;
  if (dim > 0) {
    --dim;
    line *= static_cast<std::size_t>(part.shape[dim]);
    first = static_cast<std::uint64_t>(part.placement.offset[dim]) * step;
    step *= static_cast<std::uint64_t>(whole[dim]);
    for (std::size_t outer = 0; outer < dim; ++outer)
      if (part.shape[outer] != whole[outer]) fail("a parameter cut along two dims");
  }
  const auto lines = static_cast<std::int64_t>(line == 0 ? 0 : out.size() / line);
#pragma omp parallel for if (lines > 1)
  for (std::int64_t i = 0; i < lines; ++i) {
    const auto number = static_cast<std::size_t>(i);
    draw_pieces(out.subspan(number * line, line), [&](std::span<float> piece, std::size_t begin) {
      draw(piece, first + number * step + begin);
    });
  }
}

void fill(const Tensor& value, const PlacedPart& part, Init init, std::uint64_t seed,
          const std::string& name) {
  const std::span<float> out = value.floats();
  const Random random(seed, Purpose::weight_init, 0, random_key(name));
  const Shape& whole = part.placement.global;
  switch (init) {
    case Init::zero:
      std::ranges::fill(out, 0.f);
      break;
    case Init::one:
      std::ranges::fill(out, 1.f);
      break;
    case Init::xavier:
    case Init::fan_in: {
      const auto rows = static_cast<float>(whole[0]);
      const float bound = init == Init::xavier
                              ? std::sqrt(6.f / static_cast<float>(whole[0] + whole[1]))
                              : std::sqrt(rows / static_cast<float>(vfm::element_count(whole)));
      draw_part(out, part, [&](std::span<float> piece, std::uint64_t first) {
        random.fill_uniform(piece, first);
        for (float& v : piece)
          v = (2 * v - 1) * bound;
      });
      break;
    }
    case Init::normal:
      draw_part(out, part, [&](std::span<float> piece, std::uint64_t first) {
        random.fill_normal(piece, first);
        for (float& v : piece)
          v *= 0.02f;
      });
      break;
  }
}

}  // namespace

Weight::Weight(std::vector<std::string> names, const Shape& each, const WeightOptions& options) {
  const PlacedPart part = cut_part(each, options.cut);
  Shape all = part.shape;
  all.front() *= static_cast<std::int64_t>(names.size());
  allocate(all, options);
  for (std::string& name : names)
    add(std::move(name), part, options);
}

Weight::Weight(std::vector<Part> parts, std::int64_t columns, const WeightOptions& options) {
  std::vector<PlacedPart> cut;
  std::int64_t rows = 0;
  for (const Part& part : parts) {
    cut.push_back(cut_part({part.rows, columns}, options.cut));
    rows += cut.back().shape.front();
  }
  allocate({rows, cut.empty() ? columns : cut.front().shape.back()}, options);
  for (std::size_t i = 0; i < parts.size(); ++i)
    add(std::move(parts[i].name), cut[i], options);
}

void Weight::allocate(const Shape& all, const WeightOptions& options) {
  value_ = Tensor(all, options.compute, options.device);
  if (!options.trainable) return;
  grad_ = Tensor::zeros(all, DType::f32, options.device);
  if (options.compute != DType::f32) low_ = Tensor(all, DType::i16, options.device);
}

void Weight::add(std::string name, const PlacedPart& made, const WeightOptions& options) {
  const std::int64_t begin = std::exchange(rows_, rows_ + made.shape.front());
  const auto part = [&](const Tensor& whole) { return whole.rows(begin, rows_); };
  Parameter& p = parameters_.emplace_back();
  p.name = std::move(name);
  (options.compute == DType::f32 ? p.value : p.high) = part(value_);
  p.placement = made.placement;
  p.decay = options.decay;
  if (!options.trainable) return;
  if (low_.defined()) p.low = part(low_);
  p.grad = part(grad_);
  if (options.device == Device::meta) return;
  const Tensor initial(made.shape);
  fill(initial, made, options.init, options.seed, p.name);
  p.write(initial);
}

void Weight::attach(std::size_t part, const Weight& a, const Weight& b, float scale) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < part; ++i)
    first += parameters_.at(i).shape().front();
  const Shape& shape = parameters_.at(part).shape();
  if (shape.size() != 2 || a.value_.size(1) != shape[1] || b.value_.size(0) != shape[0] ||
      a.value_.size(0) != b.value_.size(1))
    fail("adapters {} and {} do not fit '{}', {}", to_string(a.value_.shape()),
         to_string(b.value_.shape()), parameters_[part].name, to_string(shape));
  adapters_.push_back({&a, &b, first, scale});
}

void Weight::watch(ops::Tape& tape) const {
  if (grad_.defined()) tape.watch(value_, grad_);
}

const Tensor& Weight::op(ops::Tape& tape) const {
  if (!adapters_.empty()) fail("the adapters of '{}' have no effect", parameters_.front().name);
  watch(tape);
  return value_;
}

ops::LinearWeight Weight::matrix(ops::Tape& tape) const {
  watch(tape);
  ops::LinearWeight result(value_);
  for (const Adapter& adapter : adapters_)
    result.added.push_back(
        {adapter.a->op(tape), adapter.b->op(tape), adapter.first, adapter.scale});
  return result;
}

void Weight::keep_fp8(bool keep) const {
  if (keep && !adapters_.empty())
    fail_usage("products in FP8 take no separate adapters: merge them into the weights");
  fp8_ = keep ? ops::quantize(value_) : ops::Quantized();
}

Tensor Weight::multiply(ops::Tape& tape, const Tensor& x) const {
  return in_fp8() ? ops::linear_fp8(tape, x, fp8_) : ops::linear(tape, x, matrix(tape));
}

Tensor Weight::multiply(const ops::Tape& tape, const ops::Quantized& x) const {
  if (!in_fp8()) fail("'{}' has no copy in FP8", parameters_.front().name);
  return ops::linear_fp8(tape, x, fp8_, dtype());
}

}  // namespace vfm::nn
