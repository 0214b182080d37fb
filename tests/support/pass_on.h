// What a group that stands before another one passes on to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "dist/group.h"

namespace vfm {

inline dist::Transfer pass_on(dist::Group& group, const dist::Call& call) {
  const auto flat = [](const Tensor& tensor) { return tensor.reshape({tensor.elements()}); };
  switch (call.operation) {
    case dist::Operation::all_gather:
      return group.all_gather(flat(call.in), flat(call.out), call.from);
    case dist::Operation::reduce_scatter:
      return group.reduce_scatter(flat(call.in), flat(call.out), call.to);
    case dist::Operation::all_to_all:
      return group.all_to_all(flat(call.in), flat(call.out), call.to, call.from);
    case dist::Operation::all_reduce:
      if (call.sum == dist::Sum::f64)
        return group.all_reduce(
            std::span(static_cast<double*>(call.out.raw()), call.out.bytes() / sizeof(double)));
      return group.all_reduce(call.out);
    case dist::Operation::broadcast:
      return group.broadcast(call.out, call.source);
    case dist::Operation::exchange:
      return group.exchange(call.target, call.in, call.source, call.out);
    case dist::Operation::send:
      return group.send(call.target, call.in);
    default:
      return group.receive(call.source, call.out);
  }
}

}  // namespace vfm
