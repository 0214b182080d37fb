// SPDX-License-Identifier: Apache-2.0
#include "cards/worker_pool.h"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace vfm::cards {

namespace {

// Of workers at one request, after which that is at fault.
constexpr int kMostDeaths = 2;
// Of requests that were given up, one after the other without an answer between: then the card is.
constexpr int kMostGivenUp = 8;

}  // namespace

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

  /// A card that has failed. False: it is the last one, which stays with `but_last`.
  bool leave_out(const CardBoard::Lease& lease, const std::string& why, bool but_last) {
    const std::lock_guard lock(leaving);
    if (but_last && board.cards_left() == 1) return false;
    take_off(lease.card->name);
    board.fail(lease, why);
    return true;
  }

  /// Starts another worker in the place of a lost one, and gives its card back; leaves that out
  /// where none can be started.
  void restart(const CardBoard::Lease& lease, const std::string& why) {
    try {
      log_warning("the worker on {} is started again: {}", lease.card->name, why);
      load(*lease.card);
    } catch (const Error& error) {
      leave_out(lease, error.what(), false);
      return;
    } catch (...) {
      board.give(lease);
      throw;
    }
    board.give(lease);
  }

  /// That of a leased card: nobody ends it meanwhile.
  Worker& of(const Card& card) {
    const std::lock_guard lock(mutex);
    return *workers.at(card.name);
  }

  WorkerPlan plan;
  std::atomic<int> given_up{0};  // requests since the last answer
  std::mutex leaving;            // one at a time
  std::mutex mutex;              // guards the map, not the workers
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
  int deaths = 0;
  for (;;) {
    const std::optional<CardBoard::Lease> lease = state_->board.take();
    const std::string& card = lease->card->name;
    std::string why;
    bool died = false;
    try {
      work(state_->of(*lease->card));
      state_->given_up = 0;
    } catch (const WorkerLost& lost) {
      why = lost.what();
      died = true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::device) {
        state_->board.give(*lease);
        throw;
      }
      why = error.what();
    } catch (...) {
      state_->board.give(*lease);
      throw;
    }
    if (why.empty()) return state_->board.give(*lease);
    const bool give_up = died && ++deaths == kMostDeaths;
    const bool keeps = give_up && ++state_->given_up <= kMostGivenUp;
    if (keeps || !state_->leave_out(*lease, why, died && !give_up)) state_->restart(*lease, why);
    if (give_up) fail_as(Cause::crash, "two workers died at it, the last one on {}: {}", card, why);
  }
}

void WorkerPool::finished() noexcept {
  state_->board.finished();
}

const std::vector<Card>& WorkerPool::cards() const {
  return state_->board.cards();
}

}  // namespace vfm::cards
