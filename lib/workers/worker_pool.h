// The workers of one stage: one on each card that a CardBoard gives, from when the stage gets the
// card until it loses it.
//
// ask() takes a card for one request, asks its worker, and gives the card back. If a worker dies,
// or its GPU fails, its card is left out with a warning that names it, and the request goes to
// another worker. If that dies, too, the request is at fault: it is given up, and the second worker
// starts again. A worker that dies on the last card also starts again. So one request costs at most
// one card, and never the last. So a service's answer must not depend on the worker or on earlier
// requests.
//
// A thread that asks gives its slot of the processor back (share/slots.h): while it waits for a
// card, and while a GPU computes. A worker on the processor computes with that slot.
// Thread-safety: any thread; as many requests are answered at once as there are cards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "share/card_board.h"
#include "workers/worker.h"

namespace vfm::workers {

class WorkerPool {
 public:
  /// `share`: the file of VFM_SHARE, or empty. `cards`: find_cards(). `need`: its memory is that
  /// predicted for the service's model and work. Throws what CardBoard's constructor throws.
  /// Workers start later, when there are requests.
  WorkerPool(const std::string& share, std::vector<share::Card> cards, share::CardNeed need,
             WorkerPlan plan);
  /// Ends all workers, and waits for their ends. No request may be under way.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Waits for a worker, before the first request. If none can be started, throws the Error{usage}
  /// of opening if the user is at fault; else what ask() throws.
  void open();
  /// Throws the service's Error for this request; Error{crash} when two workers have died of it;
  /// Error{device} when no card is left, with the reasons; Stopped.
  Parcel ask(const Parcel& request);
  /// The same for a request that `make` makes, called once, when a worker is ready; nothing if
  /// `make` returns none.
  std::optional<Parcel> ask_late(const std::function<std::optional<Parcel>()>& make);
  /// Says that no more requests come, so others may have the cards.
  void finished() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::workers
