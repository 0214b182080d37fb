// SPDX-License-Identifier: Apache-2.0
#include "nn/weight.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "nn/agreed_scale.h"

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

// Draws a part's elements from `begin` on where they stand in the whole one: rows of it that follow
// each other there are drawn at once.
template <class Draw>
void draw_part(std::span<float> out, const PlacedPart& part, std::int64_t begin, Draw draw) {
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
  if (out.empty()) return;
  const auto skipped = static_cast<std::size_t>(begin), end = skipped + out.size();
  const auto first_line = static_cast<std::int64_t>(skipped / line);
  const auto lines = static_cast<std::int64_t>((end + line - 1) / line);
#pragma omp parallel for if (lines > first_line + 1)
  for (std::int64_t i = first_line; i < lines; ++i) {
    const auto number = static_cast<std::size_t>(i);
    const std::size_t from = std::max(number * line, skipped);
    const std::size_t to = std::min((number + 1) * line, end);
    draw_pieces(out.subspan(from - skipped, to - from),
                [&](std::span<float> piece, std::size_t before) {
                  draw(piece, first + number * step + (from - number * line) + before);
                });
  }
}

void fill(const Tensor& value, const PlacedPart& part, std::int64_t begin, Init init,
          std::uint64_t seed, const std::string& name) {
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
      draw_part(out, part, begin, [&](std::span<float> piece, std::uint64_t first) {
        random.fill_uniform(piece, first);
        for (float& v : piece)
          v = (2 * v - 1) * bound;
      });
      break;
    }
    case Init::normal:
      draw_part(out, part, begin, [&](std::span<float> piece, std::uint64_t first) {
        random.fill_normal(piece, first);
        for (float& v : piece)
          v *= 0.02f;
      });
      break;
  }
}

PlacedPart part_here(const Shape& global, const WeightOptions& options) {
  if (!options.absent) return cut_part(global, options.cut);
  PlacedPart none = cut_part(global, {});
  none.shape.front() = 0;
  return none;
}

}  // namespace

void draw(const Parameter& parameter, Init init, std::uint64_t seed) {
  const Placement& placement = parameter.placement;
  const Tensor values(parameter.shape());
  fill(values, {placement, placement.part.empty() ? parameter.shape() : placement.part},
       placement.begin, init, seed, parameter.name);
  parameter.write(values);
}

Weight::Weight(std::vector<std::string> names, const Shape& each, const WeightOptions& options) {
  const PlacedPart part = part_here(each, options);
  Shape all = part.shape;
  all.front() *= static_cast<std::int64_t>(names.size());
  allocate(all, part.shape == each, options);
  for (std::string& name : names)
    add(std::move(name), part, options);
}

Weight::Weight(std::vector<Part> parts, std::int64_t columns, const WeightOptions& options) {
  std::vector<PlacedPart> cut;
  std::int64_t rows = 0;
  bool whole = true;
  for (const Part& part : parts) {
    const Shape whole_part = columns > 0 ? Shape{part.rows, columns} : Shape{part.rows};
    cut.push_back(part_here(whole_part, options));
    rows += cut.back().shape.front();
    whole = whole && cut.back().shape == cut.back().placement.global;
  }
  Shape all = cut.front().shape;
  all.front() = rows;
  allocate(all, whole, options);
  for (std::size_t i = 0; i < parts.size(); ++i)
    add(std::move(parts[i].name), cut[i], options);
}

void Weight::allocate(const Shape& all, bool whole, const WeightOptions& options) {
  share_ = whole ? options.state.whole : options.state.cut;
  of_products_ = options.of_products;
  const std::int64_t elements = vfm::element_count(all);
  if (options.blocks != nullptr && share_.ranks > 1 && elements > 0) {
    sharded_ = std::make_shared<ShardedMatrix>(all, options.compute, options.device,
                                               options.blocks->group(whole), options.trainable);
    value_ = sharded_->name();
  } else if (of_products_ && options.to_quantize && !options.trainable && elements > 0 &&
             options.device != Device::cpu) {
    quantized_ = std::make_shared<QuantizedMatrix>(all, options.compute, options.device);
    value_ = Tensor::name(all, options.compute, options.device);
  } else {
    value_ = Tensor(all, options.compute, options.device);
  }
  if (!options.trainable) return;
  if (!sharded_) grad_ = Tensor::zeros(all, DType::f32, options.device);
  if (options.compute == DType::f32) return;
  const std::int64_t own = nn::share(elements, share_.rank + 1, share_.ranks) -
                           nn::share(elements, share_.rank, share_.ranks);
  low_ = Tensor(share_.ranks == 1 ? all : Shape{own}, DType::i16, options.device);
}

void Weight::add(std::string name, const PlacedPart& made, const WeightOptions& options) {
  const std::int64_t begin = std::exchange(rows_, rows_ + made.shape.front());
  const auto part = [&](const Tensor& whole) { return whole.rows(begin, rows_); };
  Parameter& p = parameters_.emplace_back();
  p.name = std::move(name);
  const Tensor& values = quantized_ ? quantized_->waiting() : value_;
  (options.compute == DType::f32 ? p.value : p.high) = part(values);
  p.placement = made.placement;
  p.decay = options.decay;
  p.hidden = options.of_products && !options.head;
  p.on_all_stages = options.on_all_stages;
  p.sharded = sharded_ != nullptr;
  if (!options.trainable && !p.sharded) return;
  if (!p.sharded) p.grad = part(grad_);
  if (share_.ranks > 1)
    add_state(p);
  else if (low_.defined())
    p.low = part(low_);
  if (options.trainable && options.device != Device::meta)
    draw(p.state ? *p.state : p, options.init, options.seed);
}

// What others have the state of comes from them (train/state/state_shards.h).
void Weight::add_state(Parameter& p) const {
  const std::int64_t elements = p.elements();
  p.stack = value_.elements();
  for (const Parameter& other : parameters_)
    if (&other != &p) p.before += other.elements();
  const Stretch own = state_stretch(p, share_.rank, share_.ranks);
  // Where in what this rank has of the whole weight.
  const std::int64_t first =
      own.count() == 0 ? 0 : p.before + own.begin - nn::share(p.stack, share_.rank, share_.ranks);
  const auto stretch = [&](const Tensor& of_weight) {
    return of_weight.rows(first, first + own.count());
  };
  const auto view = [&](const Tensor& all) {
    return all.reshape({elements}).rows(own.begin, own.end);
  };
  p.state = std::make_shared<Parameter>();
  Parameter& state = *p.state;
  state.name = p.name;
  Tensor& value = p.split() ? state.high : state.value;
  value = sharded_ ? stretch(sharded_->own()) : view(p.split() ? p.high : p.value);
  if (!sharded_)
    state.grad = view(p.grad);
  else if (sharded_->gradient().defined())
    state.grad = stretch(sharded_->gradient());
  state.placement = {p.placement.global, p.placement.offset, p.shape(), own.begin};
  state.decay = p.decay;
  state.hidden = p.hidden;
  state.on_all_stages = p.on_all_stages;
  if (low_.defined()) state.low = stretch(low_);
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
  if (sharded_) return sharded_->watch(tape);
  if (grad_.defined()) tape.watch(value_, grad_);
}

void Weight::first_use(ops::Tape& tape) const {
  if (!sharded_) tape.first_use(value_);
  for (const Adapter& adapter : adapters_) {
    adapter.a->first_use(tape);
    adapter.b->first_use(tape);
  }
}

const Tensor& Weight::op(ops::Tape& tape) const {
  if (quantized_) fail("'{}' is in 8 bits, for products alone", parameters_.front().name);
  if (sharded_) fail("'{}' is gathered for products alone", parameters_.front().name);
  if (!adapters_.empty()) fail("the adapters of '{}' have no effect", parameters_.front().name);
  watch(tape);
  return value_;
}

ops::LinearWeight Weight::matrix(ops::Tape& tape) const {
  if (!sharded_) watch(tape);  // else a second call would replace the buffer that it has now
  ops::LinearWeight result = quantized_ ? ops::LinearWeight(value_, quantized_)
                             : sharded_ ? ops::LinearWeight(value_, sharded_)
                                        : ops::LinearWeight(value_);
  for (const Adapter& adapter : adapters_)
    result.added.push_back(
        {adapter.a->op(tape), adapter.b->op(tape), adapter.first, adapter.scale});
  return result;
}

void Weight::keep_fp8(bool keep, dist::Group* ranks) const {
  if (!of_products_) return;
  if (keep && !adapters_.empty())
    fail_usage("products in FP8 take no separate adapters: merge them into the weights");
  if (keep && quantized_) fail_usage("products in FP8 take no weights that are in 8 bits already");
  fp8_ranks_ = keep ? ranks : nullptr;
  fp8_ = keep ? quantize_together(sharded_ ? sharded_->own() : value_, ranks) : ops::Quantized();
  if (sharded_) sharded_->gather_in_place_of_own(std::exchange(fp8_.values, Tensor()));
}

Tensor Weight::whole_matrix() const {
  if (sharded_) return sharded_->gather();
  return quantized_ ? quantized_->get() : value_;
}

void Weight::forget_values() {
  const auto forget = [](Tensor& values) {
    if (values.defined() && values.elements() > 0)
      values = Tensor::name(values.shape(), values.dtype(), values.device());
  };
  for (Parameter& parameter : parameters_)
    for (Parameter* const p : {&parameter, parameter.state.get()})
      if (p != nullptr) forget(p->value), forget(p->high);
  if (!sharded_) forget(value_);
}

void Weight::quantize_rows(ops::RowFormat format, dist::Group* ranks) {
  const bool done = quantized_ && !quantized_->waiting().defined();
  if (!of_products_ || value_.elements() == 0 || done) return;
  const Parameter& first = parameters_.front();
  const bool some_columns = first.shape().back() < first.placement.global.back();
  ops::QuantizedRows rows =
      quantize_rows_together(whole_matrix(), some_columns ? ranks : nullptr, format);
  if (sharded_) sharded_->keep_in_place_of_own(std::exchange(rows.values, Tensor()));
  quantized_ = std::make_shared<QuantizedMatrix>(std::move(rows), dtype(), sharded_);
  forget_values();
}

ops::Quantized Weight::fp8() const {
  if (!in_fp8()) fail("'{}' has no copy in FP8", parameters_.front().name);
  return {sharded_ ? sharded_->get() : fp8_.values, fp8_.scale};
}

}  // namespace vfm::nn
