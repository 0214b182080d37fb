// SPDX-License-Identifier: Apache-2.0
#include "train/data/step_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "train/kind.h"

namespace vfm::train {

StepReader::StepReader(const Recipe& recipe, const Dataset& data, const Parallel& parallel)
    : recipe_(recipe),
      data_(data),
      parallel_(parallel),
      shared_(parallel.sharers().size() > 1),
      order_(data.order(recipe.train.seed, data::Packing::blocks), data.lengths(recipe.model),
             recipe.data.pack_options()),
      flops_(recipe),
      end_(recipe.train.steps),
      window_(recipe.data.ahead) {
  begin_to_fetch();
}

void StepReader::begin_to_fetch() {
  unread_.clear();
  first_step_ = true;
  fetch_.reset();
  if (data_.is_remote()) fetch_ = std::make_unique<FetchAhead>(data_, fetch_limit(recipe_));
}

StepReader::~StepReader() {
  stop();
}

/// Ends the thread, after the sample that it reads.
void StepReader::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  stop_ = false;
}

void StepReader::seek(std::uint32_t step, DataPosition at, std::int64_t end) {
  stop();
  plans_.clear();
  items_.clear();
  window_.clear();
  failure_ = nullptr;
  begin_to_fetch();
  order_.seek(at);
  step_ = step;
  end_ = end;
}

StepPlan StepReader::next() {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  wanted_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !plans_.empty() || failure_; });
  wanted_ = false;
  if (plans_.empty()) std::rethrow_exception(failure_);
  Planned planned = std::move(plans_.front());
  plans_.pop_front();
  changed_.notify_all();
  own_ = std::move(planned.own);
  return std::move(planned.plan);
}

StepReader::Item StepReader::take_item() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !items_.empty() || failure_; });
  if (items_.empty()) std::rethrow_exception(failure_);
  Item item = std::move(items_.front());
  items_.pop_front();
  window_.take(item.bytes);
  changed_.notify_all();
  return item;
}

ReadSample StepReader::take() {
  return std::move(take_item().part.sample);
}

OwnReading StepReader::take_own() {
  OwnReading own = std::move(own_);
  const auto rank = static_cast<std::size_t>(parallel_.sharers().rank());
  for (std::size_t i = 0; i < own.parts[rank].size(); ++i)
    own.add(take_item().part);
  return own;
}

void StepReader::work() {
  try {
    for (;; ++step_) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          const auto ahead = static_cast<std::int64_t>(plans_.size());
          return stop_ || (wanted_ && ahead == 0) ||
                 (step_ < end_ && ahead < kMostStepsAhead && window_.may_read(1));
        });
        if (stop_) return;
      }
      Planned planned = fetch_ ? plan_ahead() : plan(step_);
      {
        const std::lock_guard lock(mutex_);
        plans_.push_back(planned);
      }
      changed_.notify_all();
      read(planned);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  changed_.notify_all();
}

StepReader::Planned StepReader::plan(std::uint32_t step) {
  Planned planned;
  StepPlan& plan = planned.plan;
  plan.step = step;
  plan.of_sources.resize(data_.sources().size());
  std::vector<std::size_t> samples;              // of this rank and its sharers
  std::size_t place = 0;                         // in the order of the whole step
  std::map<std::size_t, std::uint32_t> counted;  // of a blend: how often each sample came
  for (int p = 0; p < recipe_.data.packs; ++p) {
    data::Pack pack = order_.next();
    const double before = plan.flops;
    std::vector<std::uint32_t> again;
    for (const std::size_t sample : pack) {
      const data::Entry entry = data_.sizes(sample);
      plan.tokens += token_count(entry, recipe_.model);
      plan.flops += flops_.of(entry);
      if (!plan.of_sources.empty()) ++plan.of_sources[data_.source_of(sample)];
      if (data_.tells_repeats()) again.push_back(counted[sample]++);
    }
    const std::size_t first = std::exchange(place, place + pack.size());
    if (p % parallel_.data_ranks() != parallel_.data_rank()) continue;
    samples.insert(samples.end(), pack.begin(), pack.end());
    plan.packs.push_back(
        {first, std::move(pack), std::move(again), order_.position().epoch, plan.flops - before});
  }
  plan.samples = static_cast<std::int64_t>(place);
  plan.after = order_.position();
  if (shared_) planned.own = share_out(data_, std::move(samples), parallel_.sharers().size());
  return planned;
}

/// Plans the next step, and then others whose samples there is room to fetch. The first step after
/// seek() has the requests for itself.
StepReader::Planned StepReader::plan_ahead() {
  constexpr std::size_t kLeastSteps = 2;  // so that requests do not wait for the end of a step
  const auto plan_one = [&] {
    unread_.push_back(plan(step_ + static_cast<std::uint32_t>(unread_.size())));
    for_each_part(unread_.back(), [&](std::size_t sample, const ReadingPart& part, SeenAt) {
      fetch_->want(sample, part.begin, part.end);
      return true;
    });
  };
  if (unread_.empty()) plan_one();
  while (!first_step_ && step_ + static_cast<std::int64_t>(unread_.size()) < end_ &&
         std::ssize(unread_) < kMostStepsAhead &&
         (unread_.size() < kLeastSteps || fetch_->has_room()))
    plan_one();
  first_step_ = false;
  Planned planned = std::move(unread_.front());
  unread_.pop_front();
  return planned;
}

/// Calls use(sample, part, seen) for all that this rank reads of a step, until that returns false.
template <class Use>
bool StepReader::for_each_part(const Planned& planned, const Use& use) const {
  const std::uint32_t step = planned.plan.step;
  std::vector<SeenAt> seen;
  std::vector<std::size_t> samples;
  for (const StepPlan::Pack& pack : planned.plan.packs)
    for (std::size_t i = 0; i < pack.samples.size(); ++i) {
      seen.push_back({step, pack.epoch, pack.came_before(i)});
      samples.push_back(pack.samples[i]);
    }
  if (!shared_) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (!use(samples[i], ReadingPart{i, 0, data_.about_bytes(samples[i])}, seen[i])) return false;
    return true;
  }
  for (const ReadingPart& part :
       planned.own.parts[static_cast<std::size_t>(parallel_.sharers().rank())])
    if (!use(samples[part.sample], part, seen[part.sample])) return false;
  return true;
}

/// All that this rank reads of a step.
void StepReader::read(const Planned& planned) {
  const Kind& kind = kind_of(recipe_.model.type);
  for_each_part(planned, [&](std::size_t sample, const ReadingPart& part, SeenAt seen) {
    const bool whole = part.is_whole(data_.about_bytes(sample));
    const auto bytes =
        whole ? static_cast<std::int64_t>(kind.sample_bytes(recipe_, data_.sizes(sample)))
              : part.end - part.begin;
    return add(bytes, [&] {
      return fetch_ ? use_fetched(data_, fetch_->take(), whole, seen)
                    : read_part(data_, sample, part, seen);
    });
  });
}

/// Reads what takes so much, when it may; false: the thread is to end.
bool StepReader::add(std::int64_t bytes, const std::function<ReadPart()>& read) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [&] { return stop_ || window_.may_read(bytes) || (shared_ && plans_.size() <= 1); });
    if (stop_) return false;
  }
  Item item{bytes, read()};
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    window_.add(bytes);
  }
  changed_.notify_all();
  return true;
}

}  // namespace vfm::train
