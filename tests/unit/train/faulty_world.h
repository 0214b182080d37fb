// Worlds and data in which something goes wrong, to see that a proof notices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "dist/world.h"
#include "support/pass_on.h"
#include "train/data/dataset.h"

namespace vfm {

/// What goes wrong with the collectives of one kind along one axis.
struct Fault {
  std::string axis;  ///< as World::group() has it
  dist::Operation operation = dist::Operation::all_reduce;
  enum Kind {
    skips,       ///< the rank goes on with what it has
    leaves_out,  ///< the last rank counts as zero, or sends what the first one does
    scales,      ///< the result is doubled
    swaps,       ///< two ranks' parts change places
    splits,      ///< the ranks count from the end, and the messages from the beginning
    regroups,    ///< the first and the last ranks by themselves
    strays,      ///< the last rank's result alone is doubled
    repeats,     ///< what was received before comes again
    exchanges,   ///< of two messages from one rank the second comes first
    breaks,      ///< the last rank's sum of doubles alone is infinite
    remembers,   ///< what came `period` calls before comes again, and so on
    adds,        ///< what came `period` calls before is added, and so on
  } kind = skips;
  int from = 0;                                 ///< the calls from this one on
  int period = 0;                               ///< calls of a step
  int until = std::numeric_limits<int>::max();  ///< and no more from this one on
  /// What is done to this rank's summands of a step's loss and of its elements, which all ranks of
  /// the world add: images, videos.
  std::function<void(std::span<double> losses, std::span<double> elements)> of_loss = {};
};

/// Another group, with a fault.
class FaultyGroup final : public dist::Group {
 public:
  FaultyGroup(std::unique_ptr<dist::Group> group, const Fault& fault)
      : Group(group->axis(),
              fault.kind == Fault::splits ? last(*group) - group->rank() : group->rank(),
              group->ranks()),
        group_(std::move(group)),
        fault_(fault) {}

  void barrier() override { group_->barrier(); }
  std::vector<std::string> gather(const std::string& text) override { return group_->gather(text); }

 private:
  // What is wrong with a result is done to it when it is there.
  struct Started final : dist::Pending {
    Started(dist::Transfer begun, std::function<void()> then)
        : transfer(std::move(begun)), after(std::move(then)) {}
    void wait() override {
      transfer.wait();
      if (after) std::exchange(after, {})();
    }
    bool done() override {
      if (!transfer.done()) return false;
      wait();
      return true;
    }
    dist::Transfer transfer;
    std::function<void()> after;
  };

  static int last(const dist::Group& group) { return group.size() - 1; }
  bool is_last() const { return group_->rank() == last(*group_); }

  std::unique_ptr<dist::Pending> start(const dist::Call& call) override {
    const int number = call.operation == fault_.operation ? calls_++ : -1;
    const bool wrong = number >= fault_.from && number < fault_.until;
    if (call.operation == fault_.operation && fault_.period > 0)
      return from_before(call, static_cast<std::size_t>(number), wrong);
    if (call.operation == fault_.operation && fault_.kind == Fault::repeats)
      return std::make_unique<Started>(pass_on(call), [this, call, wrong] {
        const Tensor here = call.out.clone();
        if (wrong && before_.defined())
          std::memcpy(call.out.raw(), before_.raw(), std::min(before_.bytes(), here.bytes()));
        before_ = here;
      });
    if (wrong && fault_.kind == Fault::exchanges) return in_other_order(call);
    dist::Call changed = call;
    std::function<void()> after;
    if (fault_.kind == Fault::splits) {
      std::ranges::reverse(changed.to);
      std::ranges::reverse(changed.from);
    } else if (wrong) {
      after = spoil(call, changed);
    }
    if (wrong && fault_.kind == Fault::skips) {
      after();
      return std::make_unique<Started>(dist::Transfer(), nullptr);
    }
    return std::make_unique<Started>(pass_on(changed), after);
  }

  // What the call of the same place in the step before gave, instead or besides.
  std::unique_ptr<dist::Pending> from_before(const dist::Call& call, std::size_t number,
                                             bool wrong) {
    steps_.resize(static_cast<std::size_t>(fault_.period));
    Tensor& before = steps_[number % steps_.size()];
    return std::make_unique<Started>(pass_on(call), [this, call, wrong, &before] {
      if (wrong && fault_.kind == Fault::remembers) return copy(before, call.out);
      if (wrong)
        for (std::size_t i = 0; i < call.out.floats().size(); ++i)
          call.out.floats()[i] += before.floats()[i];
      before = call.out.clone();
    });
  }

  // The sender sends both before it waits for anything that follows from them.
  std::unique_ptr<dist::Pending> in_other_order(const dist::Call& call) {
    if (before_.defined()) {
      copy(std::exchange(before_, Tensor()), call.out);
      return std::make_unique<Started>(dist::Transfer(), nullptr);
    }
    before_ = Tensor(call.out.shape(), call.out.dtype());
    group_->receive(call.source, before_).wait();
    return std::make_unique<Started>(group_->receive(call.source, call.out), nullptr);
  }

  // Changes what goes out; returns what is to be done to what comes.
  std::function<void()> spoil(const dist::Call& call, dist::Call& changed) const {
    switch (fault_.kind) {
      case Fault::skips:
        return [this, call] { copy_own(call); };
      case Fault::leaves_out:
        if (is_last() && call.in.defined())
          changed.in = Tensor::zeros(call.in.shape(), call.in.dtype());
        else if (is_last())
          std::memset(call.out.raw(), 0, call.out.bytes());
        return {};
      case Fault::swaps:
        if (call.operation == dist::Operation::all_to_all) {
          changed.in = swapped(call.in, call.to);
          return {};
        }
        return [call] { copy(swapped(call.out, call.from), call.out); };
      case Fault::scales:
        return [call] { scale(call); };
      case Fault::strays:
        return [this, call] {
          if (is_last()) scale(call);
        };
      case Fault::breaks:
        return [this, call] {
          if (is_last()) *static_cast<double*>(call.out.raw()) = INFINITY;
        };
      default:
        return {};
    }
  }

  // As if there were no other ranks: what comes from them is zero.
  void copy_own(const dist::Call& call) const {
    const auto begin_of = [&](const std::vector<std::int64_t>& parts) {
      std::size_t bytes = 0;
      for (int i = 0; i < rank(); ++i)
        bytes += static_cast<std::size_t>(parts[static_cast<std::size_t>(i)]) * call.element;
      return bytes;
    };
    if (call.operation == dist::Operation::all_reduce) return;
    auto* out = static_cast<std::byte*>(call.out.raw());
    const auto* in = static_cast<const std::byte*>(call.in.raw());
    std::memset(out, 0, call.out.bytes());
    if (call.operation == dist::Operation::reduce_scatter)
      std::memcpy(out, in + begin_of(call.to), call.out.bytes());
    else if (call.operation == dist::Operation::all_gather)
      std::memcpy(out + begin_of(call.from), in, call.in.bytes());
  }

  // The first and the second part, if they are as long; each by itself in another order, if not.
  static Tensor swapped(const Tensor& whole, const std::vector<std::int64_t>& parts) {
    const Tensor result = whole.clone();
    const std::size_t bytes =
        whole.bytes() / static_cast<std::size_t>(std::max<std::int64_t>(1, whole.elements()));
    const auto least = static_cast<std::size_t>(std::min(parts[0], parts[1])) * bytes;
    const auto first = static_cast<std::size_t>(parts[0]) * bytes;
    auto* to = static_cast<std::byte*>(result.raw());
    const auto* from = static_cast<const std::byte*>(whole.raw());
    std::memcpy(to, from + first, least);
    std::memcpy(to + first, from, least);
    return result;
  }

  static void scale(const dist::Call& call) {
    if (call.sum == dist::Sum::f64) {
      auto* values = static_cast<double*>(call.out.raw());
      std::for_each(values, values + call.out.bytes() / sizeof(double), [](double& v) { v *= 2; });
      return;
    }
    const Tensor values = call.out.to(DType::f32).clone();
    for (float& v : values.floats())
      v *= 2;
    copy(values.to(call.out.dtype()), call.out);
  }

  dist::Transfer pass_on(const dist::Call& call) { return vfm::pass_on(*group_, call); }

  const std::unique_ptr<dist::Group> group_;
  const Fault fault_;
  int calls_ = 0;
  Tensor before_;
  std::vector<Tensor> steps_;
};

class FaultyWorld final : public PassingWorld {
 public:
  FaultyWorld(dist::World& world, Fault fault) : PassingWorld(world), fault_(std::move(fault)) {}

  std::unique_ptr<dist::Group> group(std::string_view axis, std::vector<int> ranks) override {
    if (axis != fault_.axis || ranks.size() < 2) return world_.group(axis, std::move(ranks));
    if (fault_.kind == Fault::regroups) {
      const auto half = ranks.begin() + static_cast<std::ptrdiff_t>(ranks.size() / 2);
      const bool late = std::find(half, ranks.end(), rank()) != ranks.end();
      ranks = late ? std::vector(half, ranks.end()) : std::vector(ranks.begin(), half);
    }
    return std::make_unique<FaultyGroup>(world_.group(axis, std::move(ranks)), fault_);
  }
  using PassingWorld::all_reduce_sum;
  void all_reduce_sum(std::span<double> values) override {
    // Sums of the loss and elements of images, and of videos, come first (train/step/trainer.cc).
    if (fault_.of_loss && values.size() == kResults) {
      std::array<double, 2> losses = {values[0], values[2]}, elements = {values[1], values[3]};
      fault_.of_loss(losses, elements);
      values[0] = losses[0], values[1] = elements[0], values[2] = losses[1],
      values[3] = elements[1];
    }
    world_.all_reduce_sum(values);
  }

 private:
  static constexpr std::size_t kResults = 12;
  const Fault fault_;
};

/// Samples that have all the first one's name, and so its random numbers.
class OneStream final : public train::Dataset {
 public:
  explicit OneStream(const Dataset& data) : data_(data) {}
  const data::SampleIndex& index() const override { return data_.index(); }
  const Json& info() const override { return data_.info(); }

 private:
  void fit_model(train::Recipe& recipe) const override { data_.fit(recipe); }
  train::CleanSample read_sample(std::size_t i, std::optional<train::SeenAt> seen) const override {
    train::CleanSample sample = data_.read(i, seen);
    sample.key = data_.entry(0).key;
    return sample;
  }
  const Dataset& data_;
};

}  // namespace vfm
