// Plans steps and reads their samples in a thread of its own, ahead of the training.
//
// Reading is ahead by a number of bytes ('data.ahead'), not of steps: a short stall of the store
// costs no time as long as samples are left. Samples are read one at a time, in the order in which
// they are taken. All ranks plan a step alike. If samples are shared, a rank reads its part of
// them, and may always read one whole step ahead. The reader exchanges nothing between ranks.
// Samples that were read but not taken do not count: a resumed run continues after the last step
// that was trained.
//
// Samples in an object store are fetched by other threads before they are read, up to 'data.ahead'
// bytes of them (train/data/fetch_ahead.h). For that, steps are planned ahead of their reading.
//
// If reading computes on the GPU, the reader waits for its turn there (take_turn()). A thread that
// waits for samples, seeks, or destroys the reader must not hold the turn meanwhile.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "train/cost/memory.h"
#include "train/data/ahead_window.h"
#include "train/data/dataset.h"
#include "train/data/fetch_ahead.h"
#include "train/data/pack_order.h"
#include "train/data/shared_samples.h"
#include "train/step/parallel.h"

namespace vfm::train {

/// The work of a step.
struct StepPlan {
  struct Pack {
    std::size_t place = 0;  ///< place of the first sample in the order of the whole step
    data::Pack samples;
    /// In a blend: how often each sample came before in the step. Empty for other data.
    std::vector<std::uint32_t> again;
    std::uint32_t epoch = 0;
    double flops = 0;

    std::uint32_t came_before(std::size_t i) const { return again.empty() ? 0 : again[i]; }
  };
  std::uint32_t step = 0;
  std::vector<Pack> packs;  ///< packs of this rank and its sharers
  /// Sums over all ranks.
  std::int64_t tokens = 0, samples = 0;
  std::vector<std::int64_t> of_sources;  ///< number of samples from each of Dataset::sources()
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

  /// The next plan is that of `step`, with the data from position `at`. Steps from `end` on are
  /// planned only when next() asks for them. Throws Error as PackOrder::seek.
  void seek(std::uint32_t step, DataPosition at, std::int64_t end);
  /// Waits for the next step's plan. Throws what planning or reading threw; a sample that cannot be
  /// read is no such error.
  StepPlan next();
  /// The next sample of the step that next() returned, if samples are not shared.
  ReadSample take();
  /// This rank's part of all samples of that step, if samples are shared.
  OwnReading take_own();

 private:
  /// The result of one read.
  struct Item {
    std::int64_t bytes = 0;
    ReadPart part;
  };
  struct Planned {
    StepPlan plan;
    OwnReading own;  ///< the parts of each rank, if samples are shared
  };
  void work();
  Planned plan(std::uint32_t step);
  Planned plan_ahead();
  void begin_to_fetch();
  template <class Use>
  bool for_each_part(const Planned& planned, const Use& use) const;
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
  std::uint32_t step_ = 0;             ///< next step to read; used by the thread only
  std::unique_ptr<FetchAhead> fetch_;  ///< for data in an object store
  std::deque<Planned> unread_;         ///< steps from step_ on whose samples are being fetched
  bool first_step_ = true;             ///< after seek()
  std::int64_t end_;        ///< step after the last one of the run or stage
  OwnReading own_;          ///< for the step that next() returned

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
