// The tape: records the forward pass of a model and computes the gradients from the record.
//
// Each op computes its result and, if a gradient is wanted, records a closure that turns the
// gradient of the result into gradients of the inputs. backward() runs the closures in reverse. A
// tape that does not record (inference, validation) keeps nothing.
//
// The tape identifies a tensor by its extent in memory, so a reshaped tensor is the same tensor. A
// view of a part of a tensor with a gradient is an error; its gradient would be lost. The tape
// keeps every tensor that it knows alive, so that its memory is not reused.
// Thread-safety: one thread at a time; ops use threads inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "ops/tape_entry.h"
#include "tensor/tensor.h"

namespace vfm {
class Offload;
}

namespace vfm::ops {

/// Options of block recompute.
struct KeptOfBlock {
  bool once = false;     ///< results of Tape::once() are kept, not recomputed
  bool offload = false;  ///< the block's input waits in the host's memory (tensor/offload.h)
};

class Tape {
 public:
  explicit Tape(bool recording = true) : recording_(recording) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  bool recording() const { return recording_; }
  /// Call before watch(). The buffers of leaves then start without a value: the first gradient is
  /// written over a buffer, and backward() zeros the buffers that no gradient reached.
  void replace_gradients() { replaces_ = true; }
  bool replaces() const { return replaces_; }
  /// Marks `leaf` as wanting a gradient, accumulated (+=) into `gradient` (f32, as many elements).
  /// A second call replaces the buffer. Does nothing when recording is off.
  void watch(const Tensor& leaf, const Tensor& gradient);
  /// Called by backward() once per leaf with the buffer of its gradient, when that is final.
  using Listener = std::function<void(const Tensor& gradient)>;
  /// `of_marked`: reports only leaves with a first_use(); other gradients are not final yet.
  void listen(Listener listener, bool of_marked = false);
  /// No op before this call uses `leaf`. Its gradient is therefore final once backward() has run
  /// what is recorded after this call. A gradient that comes later throws Error.
  void first_use(const Tensor& leaf);
  /// Has backward() call `act` once it has run what is recorded after this call, gradients or not.
  void in_backward(std::function<void(Tape&)> act);
  /// For such an `act`: sums gradients of the watched `leaf` in `gradient`, whose old values are
  /// ignored. take_back() ends this, zeros `gradient` if none came, and makes `instead` the buffer
  /// without touching it. No gradient may reach the leaf afterwards.
  void lend(const Tensor& leaf, const Tensor& gradient);
  void take_back(const Tensor& leaf, const Tensor& instead);
  /// Whether a gradient must flow into `tensor`: it is watched, or computed from a tensor that is.
  /// Throws Error for a view of a part of such a tensor.
  bool wants_grad(const Tensor& tensor) const;

  /// Announces `x`, which was made elsewhere and wants a gradient there. backward() passes the
  /// gradient to `reached`, if there is one. `x` may be offloaded.
  void arrive(const Tensor& x, std::function<void(Tensor gradient)> reached);

  /// For ops: notes that `results` were made from `inputs`; undefined inputs are ignored. Keeps
  /// `backward` if an input wants a gradient. It runs if a gradient has reached a result, and calls
  /// take(result) and accumulate(input, ...).
  void record(std::vector<Tensor> results, const std::vector<Tensor>& inputs,
              std::function<void(Tape&)> backward);
  void record(const Tensor& result, const std::vector<Tensor>& inputs,
              std::function<void(Tape&)> backward);

  /// The gradient that has flowed into `tensor`, in its shape. An undefined Tensor if there is
  /// none, which means zero.
  Tensor grad(const Tensor& tensor) const;
  /// grad(tensor), moved out of the tape: an op's backward may overwrite a gradient that is
  /// unique().
  Tensor take(const Tensor& tensor);
  /// Adds `gradient` (f32 or the tensor's dtype) to what has flowed into `tensor`. The first
  /// gradient is adopted without copy, and copied when a second comes while others hold it.
  void accumulate(const Tensor& tensor, Tensor gradient);
  /// The place where the gradient of `tensor` is summed, for ops that write into it themselves. An
  /// op that asks for it must write.
  struct Sum {
    /// f32, in the tensor's shape: the buffer of a leaf, or a gradient that nobody else holds.
    /// Undefined if there is neither: the op must then call accumulate().
    Tensor tensor;
    bool add = false;  ///< true: add to the values; false: overwrite all of them
  };
  Sum sum_of(const Tensor& tensor);

  using Block = std::function<std::vector<Tensor>(Tape&, const Tensor& x)>;
  /// Block recompute: runs block(x) without recording its inside. backward() runs it again with
  /// recording and back-propagates through it. Gradients are added in the same order as without
  /// recompute, so they are equal to the last bit. `others` are the unwatched tensors that `block`
  /// holds and reads. An offloaded `x` must come from another block or carry no gradient. Nobody
  /// may hold it when the next one is offloaded and its memory is freed. Throws Error otherwise.
  std::vector<Tensor> checkpoint(const Tensor& x, const std::vector<Tensor>& others,
                                 const Block& block, KeptOfBlock kept = {});

  /// Call if backward does not follow at once: frees the input offloaded last. Returns a name that
  /// replaces `result` if a block made `result`, else `result`.
  Tensor rest(const Tensor& result);
  /// Call when backward is near: begins to fetch the input that was offloaded last.
  void wake();

  /// Results of an expensive op, and a number for its own use.
  struct Made {
    std::vector<Tensor> tensors;
    int how = 0;
  };
  /// For such ops: make(), or its first result when a block that keeps `once` results runs again.
  Made once(const std::function<Made()>& make);

  /// Back-propagates from `result` with gradient `seed` (same shape), and clears the tape.
  void backward(const Tensor& result, const Tensor& seed);

 private:
  using Node = TapeNode;
  using Entry = TapeEntry;

  const Entry* find(const Tensor& tensor) const;
  Entry* find(const Tensor& tensor);
  void run_nodes();
  static void check_open(const Entry& entry);
  void finish(Entry& leaf);
  void rename(const Tensor& from, const Tensor& to);
  void put_away(const Tensor& x, const Tensor& place);
  void put_last_away();
  std::shared_ptr<Offload> offload(const Tensor& x);
  Tensor bring_back(const std::shared_ptr<Offload>& x);

  bool recording_, replaces_ = false, of_marked_ = false;
  Listener listener_;
  std::vector<Node> nodes_;
  std::map<const std::byte*, Entry> entries_;        // by first byte; extents never overlap
  std::vector<std::shared_ptr<Offload>> offloaded_;  // in the order of the blocks
  std::shared_ptr<std::deque<Made>> kept_;           // of a block; filled by its silent tape
  Tape* outer_ = nullptr;  // in a recomputed block: the tape of its inputs
};

}  // namespace vfm::ops
