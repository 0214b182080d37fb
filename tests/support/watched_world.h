// A world that writes down when its rank starts operations and waits for them; and one whose
// operations are all waited for where they start.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dist/world.h"
#include "support/pass_on.h"

namespace vfm {

/// What a rank did, in that order.
struct Happened {
  enum What { issued, awaited, finished } what = issued;
  std::size_t number = 0;  ///< of the operation, of all groups: from 0, as they were issued
  std::string axis;
  dist::Operation operation = dist::Operation::barrier;
  std::size_t bytes = 0;  ///< of what comes
  double at = 0;          ///< by the timeline's clock
};

/// Of one rank. The clock tells seconds, or on meta the work that was counted until then.
struct Timeline {
  std::function<double()> clock;
  bool at_once = false;  ///< what starts is waited for
  std::vector<Happened> all;
  std::size_t issued = 0;

  /// Of each operation in turn how much the clock went on from its issue until it was waited for;
  /// -1: it never was.
  std::vector<double> between(const std::string& axis, dist::Operation operation) const {
    std::vector<double> begins(issued, -1), spans;
    std::vector<std::size_t> wanted;
    for (const Happened& one : all) {
      if (one.axis != axis || one.operation != operation) continue;
      double& begin = begins[one.number];
      if (one.what == Happened::issued) {
        begin = one.at;
        wanted.push_back(one.number);
        spans.push_back(-1);
      } else if (one.what == Happened::awaited) {
        for (std::size_t i = 0; i < wanted.size(); ++i)
          if (wanted[i] == one.number && spans[i] < 0) spans[i] = one.at - begin;
      }
    }
    return spans;
  }
};

class WatchedGroup final : public dist::Group {
 public:
  WatchedGroup(std::unique_ptr<dist::Group> group, Timeline& timeline)
      : Group(group->axis(), group->rank(), group->ranks()),
        group_(std::move(group)),
        timeline_(timeline) {}
  void barrier() override { group_->barrier(); }
  std::vector<std::string> gather(const std::string& text) override { return group_->gather(text); }

 private:
  struct Started final : dist::Pending {
    Started(dist::Transfer begun, Happened issue, Timeline& line)
        : transfer(std::move(begun)), one(std::move(issue)), timeline(line) {}
    void wait() override {
      if (is_done) return transfer.wait();
      note(Happened::awaited);
      transfer.wait();
      note(Happened::finished);
    }
    bool done() override { return is_done = is_done || transfer.done(); }
    void note(Happened::What what) {
      one.what = what;
      one.at = timeline.clock();
      timeline.all.push_back(one);
    }
    dist::Transfer transfer;
    Happened one;
    Timeline& timeline;
    bool is_done = false;  // nobody waits any more
  };

  std::unique_ptr<dist::Pending> start(const dist::Call& call) override {
    Happened one{Happened::issued,
                 timeline_.issued++,
                 axis(),
                 call.operation,
                 (call.out.defined() ? call.out : call.in).bytes(),
                 timeline_.clock()};
    timeline_.all.push_back(one);
    auto started = std::make_unique<Started>(pass_on(*group_, call), one, timeline_);
    if (timeline_.at_once) started->wait();
    return started;
  }

  const std::unique_ptr<dist::Group> group_;
  Timeline& timeline_;
};

class WatchedWorld final : public PassingWorld {
 public:
  /// Both must outlive it.
  WatchedWorld(dist::World& world, Timeline& timeline) : PassingWorld(world), timeline_(timeline) {}

  std::unique_ptr<dist::Group> group(std::string_view axis, std::vector<int> ranks) override {
    const bool alone = ranks.size() < 2;
    auto group = world_.group(axis, std::move(ranks));
    if (alone) return group;
    return std::make_unique<WatchedGroup>(std::move(group), timeline_);
  }

 private:
  Timeline& timeline_;
};

}  // namespace vfm
