// SPDX-License-Identifier: Apache-2.0
#include "workers/worker_pool.h"

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "share/slots.h"

namespace vfm::workers {

namespace {

// A request that has killed so many workers fails.
constexpr int kMostDeaths = 2;
// After so many failed requests without an answer between them, a GPU at which a request fails is
// left out.
constexpr int kMostGivenUp = 8;

}  // namespace

struct WorkerPool::State {
  State(const std::string& share, std::vector<share::SharedGpu> gpus, share::GpuNeed need,
        WorkerPlan plan_in)
      : plan(std::move(plan_in)),
        on_processor(!gpus.empty() && gpus[0].index < 0),
        board(share, std::move(gpus), std::move(need),
              {.load = [this](const share::SharedGpu& gpu) { load(gpu); },
               .unload = [this](const share::SharedGpu& gpu) { take_off(gpu.name); }}) {
    plan.life = board.life();
  }

  void load(const share::SharedGpu& gpu) {
    log_info("starts a worker on {}", gpu.name);
    std::unique_ptr<Worker> worker;
    try {
      worker = std::make_unique<Worker>(gpu, plan);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      if (error.kind() == ErrorKind::usage && !refusal) refusal = std::current_exception();
      throw;
    }
    const std::lock_guard lock(mutex);
    workers[gpu.name] = std::move(worker);
  }

  /// Ends the worker of a GPU, if there is one.
  void take_off(const std::string& name) {
    std::unique_ptr<Worker> worker;
    {
      const std::lock_guard lock(mutex);
      if (const auto found = workers.find(name); found != workers.end()) {
        worker = std::move(found->second);
        workers.erase(found);
      }
    }
    if (worker) log_info("ends the worker on {}", name);
  }

  /// Leaves out a GPU that has failed. With `but_last`, keeps the last GPU, and returns false.
  bool leave_out(const share::GpuBoard::Lease& lease, const std::string& why, bool but_last) {
    const std::lock_guard lock(leaving);
    if (but_last && board.gpus_left() == 1) return false;
    take_off(lease.gpu->name);
    board.fail(lease, why);
    return true;
  }

  /// Leaves out the GPU of a dead worker, or starts a new worker there. With `gives_up`, throws the
  /// error of the request.
  void bury(const share::GpuBoard::Lease& lease, const std::string& why, bool gives_up) {
    const bool keeps = gives_up && ++given_up <= kMostGivenUp;
    if (keeps || !leave_out(lease, why, !gives_up)) restart(lease, why);
    if (gives_up)
      fail_as(Cause::crash, "two workers died at it, the last one on {}: {}", lease.gpu->name, why);
  }

  /// Starts a new worker and gives the GPU back. If no worker can start, leaves the GPU out.
  void restart(const share::GpuBoard::Lease& lease, const std::string& why) {
    try {
      log_warning("the worker on {} is started again: {}", lease.gpu->name, why);
      load(*lease.gpu);
    } catch (const Error& error) {
      leave_out(lease, error.what(), false);
      return;
    } catch (...) {
      board.give(lease);
      throw;
    }
    board.give(lease);
  }

  /// Returns the worker of a leased GPU. No other thread ends this worker during the lease.
  Worker& of(const share::SharedGpu& gpu) {
    const std::lock_guard lock(mutex);
    return *workers.at(gpu.name);
  }

  /// Calls `work` with a worker, and again with another worker if the first is lost. The thread has
  /// no slot while it waits for a worker or while a GPU computes. It has its slot while a worker on
  /// the processor computes.
  void with_worker(const std::function<void(Worker&)>& work) {
    for (int deaths = 0;;) {
      std::optional<share::Slots::Away> away(std::in_place);
      const share::GpuBoard::Lease lease = *board.take();
      std::optional<share::Slots::Back> back;
      if (on_processor) {
        away.reset();
        back.emplace();  // The caller may be Away.
      }
      try {
        work(of(*lease.gpu));
        given_up = 0;
        return board.give(lease);
      } catch (const WorkerLost& lost) {
        bury(lease, lost.what(), ++deaths == kMostDeaths);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::device) {
          leave_out(lease, error.what(), false);
          continue;
        }
        given_up = 0;
        board.give(lease);
        throw;
      } catch (...) {
        board.give(lease);
        throw;
      }
    }
  }

  WorkerPlan plan;
  const bool on_processor;
  std::atomic<int> given_up{0};  // failed requests since the last answer
  std::mutex leaving;            // locked in leave_out()
  std::mutex mutex;              // guards the map `workers` and `refusal`
  std::map<std::string, std::unique_ptr<Worker>> workers;
  std::exception_ptr refusal = nullptr;  // first Error{usage} of a start
  share::GpuBoard board;                 // last member, since it calls load() until it is destroyed
};

WorkerPool::WorkerPool(const std::string& share, std::vector<share::SharedGpu> gpus,
                       share::GpuNeed need, WorkerPlan plan)
    : state_(std::make_unique<State>(share, std::move(gpus), std::move(need), std::move(plan))) {}

WorkerPool::~WorkerPool() {
  finished();
}

void WorkerPool::open() {
  State& s = *state_;
  try {
    s.board.give(*s.board.take());
  } catch (const Error&) {
    const std::lock_guard lock(s.mutex);
    if (s.refusal) std::rethrow_exception(s.refusal);
    throw;
  }
}

Parcel WorkerPool::ask(const Parcel& request) {
  Parcel answer;
  state_->with_worker([&](Worker& worker) { answer = worker.ask(request); });
  return answer;
}

std::optional<Parcel> WorkerPool::ask_late(const std::function<std::optional<Parcel>()>& make) {
  std::optional<Parcel> request, answer;
  bool made = false;
  state_->with_worker([&](Worker& worker) {
    if (!std::exchange(made, true)) request = make();
    if (request) answer = worker.ask(*request);
  });
  return answer;
}

void WorkerPool::finished() noexcept {
  state_->board.finished();
}

}  // namespace vfm::workers
