// Plans steps and reads their samples in a thread of its own, ahead of who takes them.
//
// By bytes ('data.ahead'), not by steps: a store that stands still now and then costs no time as
// long as what was read lasts. Samples are read in the order in which they are taken, one at a
// time. A step is planned alike on all ranks; where samples are shared a rank reads its part, and
// at least that of a whole step. Nothing is exchanged here, and what was read but not taken is in
// no position: a run goes on after the last step that was trained.
// Where reading computes on the GPU it waits for its turn there (take_turn()): who waits for
// samples, or has the reader stop or go elsewhere, must not have it meanwhile. Thread-safety: one
// thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "train/cost/memory.h"
#include "train/data/ahead_window.h"
#include "train/data/dataset.h"
#include "train/data/order.h"
#include "train/data/shared_samples.h"
#include "train/step/parallel.h"

namespace vfm::train {

/// What is to be done in a step.
struct StepPlan {
  struct Pack {
    std::size_t place = 0;  ///< of its first sample, in the order of the whole step
    data::Pack samples;
    /// Of a blend: how often each of them came in the step before. Else empty.
    std::vector<std::uint32_t> again;
    std::uint32_t epoch = 0;
    double flops = 0;

    std::uint32_t came_before(std::size_t i) const { return again.empty() ? 0 : again[i]; }
  };
  std::uint32_t step = 0;
  std::vector<Pack> packs;  ///< of this rank and its sharers
  /// Over all ranks.
  std::int64_t tokens = 0, samples = 0;
  std::vector<std::int64_t> of_sources;  ///< samples by Dataset::sources()
  double flops = 0;
  DataPosition after;
};

class StepReader {
 public:
  /// Keeps the references. Nothing is read before the first next().
  StepReader(const Recipe& recipe, const Dataset& data, const Parallel& parallel);
  ~StepReader();
  StepReader(const StepReader&) = delete;
  StepReader& operator=(const StepReader&) = delete;

  /// The next plan is that of `step`, with the data from there; those from `end` on are made only
  /// when they are asked for. Throws Error as PackOrder::seek.
  void seek(std::uint32_t step, DataPosition at, std::int64_t end);
  /// The next step, when it is planned. Throws what planning and reading threw, if anything but
  /// that a sample cannot be read.
  StepPlan next();
  /// Of the step that next() gave the next sample; where samples are not shared.
  ReadSample take();
  /// Where they are: this rank's part of all of that step's.
  OwnReading take_own();

 private:
  /// What is read at once.
  struct Item {
    std::int64_t bytes = 0;
    ReadPart part;
  };
  struct Planned {
    StepPlan plan;
    OwnReading own;  ///< where samples are shared: who reads what
  };
  void work();
  Planned plan(std::uint32_t step);
  void read(const Planned& planned);
  bool add(std::int64_t bytes, const std::function<ReadPart()>& read);
  Item take_item();
  void stop();

  const Recipe& recipe_;
  const Dataset& data_;
  const Parallel& parallel_;
  const bool shared_;
  PackOrder order_;
  SampleFlops flops_;
  std::uint32_t step_ = 0;  ///< to be planned next, by the thread alone
  std::int64_t end_;        ///< of the run or stage: the step after its last
  OwnReading own_;          ///< of the step that next() gave

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Planned> plans_;
  std::deque<Item> items_;
  AheadWindow window_;
  bool wanted_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  ///< the last member: it uses the others
};

}  // namespace vfm::train
