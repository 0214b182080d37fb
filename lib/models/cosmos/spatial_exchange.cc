// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/spatial_exchange.h"

#include <thread>

#include "base/error.h"
#include "ops/norm/frame_norm.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

// Rows [begin, end) of each frame of `from` to each frame of `to`, beginning at row `at`.
void copy_band(const Tensor& from, std::int64_t begin, std::int64_t end, const Tensor& to,
               std::int64_t at) {
  const std::size_t row =
      static_cast<std::size_t>(from.size(2) * from.size(3)) * dtype_size(from.dtype());
  const auto place = [&](const Tensor& x, std::int64_t y) {
    return static_cast<std::byte*>(x.raw()) + static_cast<std::size_t>(y) * row;
  };
  copy_rows(place(to, at), static_cast<std::size_t>(to.size(1)) * row, place(from, begin),
            static_cast<std::size_t>(from.size(1)) * row,
            static_cast<std::size_t>(end - begin) * row, from.size(0), from.device());
}

}  // namespace

class ThreadParts::Part final : public SpatialExchange {
 public:
  Part(ThreadParts& all, int part) : all_(all), part_(part) {}

  int parts() const override { return static_cast<int>(all_.slots_.size()); }
  int part() const override { return part_; }

  Tensor with_neighbours(const Tensor& x, bool above) override {
    const std::vector<Tensor> parts = shared(x);
    const std::int64_t before = above && !first() ? 1 : 0, after = last() ? 0 : 1;
    const Tensor wide({x.size(0), x.size(1) + before + after, x.size(2), x.size(3)}, x.dtype());
    const auto own = static_cast<std::size_t>(part_);
    if (before > 0)
      copy_band(parts[own - 1], parts[own - 1].size(1) - 1, parts[own - 1].size(1), wide, 0);
    copy_band(x, 0, x.size(1), wide, before);
    if (after > 0) copy_band(parts[own + 1], 0, 1, wide, before + x.size(1));
    done();
    return wide;
  }

  Tensor whole_moments(const Tensor& own, double elements) override {
    std::vector<double> weights;
    const std::vector<Tensor> parts = shared(own, elements, &weights);
    const Tensor whole = ops::combine_moments(parts, weights);
    done();
    return whole;
  }

  Tensor gather_rows(const Tensor& x) override {
    const std::vector<Tensor> parts = shared(x);
    std::int64_t rows = 0;
    for (const Tensor& part : parts)
      rows += part.size(1);
    const Tensor all({x.size(0), rows, x.size(2), x.size(3)}, x.dtype());
    std::int64_t at = 0;
    for (const Tensor& part : parts) {
      copy_band(part, 0, part.size(1), all, at);
      at += part.size(1);
    }
    done();
    return all;
  }

 private:
  std::vector<Tensor> shared(const Tensor& x, double number = 0,
                             std::vector<double>* numbers = nullptr) {
    std::vector<double> ignored;
    return all_.share(static_cast<std::size_t>(part_), x, number, numbers ? *numbers : ignored);
  }
  // No part may change what the others still read.
  void done() { all_.wait_for_all(); }

  ThreadParts& all_;
  int part_;
};

void ThreadParts::wait_for_all() {
  std::unique_lock lock(mutex_);
  const std::size_t round = round_;
  if (++waiting_ == slots_.size()) {
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round || failure_; });
  if (failure_) fail("another part of the picture failed");
}

std::vector<Tensor> ThreadParts::share(std::size_t part, const Tensor& own, double number,
                                       std::vector<double>& numbers) {
  {
    const std::lock_guard lock(mutex_);
    slots_[part] = {own, number};
  }
  wait_for_all();
  std::vector<Tensor> all;
  const std::lock_guard lock(mutex_);
  for (const Slot& slot : slots_) {
    all.push_back(slot.tensor);
    numbers.push_back(slot.number);
  }
  return all;
}

void ThreadParts::run(const std::function<void(SpatialExchange&)>& body) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < slots_.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        Part part(*this, static_cast<int>(i));
        body(part);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        changed_.notify_all();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  for (Slot& slot : slots_)
    slot = {};
  waiting_ = 0;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace vfm::models
