// The workers of one stage: on each card that a CardBoard gives one worker, which is started when
// the card comes and ended when it goes.
//
// ask() takes a card for one request, asks its worker, and gives the card back. A worker that dies,
// or whose GPU fails, costs its card, which is left out with a warning that names it; what it was
// asked is asked of another one. Where that dies of it, too, the request is at fault: it is given
// up, and the second worker is started again. So is one that dies on the last card. So one request
// costs no more than a card, and never the last one. And a service must answer a request the same
// whoever it is that answers, and whatever else was asked before.
//
// A thread that asks gives its slot of the processor back (base/slots.h): while it waits for a
// card, and while a GPU computes. A worker on the processor computes with that slot.
// Thread-safety: any thread; as many requests are answered at once as there are cards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/card_board.h"
#include "cards/worker.h"

namespace vfm::cards {

class WorkerPool {
 public:
  /// `share`: the file of --share, or empty. `cards`: find_cards(). `need`: its memory is what is
  /// predicted of the service, model and work. Throws what CardBoard's constructor throws. Workers
  /// start later, when there are requests.
  WorkerPool(const std::string& share, std::vector<Card> cards, CardNeed need, WorkerPlan plan);
  /// Ends all workers, and waits for their ends. No request may be under way.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Waits until there is a worker, before the first request. Where none can be started throws, if
  /// that is the user's fault, the Error{usage} of opening; else what ask() throws.
  void open();
  /// Throws the Error that the service throws of this request; Error{crash} when two workers have
  /// died at it; Error{device} when no card is left, with the reasons; Stopped.
  Parcel ask(const Parcel& request);
  /// The same of a request that `make` makes once there is a worker for it; nothing, where it has
  /// none to make any more. Called once.
  std::optional<Parcel> ask_late(const std::function<std::optional<Parcel>()>& make);
  /// No more requests come: others may have the cards.
  void finished() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::cards
