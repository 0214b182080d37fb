// SPDX-License-Identifier: Apache-2.0
#include "ops/position/qk_norm_rope.h"

#include "base/error.h"
#include "ops/backward.h"
#include "ops/position/position_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

bool normed(const QkNormRope& l) {
  return l.query_weight.defined() || l.key_weight.defined();
}

void check(const Tensor& x, const QkNormRope& l) {
  const std::int64_t width = std::int64_t{l.query_heads + l.key_heads + l.value_heads} * l.head_dim;
  if (x.dims() != 2 || x.size(1) != width || (x.dtype() != DType::f32 && x.dtype() != DType::bf16))
    fail("qk_norm_rope: {} {} is not {} heads of {}", dtype_name(x.dtype()), to_string(x.shape()),
         l.query_heads + l.key_heads + l.value_heads, l.head_dim);
  const Shape weight{l.head_dim};
  if (normed(l) && ((l.query_heads > 0 && l.query_weight.shape() != weight) ||
                    (l.key_heads > 0 && l.key_weight.shape() != weight)))
    fail("qk_norm_rope: a weight is not [{}]", l.head_dim);
  if (!normed(l) && !l.cosines.defined() && l.query_heads + l.key_heads > 0)
    fail("qk_norm_rope: heads have neither norms nor angles");
  const Shape angles{x.size(0), l.head_dim / 2};
  if (l.cosines.defined() && (l.head_dim % (l.pairs ? 4 : 2) != 0 || l.cosines.shape() != angles ||
                              l.sines.shape() != angles))
    fail("qk_norm_rope: cosines {} do not fit x {}", to_string(l.cosines.shape()),
         to_string(x.shape()));
}

QkNormRopeArgs arguments(const Tensor& x, const QkNormRope& l) {
  QkNormRopeArgs args;
  args.tokens = x.size(0);
  args.query_heads = l.query_heads;
  args.key_heads = l.key_heads;
  args.value_heads = l.value_heads;
  args.head_dim = l.head_dim;
  args.type = x.dtype();
  args.epsilon = l.epsilon;
  args.pairs = l.pairs;
  if (normed(l) && l.query_heads > 0) args.query_weight = l.query_weight.data<float>();
  if (normed(l) && l.key_heads > 0) args.key_weight = l.key_weight.data<float>();
  if (l.cosines.defined()) {
    args.cosines = l.cosines.data<float>();
    args.sines = l.sines.data<float>();
  }
  args.x = x.raw();
  return args;
}

// Elements of queries and keys in a row.
std::int64_t changed_width(const QkNormRope& l) {
  return std::int64_t{l.query_heads + l.key_heads} * l.head_dim;
}

// Floats that the CPU's version has for the sums of the weights' gradients.
std::int64_t gradient_scratch(const QkNormRopeArgs& args) {
  if (args.query_weight == nullptr && args.key_weight == nullptr) return 0;
  return (args.tokens + kNormChunk - 1) / kNormChunk * 3 * args.head_dim;
}

}  // namespace

void cpu::qk_norm_rope_gradients(const QkNormRopeArgs& given, const Tensor& query,
                                 const Tensor& key) {
  QkNormRopeArgs args = given;
  const std::int64_t chunks = (args.tokens + kNormChunk - 1) / kNormChunk, width = args.head_dim;
  const Tensor partial({gradient_scratch(args)});
  if (partial.elements() > 0) args.partial = partial.data<float>();
  qk_norm_rope_backward(args);
  for (int which = 0; which < 2; ++which) {
    const Tensor& sum = which == 0 ? query : key;
    if (!sum.defined()) continue;
    for (std::int64_t c = 0; c < chunks; ++c)
      for (std::int64_t i = 0; i < width; ++i)
        sum.data<float>()[i] += partial.data<float>()[(c * 3 + which) * width + i];
  }
}

void qk_norm_rope_gradients(Tape& tape, Tensor dy, const Tensor& x, const QkNormRope& l) {
  if (dy.dtype() != x.dtype()) dy = dy.to(x.dtype());
  Tensor dx = dy.unique() ? dy : Tensor(x.shape(), x.dtype(), x.device());
  QkNormRopeArgs args = arguments(x, l);
  args.dy = dy.raw();
  args.y = dx.raw();
  const auto wanted = [&](const Tensor& weight) {
    return weight.defined() && tape.wants_grad(weight)
               ? Tensor::zeros({l.head_dim}, DType::f32, x.device())
               : Tensor();
  };
  const Tensor query = wanted(l.query_weight), key = wanted(l.key_weight);
  // Values are not needed, and their gradient is dy's.
  const std::int64_t changed = changed_width(l);
  const std::int64_t passed = dx.id() == dy.id() ? changed : x.size(1);
  VFM_RUN(Touching(x.device())
              .and_of(l.cosines, l.sines, l.query_weight, l.key_weight, query, key)
              .columns(x, normed(l) ? changed : 0)
              .columns(dy, passed)
              .columns(dx, passed)
              .cpu_scratch([&] { return gradient_scratch(args); }),
          qk_norm_rope_gradients, args, query, key);
  if (query.defined()) tape.accumulate(l.query_weight, query);
  if (key.defined()) tape.accumulate(l.key_weight, key);
  tape.accumulate(x, std::move(dx));
}

Tensor qk_norm_rope(Tape& tape, const Tensor& x, const QkNormRope& layout, bool values) {
  check(x, layout);
  Tensor y(x.shape(), x.dtype(), x.device());
  QkNormRopeArgs args = arguments(x, layout);
  args.y = y.raw();
  args.values = values;
  const std::int64_t touched = values ? x.size(1) : changed_width(layout);
  VFM_RUN(Touching(x.device())
              .and_of(layout.cosines, layout.sines, layout.query_weight, layout.key_weight)
              .columns(x, touched)
              .columns(y, touched),
          qk_norm_rope_forward, args);
  tape.record(y, {x, layout.query_weight, layout.key_weight},
              [x, y, layout](Tape& t) { qk_norm_rope_gradients(t, t.take(y), x, layout); });
  return y;
}

Tensor qk_norm_rope(Tape& tape, const Tensor& x, const QkNormRope& layout) {
  return qk_norm_rope(tape, x, layout, true);
}

}  // namespace vfm::ops
