// The workers of one program: one on each card (GPU) that a CardBoard (share/card_board.h) gives
// it, as long as the program has that card.
//
// ask() takes a card for one request, asks its worker, and gives the card back. If a worker dies,
// or its GPU fails, the card is no longer used, a warning names the card, and a second worker gets
// the request. If the second worker dies, too, the request is regarded as the cause: it is given
// up, and the second worker starts again. A worker that dies on the last card also starts again. So
// one request costs at most one card, and never the last. A service's answer must not depend on the
// worker or on earlier requests.
//
// A thread that asks gives back its slot of the processor (share/slots.h) while it waits for a
// card, and while a GPU computes. A worker on the processor uses the slot of the thread that asks.
// Thread-safety: any thread; as many requests as there are cards are answered at once.
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
  /// `share` is the file of VFM_SHARE, or empty. `cards` are the result of find_cards(). The
  /// `memory` of `need` is the prediction for the service's model and work. Throws what CardBoard's
  /// constructor throws. Workers start only when there are requests.
  WorkerPool(const std::string& share, std::vector<share::Card> cards, share::CardNeed need,
             WorkerPlan plan);
  /// Ends all workers, and waits until they have ended. No request may be under way.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Waits for a worker, before the first request. If none can be started, throws Error{usage} of
  /// the service's opening if the user is at fault, and otherwise what ask() throws.
  void open();
  /// Returns the answer. Throws the service's Error; Error{crash} if two workers died of the
  /// request; Error{device}, with the reasons, if no card is left; Stopped.
  Parcel ask(const Parcel& request);
  /// Does what ask() does, for a request that `make` returns. `make` is called once, when a worker
  /// is ready. Returns nothing if `make` returns nothing.
  std::optional<Parcel> ask_late(const std::function<std::optional<Parcel>()>& make);
  /// Says that no more requests come, so other programs may use the cards.
  void finished() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::workers
