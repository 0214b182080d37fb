// The tape: how a model that is written as a forward pass alone gets its gradients.
//
// Each op computes its result and, if a gradient is wanted, records a closure that turns the
// gradient of the result into gradients of the inputs. backward() runs the closures in reverse. A
// Tape made with recording off (inference, validation) keeps nothing.
//
// A tensor is known by its extent in memory, so a reshape is the same tensor to the tape, and a
// view of a part of a tensor that carries a gradient is an error, never a gradient that is lost
// silently. The tape keeps every tensor it knows alive, so no memory gets a second name.
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

/// What is kept of a block that backward computes again, and where what goes into it is.
struct KeptOfBlock {
  bool once = false;     ///< what Tape::once() made is kept, and not made again
  bool offload = false;  ///< what goes in waits in the host's memory (tensor/offload.h)
};

class Tape {
 public:
  explicit Tape(bool recording = true) : recording_(recording) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  bool recording() const { return recording_; }
  /// To be called before watch(): what is in the buffers of leaves does not count. The first
  /// gradient that reaches one is written over it, and backward() zeros those that none reached.
  void replace_gradients() { replaces_ = true; }
  bool replaces() const { return replaces_; }
  /// Marks `leaf` as wanting a gradient, accumulated (+=) into `gradient` (f32, as many elements).
  /// A second call replaces the buffer. Does nothing when recording is off.
  void watch(const Tensor& leaf, const Tensor& gradient);
  /// Who is told of the buffer of every leaf, once, by backward(): when its gradient is final.
  using Listener = std::function<void(const Tensor& gradient)>;
  /// `of_marked`: of those with a first_use() alone, as others are used elsewhere yet.
  void listen(Listener listener, bool of_marked = false);
  /// No op before this call uses `leaf`: its gradient is final as soon as backward() has done what
  /// is recorded from here on, and not at the end alone. That one comes later is an Error then.
  void first_use(const Tensor& leaf);
  /// Has backward() call `act` when it has done what is recorded from here on, in any case.
  void in_backward(std::function<void(Tape&)> act);
  /// For such an `act`: gradients of the watched `leaf` are summed in `gradient` from now on, of
  /// which the values do not count; until take_back(), which zeros it if none came, and leaves
  /// `instead` in its place, of which nothing is touched. No gradient may reach the leaf then.
  void lend(const Tensor& leaf, const Tensor& gradient);
  void take_back(const Tensor& leaf, const Tensor& instead);
  /// Whether a gradient must flow into `tensor` (it is watched, or was made from something that
  /// is). Throws Error for a view of a part of such a tensor.
  bool wants_grad(const Tensor& tensor) const;

  /// `x` was made elsewhere, where its gradient is wanted: backward() gives it to `reached`, if any
  /// came. It may be offloaded.
  void arrive(const Tensor& x, std::function<void(Tensor gradient)> reached);

  /// For ops: notes that `results` were made from `inputs` (undefined ones count as absent); keeps
  /// `backward` if one of the inputs wants a gradient. It runs if a gradient has reached one of the
  /// results; it calls take(result) and accumulate(input, ...).
  void record(std::vector<Tensor> results, const std::vector<Tensor>& inputs,
              std::function<void(Tape&)> backward);
  void record(const Tensor& result, const std::vector<Tensor>& inputs,
              std::function<void(Tape&)> backward);

  /// The gradient that has flowed into `tensor`, in its shape, or an undefined Tensor for none
  /// (zero).
  Tensor grad(const Tensor& tensor) const;
  /// The same, moved out: what an op's backward uses, so that it may overwrite a gradient that is
  /// unique().
  Tensor take(const Tensor& tensor);
  /// Adds `gradient` (f32 or the tensor's dtype) to what has flowed into `tensor`. The first one is
  /// adopted without copy, and copied when a second one comes while others hold it.
  void accumulate(const Tensor& tensor, Tensor gradient);
  /// Where what flows into `tensor` is summed, for ops that write there themselves; they must, once
  /// they have asked.
  struct Sum {
    /// f32, of its shape: the buffer of a leaf, or what has reached another tensor if nobody else
    /// holds it. Undefined if there is none: then the op accumulates what it made.
    Tensor tensor;
    bool add = false;  ///< whether it has values that count; else all of it is to be written
  };
  Sum sum_of(const Tensor& tensor);

  using Block = std::function<std::vector<Tensor>(Tape&, const Tensor& x)>;
  /// block(x) now, without recording its inside; backward() repeats it with recording and then
  /// back-propagates through it: block recompute. Gradients are added in the order in which they
  /// would have been without, so they are equal to the last bit. `others` are the tensors that
  /// `block` holds and reads, besides watched ones. An offloaded `x` must be what another block
  /// made, or carry no gradient, and nobody may hold it when the next one is offloaded: its memory
  /// is given back then. Throws Error otherwise.
  std::vector<Tensor> checkpoint(const Tensor& x, const std::vector<Tensor>& others,
                                 const Block& block, KeptOfBlock kept = {});

  /// Backward does not follow at once: what was offloaded last goes, too. Gives a name that stays
  /// in place of `result`, if a block made that; else `result`.
  Tensor rest(const Tensor& result);
  /// Backward is near: what was offloaded last begins to come back.
  void wake();

  /// What an op has made that takes long, and what it has to remember of how.
  struct Made {
    std::vector<Tensor> tensors;
    int how = 0;
  };
  /// For such ops: make(), or while a block that keeps is repeated, what it gave the first time.
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
  std::shared_ptr<std::deque<Made>> kept_;           // of a block: filled by the silent tape
  Tape* outer_ = nullptr;  // of a block being recomputed: where its inputs live
};

}  // namespace vfm::ops
