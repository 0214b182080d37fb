// The tape: how a model written forward only gets its gradients.
//
// Each op computes its result and, if a gradient is wanted, records a closure that turns the gradient of
// the result into gradients of the inputs. backward() runs the closures in reverse. A Tape made with
// recording off (inference, validation) keeps nothing.
// Thread-safety: one thread at a time; ops use threads inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

class Tape {
 public:
  explicit Tape(bool recording = true) : recording_(recording) {}

  bool recording() const { return recording_; }
  /// Marks `leaf` as wanting a gradient, accumulated (+=) into `gradient` (f32, same shape).
  void watch(const Tensor& leaf, const Tensor& gradient);
  /// Whether a gradient must flow into `tensor` (it is watched, or was made from something that is).
  bool wants_grad(const Tensor& tensor) const;

  /// For ops: notes that `result` was made from `inputs`; keeps `backward` if one of them wants a
  /// gradient. `backward` calls grad(result) and accumulate(input, ...).
  void record(const Tensor& result, std::initializer_list<Tensor> inputs,
              std::function<void(Tape&)> backward);
  /// The gradient that has flowed into `tensor`, or an undefined Tensor for none (zero).
  Tensor grad(const Tensor& tensor) const;
  /// Adds `gradient` to what has flowed into `tensor`. The first one is adopted without copy.
  void accumulate(const Tensor& tensor, Tensor gradient);

  /// Runs `forward` now without recording its inside; backward() runs it again with recording and then
  /// back-propagates through it: block recompute. `inputs` are what it reads besides parameters.
  Tensor checkpoint(const std::vector<Tensor>& inputs,
                    const std::function<Tensor(Tape&, const std::vector<Tensor>&)>& forward);

  /// Back-propagates from `result` with gradient `seed` (same shape), and clears the tape.
  void backward(const Tensor& result, const Tensor& seed);

 private:
  struct Node {
    Tensor result;
    std::function<void(Tape&)> backward;
  };
  bool recording_;
  std::vector<Node> nodes_;
  std::unordered_map<const void*, Tensor> gradients_;  // by Tensor::id
  std::unordered_map<const void*, Tensor> watched_;
};

}  // namespace vfm::ops
