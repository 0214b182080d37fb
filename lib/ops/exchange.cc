// SPDX-License-Identifier: Apache-2.0
#include "ops/exchange.h"

namespace vfm::ops {

Exchange in_turn(const Exchange& first, const Exchange& second) {
  if (!first) return second;
  if (!second) return first;
  return {[=](const Tensor& x) { return second.forward(first.forward(x)); },
          [=](const Tensor& dy) { return first.adjoint(second.adjoint(dy)); }};
}

Exchange adjoint_of(const Exchange& exchange) {
  return {exchange.adjoint, exchange.forward, exchange.chunks};
}

Tensor run_exchange(Tape& tape, const Tensor& x, const Exchange& exchange) {
  if (!exchange) return x;
  const Tensor y = exchange.forward(x);
  tape.record(y, {x}, [x, y, exchange](Tape& t) {
    t.accumulate(x, exchange.adjoint(t.take(y).to(x.dtype())));
  });
  return y;
}

}  // namespace vfm::ops
