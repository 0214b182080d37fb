// SPDX-License-Identifier: Apache-2.0
#include "ops/tape.h"

#include <utility>

#include "base/error.h"
#include "ops/pointwise/add.h"
#include "tensor/device.h"
#include "tensor/offload.h"

namespace vfm::ops {

const Tape::Entry* Tape::find(const Tensor& tensor) const {
  if (entries_.empty() || tensor.id() == nullptr) return nullptr;
  const std::byte* begin = tensor.data<std::byte>();
  if (tensor.bytes() == 0) {  // a rank may have no rows: it takes part in exchanges all the same
    const auto known = entries_.find(begin);
    return known == entries_.end() || known->second.tensor.bytes() > 0 ? nullptr : &known->second;
  }
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
  if (leaf.bytes() > 0)
    entries_[leaf.data<std::byte>()] = {
        .tensor = leaf, .gradient = gradient, .watched = true, .stale = replaces_};
}

void Tape::listen(Listener listener, bool of_marked) {
  listener_ = std::move(listener);
  of_marked_ = of_marked;
}

void Tape::first_use(const Tensor& leaf) {
  if (!listener_ || !wants_grad(leaf)) return;
  nodes_.push_back({nullptr, [leaf](Tape& tape) { tape.finish(*tape.find(leaf)); }});
}

void Tape::in_backward(std::function<void(Tape&)> act) {
  if (recording_) nodes_.push_back({nullptr, std::move(act)});
}

void Tape::lend(const Tensor& leaf, const Tensor& gradient) {
  watch(leaf, gradient);
  find(leaf)->stale = true;
}

void Tape::take_back(const Tensor& leaf, const Tensor& instead) {
  Entry& entry = *find(leaf);
  finish(entry);
  entry.told = true;
  entry.gradient = instead;
}

bool Tape::wants_grad(const Tensor& tensor) const {
  if (!recording_ || !tensor.defined()) return false;
  return find(tensor) != nullptr || (outer_ != nullptr && outer_->wants_grad(tensor));
}

void Tape::arrive(const Tensor& x, std::function<void(Tensor)> reached) {
  if (!recording_ || x.bytes() == 0) return;
  if (find(x) != nullptr) fail("a tensor that is known has not arrived from elsewhere");
  const auto results = std::make_shared<std::vector<Tensor>>(std::vector{x});
  entries_[x.data<std::byte>()] = {.tensor = x, .block = results};
  nodes_.push_back({results, [results, reached = std::move(reached)](Tape& tape) {
                      reached(tape.take(results->front()));
                    }});
}

void Tape::record(std::vector<Tensor> results, const std::vector<Tensor>& inputs,
                  std::function<void(Tape&)> backward) {
  bool wanted = false;
  for (const Tensor& input : inputs)
    wanted = wanted || wants_grad(input);
  if (!wanted) return;
  for (const Tensor& result : results) {
    if (find(result) != nullptr) fail("an op wrote over a tensor that carries a gradient");
    if (result.id() != nullptr)
      entries_.try_emplace(result.data<std::byte>(), Entry{.tensor = result});
  }
  nodes_.push_back(
      {std::make_shared<std::vector<Tensor>>(std::move(results)), std::move(backward)});
}

void Tape::record(const Tensor& result, const std::vector<Tensor>& inputs,
                  std::function<void(Tape&)> backward) {
  record(std::vector<Tensor>{result}, inputs, std::move(backward));
}

// What has been told may be on its way to other ranks.
void Tape::check_open(const Entry& entry) {
  if (entry.told)
    fail("a gradient reaches a leaf of shape {} that was used before its first use",
         to_string(entry.tensor.shape()));
}

void Tape::finish(Entry& leaf) {
  const Tensor& gradient = leaf.gradient;
  if (std::exchange(leaf.stale, false))
    zero_bytes(gradient.raw(), gradient.device(), gradient.bytes());
  if (listener_ && !std::exchange(leaf.told, true)) listener_(gradient);
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
  check_open(*entry);
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
  check_open(*entry);
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

// Under its new name the tensor has the gradient that it had.
void Tape::rename(const Tensor& from, const Tensor& to) {
  if (const Entry* known = find(from); known == nullptr || known->block == nullptr) return;
  auto entry = entries_.extract(from.data<std::byte>());
  for (Tensor& result : *entry.mapped().block)
    if (result.id() == from.id()) result = to;
  entry.mapped().tensor = to;
  entry.key() = to.data<std::byte>();
  entries_.insert(std::move(entry));
}

// Whoever else held it would hold its memory, and a gradient that reached it would be lost.
void Tape::put_away(const Tensor& x, const Tensor& place) {
  rename(x, place);
  if (!x.unique()) fail("a tensor that is to wait in the host's memory is held by somebody else");
}

void Tape::put_last_away() {
  if (offloaded_.empty()) return;
  if (const Tensor x = offloaded_.back()->release(); x.defined())
    put_away(x, offloaded_.back()->place());
}

Tensor Tape::rest(const Tensor& result) {
  put_last_away();
  if (const Entry* known = find(result);
      known == nullptr || known->block == nullptr || result.bytes() == 0)
    return result;
  const Tensor name = Tensor::name(result.shape(), result.dtype(), result.device());
  rename(result, name);
  return name;
}

void Tape::wake() {
  if (!offloaded_.empty()) offloaded_.back()->fetch();
}

// The tensor before it goes now: its copy had the time of a block.
std::shared_ptr<Offload> Tape::offload(const Tensor& x) {
  if (const Entry* entry = find(x); entry != nullptr && entry->block == nullptr)
    fail("only what a block made can wait in the host's memory");
  put_last_away();
  return offloaded_.emplace_back(std::make_shared<Offload>(x));
}

// And begins to fetch the one before, which has the time of this block.
Tensor Tape::bring_back(const std::shared_ptr<Offload>& x) {
  while (offloaded_.back() != x)  // of blocks that no gradient has reached
    offloaded_.pop_back();
  offloaded_.pop_back();
  Tensor tensor = x->get();
  rename(x->place(), tensor);
  if (!offloaded_.empty()) offloaded_.back()->fetch();
  return tensor;
}

std::vector<Tensor> Tape::checkpoint(const Tensor& x, const std::vector<Tensor>& others,
                                     const Block& block, KeptOfBlock kept) {
  const bool records = recording_ && !entries_.empty();
  Tape silent(false);
  if (kept.once && recording_) silent.kept_ = std::make_shared<std::deque<Made>>();
  std::shared_ptr<Offload> moved;
  if (records) {
    wants_grad(x);  // refuses partial views now, not in backward
    for (const Tensor& other : others)
      wants_grad(other);
    if (kept.offload) moved = offload(x);
  }
  const auto results = std::make_shared<std::vector<Tensor>>(block(silent, x));
  if (!records) return *results;
  for (const Tensor& result : *results) {
    if (find(result) != nullptr) fail("a recomputed block must make new tensors");
    entries_[result.data<std::byte>()] = {.tensor = result, .block = results};
  }
  auto backward = [x = moved ? Tensor() : x, moved, block, results,
                   once = silent.kept_](Tape& tape) {
    const Tensor in = moved ? tape.bring_back(moved) : x;
    Tape inner;
    inner.outer_ = &tape;
    inner.kept_ = once;
    const std::vector<Tensor> again = block(inner, in);
    for (std::size_t i = 0; i < results->size(); ++i)
      if (Tensor gradient = tape.take((*results)[i]); gradient.defined())
        inner.accumulate(again[i], std::move(gradient));
    inner.run_nodes();
    if (moved) tape.put_away(in, moved->place());
  };
  nodes_.push_back({results, std::move(backward)});
  return *results;
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
    if (!node.results) {
      node.backward(*this);
      continue;
    }
    bool reached = false;
    for (const Tensor& result : *node.results)
      reached = reached || grad(result).defined();
    if (reached) node.backward(*this);
    for (const Tensor& result : *node.results)
      if (find(result) != nullptr) entries_.erase(result.data<std::byte>());
  }
}

void Tape::backward(const Tensor& result, const Tensor& seed) {
  if (!recording_) fail("back-propagation through a tape that does not record");
  if (!wants_grad(result)) fail("the result does not depend on anything that wants a gradient");
  accumulate(result, seed);
  run_nodes();
  if (of_marked_) listener_ = {};
  for (auto& [begin, entry] : entries_)
    if (entry.watched) finish(entry);
  entries_.clear();
}

}  // namespace vfm::ops
