// SPDX-License-Identifier: Apache-2.0
#include "cards/worker_pool.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace vfm::cards {

struct WorkerPool::State {
  State(const std::string& share, std::vector<Card> cards, CardNeed need, WorkerPlan plan_in)
      : plan(std::move(plan_in)),
        board(share, std::move(cards), std::move(need),
              {.load = [this](const Card& card) { load(card); },
               .unload = [this](const Card& card) { take_off(card.name); }}) {
    plan.life = board.life();
  }

  void load(const Card& card) {
    log_info("starts a worker on {}", card.name);
    std::unique_ptr<Worker> worker = std::make_unique<Worker>(card, plan);
    const std::lock_guard lock(mutex);
    workers[card.name] = std::move(worker);
  }

  /// Ends the worker of a card, if there is one.
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

  /// That of a leased card: nobody ends it meanwhile.
  Worker& of(const Card& card) {
    const std::lock_guard lock(mutex);
    return *workers.at(card.name);
  }

  WorkerPlan plan;
  std::mutex mutex;  // guards the map, not the workers
  std::map<std::string, std::unique_ptr<Worker>> workers;
  CardBoard board;  // last: it calls back until it is gone
};

WorkerPool::WorkerPool(const std::string& share, std::vector<Card> cards, CardNeed need,
                       WorkerPlan plan)
    : state_(std::make_unique<State>(share, std::move(cards), std::move(need), std::move(plan))) {}

WorkerPool::~WorkerPool() {
  finished();
}

Parcel WorkerPool::ask(const Parcel& request) {
  Parcel answer;
  with_worker([&](Worker& worker) { answer = worker.ask(request); });
  return answer;
}

std::optional<Parcel> WorkerPool::ask_late(const std::function<std::optional<Parcel>()>& make) {
  std::optional<Parcel> request, answer;
  bool made = false;
  with_worker([&](Worker& worker) {
    if (!std::exchange(made, true)) request = make();
    if (request) answer = worker.ask(*request);
  });
  return answer;
}

void WorkerPool::with_worker(const std::function<void(Worker&)>& work) {
  for (;;) {
    const std::optional<CardBoard::Lease> lease = state_->board.take();
    try {
      work(state_->of(*lease->card));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) {
        state_->board.give(*lease);
        throw;
      }
      const std::string why = error.what();
      state_->take_off(lease->card->name);
      state_->board.fail(*lease, why);
      continue;
    } catch (...) {
      state_->board.give(*lease);
      throw;
    }
    return state_->board.give(*lease);
  }
}

void WorkerPool::finished() noexcept {
  state_->board.finished();
}

const std::vector<Card>& WorkerPool::cards() const {
  return state_->board.cards();
}

}  // namespace vfm::cards
