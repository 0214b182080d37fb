// SPDX-License-Identifier: Apache-2.0
#include "ops/tape.h"

#include <utility>

#include "base/error.h"
#include "ops/pointwise/add.h"
#include "tensor/device.h"

namespace vfm::ops {

const Tape::Entry* Tape::find(const Tensor& tensor) const {
  if (entries_.empty() || tensor.bytes() == 0) return nullptr;
  const std::byte* begin = tensor.data<std::byte>();
  const std::byte* end = begin + tensor.bytes();
  auto next = entries_.lower_bound(begin);  // the first extent that starts at or after ours
  if (next != entries_.end() && next->first < end) {
    if (next->first == begin && next->second.tensor.bytes() == tensor.bytes()) return &next->second;
    fail("a tensor of shape {} is a view across another that carries a gradient",
         to_string(tensor.shape()));
  }
  if (next == entries_.begin()) return nullptr;
  const auto& [start, entry] = *std::prev(next);
  if (start + entry.tensor.bytes() > begin)
    fail("a tensor of shape {} is a view of a part of one that carries a gradient",
         to_string(tensor.shape()));
  return nullptr;
}

Tape::Entry* Tape::find(const Tensor& tensor) {
  return const_cast<Entry*>(std::as_const(*this).find(tensor));
}

void Tape::watch(const Tensor& leaf, const Tensor& gradient) {
  if (!recording_) return;
  if (outer_ != nullptr) return outer_->watch(leaf, gradient);
  if (gradient.dtype() != DType::f32 || gradient.elements() != leaf.elements())
    fail("the gradient of shape {} does not fit a leaf of shape {}", to_string(gradient.shape()),
         to_string(leaf.shape()));
  if (Entry* known = find(leaf)) {
    if (!known->watched) fail("a tensor that was computed cannot be watched");
    known->gradient = gradient;
    return;
  }
  if (leaf.bytes() > 0) entries_[leaf.data<std::byte>()] = {leaf, gradient, true, replaces_};
}

bool Tape::wants_grad(const Tensor& tensor) const {
  if (!recording_ || !tensor.defined()) return false;
  return find(tensor) != nullptr || (outer_ != nullptr && outer_->wants_grad(tensor));
}

void Tape::record(std::vector<Tensor> results, const std::vector<Tensor>& inputs,
                  std::function<void(Tape&)> backward) {
  bool wanted = false;
  for (const Tensor& input : inputs)
    wanted = wanted || wants_grad(input);
  if (!wanted) return;
  for (const Tensor& result : results) {
    if (find(result) != nullptr) fail("an op wrote over a tensor that carries a gradient");
    if (result.bytes() > 0) entries_[result.data<std::byte>()] = {result, {}};
  }
  nodes_.push_back({std::move(results), std::move(backward)});
}

void Tape::record(const Tensor& result, const std::vector<Tensor>& inputs,
                  std::function<void(Tape&)> backward) {
  record(std::vector<Tensor>{result}, inputs, std::move(backward));
}

Tensor Tape::grad(const Tensor& tensor) const {
  const Entry* entry = find(tensor);
  if (entry == nullptr) return outer_ == nullptr ? Tensor() : outer_->grad(tensor);
  return entry->gradient.defined() && !entry->stale ? entry->gradient.reshape(tensor.shape())
                                                    : Tensor();
}

Tensor Tape::take(const Tensor& tensor) {
  Entry* entry = find(tensor);
  if (entry == nullptr || entry->watched) return grad(tensor);
  Tensor gradient = std::move(entry->gradient);
  entry->gradient = Tensor();
  if (!gradient.defined()) return gradient;
  return gradient.shape() == tensor.shape() ? gradient : gradient.reshape(tensor.shape());
}

Tape::Sum Tape::sum_of(const Tensor& tensor) {
  Entry* entry = find(tensor);
  if (entry == nullptr) return outer_ == nullptr ? Sum{} : outer_->sum_of(tensor);
  const Tensor& sum = entry->gradient;
  const bool own = sum.defined() && sum.dtype() == DType::f32 && sum.unique();
  if (!entry->watched && !own) return {};
  return {sum.reshape(tensor.shape()), !std::exchange(entry->stale, false)};
}

void Tape::accumulate(const Tensor& tensor, Tensor gradient) {
  if (!gradient.defined()) return;
  Entry* entry = find(tensor);
  if (entry == nullptr) {
    if (outer_ != nullptr) outer_->accumulate(tensor, std::move(gradient));
    return;
  }
  if (gradient.elements() != tensor.elements())
    fail("a gradient of shape {} reached a tensor of shape {}", to_string(gradient.shape()),
         to_string(tensor.shape()));
  if (std::exchange(entry->stale, false)) {
    convert(gradient.reshape(entry->gradient.shape()), entry->gradient);
  } else if (entry->watched) {
    add_in_place(entry->gradient, gradient);
  } else if (!entry->gradient.defined()) {
    entry->gradient = std::move(gradient);
  } else {
    if (!entry->gradient.unique()) entry->gradient = entry->gradient.clone();
    add_in_place(entry->gradient, gradient);
  }
}

std::vector<Tensor> Tape::checkpoint(const std::vector<Tensor>& inputs,
                                     const std::function<std::vector<Tensor>(Tape&)>& forward,
                                     bool keep) {
  Tape silent(false);
  if (keep && recording_) silent.kept_ = std::make_shared<std::deque<Made>>();
  std::vector<Tensor> results = forward(silent);
  if (!recording_ || entries_.empty()) return results;
  for (const Tensor& input : inputs)
    wants_grad(input);  // refuses partial views now, not in backward
  for (const Tensor& result : results) {
    if (find(result) != nullptr) fail("a recomputed block must make new tensors");
    entries_[result.data<std::byte>()] = {result, {}};
  }
  auto backward = [inputs, forward, results, kept = silent.kept_](Tape& tape) {
    Tape inner;
    inner.outer_ = &tape;
    inner.kept_ = kept;
    const std::vector<Tensor> again = forward(inner);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (Tensor gradient = tape.take(results[i]); gradient.defined())
        inner.accumulate(again[i], std::move(gradient));
    inner.run_nodes();
  };
  nodes_.push_back({results, std::move(backward)});
  return results;
}

Tape::Made Tape::once(const std::function<Made()>& make) {
  if (!kept_) return make();
  if (!recording_) return kept_->emplace_back(make());
  if (kept_->empty()) fail("a block that is repeated makes more than the first time");
  Made made = std::move(kept_->front());
  kept_->pop_front();
  return made;
}

void Tape::run_nodes() {
  while (!nodes_.empty()) {
    // Out of the list before it runs: what it saved is freed as soon as it is done.
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    bool reached = false;
    for (const Tensor& result : node.results)
      reached = reached || grad(result).defined();
    if (reached) node.backward(*this);
    for (const Tensor& result : node.results)
      if (result.bytes() > 0) entries_.erase(result.data<std::byte>());
  }
}

void Tape::backward(const Tensor& result, const Tensor& seed) {
  if (!recording_) fail("back-propagation through a tape that does not record");
  if (!wants_grad(result)) fail("the result does not depend on anything that wants a gradient");
  accumulate(result, seed);
  run_nodes();
  for (const auto& [begin, entry] : entries_)
    if (entry.stale)
      zero_bytes(entry.gradient.raw(), entry.gradient.device(), entry.gradient.bytes());
  entries_.clear();
}

AddedGradient::AddedGradient(Tape& tape, const Tensor& of) : tape_(tape), of_(of) {
  if (!tape.wants_grad(of)) return;
  const Tape::Sum sum = tape.sum_of(of);
  own_ = !sum.tensor.defined();
  tensor_ = own_ ? Tensor(of.shape(), DType::f32, of.device()) : sum.tensor;
  if (!sum.add) zero_bytes(tensor_.raw(), tensor_.device(), tensor_.bytes());
}

}  // namespace vfm::ops
