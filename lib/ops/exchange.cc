// SPDX-License-Identifier: Apache-2.0
#include "ops/exchange.h"

namespace vfm::ops {

Tensor run_exchange(Tape& tape, const Tensor& x, const Exchange& exchange) {
  if (!exchange) return x;
  const Tensor y = exchange.forward(x);
  tape.record(y, {x}, [x, y, exchange](Tape& t) {
    t.accumulate(x, exchange.adjoint(t.take(y).to(x.dtype())));
  });
  return y;
}

}  // namespace vfm::ops
