// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/heads_norm.h"

#include <utility>

#include "base/error.h"
#include "ops/norm/norm_kernels.h"
#include "ops/pointwise/join.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

std::int64_t parts_width(const HeadsNorm& norm) {
  std::int64_t width = 0;
  for (const Tensor& weight : norm.weights)
    width += weight.elements();
  return width;
}

void check(const Tensor& x, const HeadsNorm& norm) {
  if (x.dims() != 2 || (x.dtype() != DType::f32 && x.dtype() != DType::bf16) ||
      parts_width(norm) > x.size(1))
    fail("heads_norm: parts of {} columns do not fit x {} {}", parts_width(norm),
         dtype_name(x.dtype()), to_string(x.shape()));
  for (const Tensor& weight : norm.weights)
    if (weight.dims() != 1 || weight.dtype() != DType::f32 || weight.device() != x.device())
      fail("heads_norm: a weight {} {} is not a row of F32 on x's device",
           dtype_name(weight.dtype()), to_string(weight.shape()));
  if (norm.ranks < 1 || (norm.ranks > 1 && !norm.sum))
    fail("heads_norm: {} ranks need an exchange that sums", norm.ranks);
}

// Calls act(arguments, part) for each part of a row; the arguments have what all kernels read.
template <class Act>
void each_part(const Tensor& x, const HeadsNorm& norm, const Tensor& sums, const Act& act) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < norm.weights.size(); ++i) {
    const Tensor& weight = norm.weights[i];
    HeadsNormArgs args;
    args.tokens = x.size(0), args.width = weight.elements(), args.stride = x.size(1);
    args.all = args.width * norm.ranks;
    args.step = static_cast<int>(norm.weights.size());
    args.type = x.dtype();
    args.epsilon = norm.epsilon;
    const auto offset = static_cast<std::size_t>(first) * dtype_size(x.dtype());
    const auto part_of = [offset](const Tensor& t) { return t.data<std::byte>() + offset; };
    args.x = part_of(x);
    args.weight = weight.data<float>();
    args.sums = sums.data<float>() + i;
    act(args, i, part_of);
    first += args.width;
  }
}

void pass_others(const Tensor& from, const Tensor& to, const HeadsNorm& norm) {
  const std::int64_t first = parts_width(norm);
  copy_columns(from, first, to, first, from.size(1) - first);
}

void heads_norm_backward(Tape& tape, Tensor dy, const Tensor& x, const HeadsNorm& norm,
                         const Tensor& sums) {
  if (dy.dtype() != x.dtype()) dy = dy.to(x.dtype());
  const bool in_place = dy.unique();
  Tensor dx = in_place ? dy : Tensor(x.shape(), x.dtype(), x.device());
  Tensor products(sums.shape(), DType::f32, x.device());
  each_part(x, norm, sums, [&](HeadsNormArgs& args, std::size_t i, const auto& part_of) {
    args.dy = part_of(dy);
    args.products = products.data<float>() + i;
    const Touching work = Touching(norm.weights[i]).columns(sums, 1).columns(products, 1);
    VFM_RUN(work.columns(x, args.width).columns(dy, args.width), heads_norm_products, args);
  });
  if (norm.sum) products = norm.sum.adjoint(products);
  each_part(x, norm, sums, [&](HeadsNormArgs& args, std::size_t i, const auto& part_of) {
    const Tensor& weight = norm.weights[i];
    args.dy = part_of(dy), args.dx = part_of(dx);
    args.products = products.data<float>() + i;
    Tensor dweight, partial;
    if (tape.wants_grad(weight)) {
      const std::int64_t chunks = (x.size(0) + kHeadsNormChunk - 1) / kHeadsNormChunk;
      dweight = Tensor(weight.shape(), DType::f32, x.device());
      partial = Tensor({chunks, args.width}, DType::f32, x.device());
      args.dweight = dweight.data<float>(), args.partial = partial.data<float>();
    }
    const Touching work = Touching(weight, dweight, partial, partial).columns(sums, 1);
    VFM_RUN(work.columns(products, 1)
                .columns(x, args.width)
                .columns(dy, args.width)
                .columns(dx, args.width),
            heads_norm_gradients, args);
    if (dweight.defined()) tape.accumulate(weight, dweight);
  });
  if (!in_place) pass_others(dy, dx, norm);
  dy = Tensor();
  tape.accumulate(x, std::move(dx));
}

}  // namespace

Tensor heads_norm(Tape& tape, const Tensor& x, const HeadsNorm& norm) {
  check(x, norm);
  const Tensor y(x.shape(), x.dtype(), x.device());
  Tensor sums({x.size(0), static_cast<std::int64_t>(norm.weights.size())}, DType::f32, x.device());
  // Without an exchange in between, the sums and the result are one kernel.
  for (const bool again : {false, true}) {
    if (again && !norm.sum) break;
    each_part(x, norm, sums, [&](HeadsNormArgs& args, std::size_t i, const auto& part_of) {
      const bool whole = again || !norm.sum;
      args.summed = again;
      if (whole) args.y = part_of(y);
      const Touching work = Touching(x.device()).columns(sums, 1).columns(x, args.width);
      VFM_RUN(whole ? work.and_of(norm.weights[i]).columns(y, args.width) : work,
              heads_norm_forward, args);
    });
    if (!again && norm.sum) sums = norm.sum.forward(sums);
  }
  pass_others(x, y, norm);
  std::vector<Tensor> inputs = norm.weights;
  inputs.push_back(x);
  tape.record(y, inputs, [=](Tape& t) { heads_norm_backward(t, t.take(y), x, norm, sums); });
  return y;
}

}  // namespace vfm::ops
