// The workers of a program. Each card that a CardBoard (share/card_board.h) gives the program has
// one worker while the program has the card.
//
// ask() takes a card for one request, asks the worker of the card, and gives the card back. If the
// worker dies or the GPU fails, the card is not used again, a warning names the card, and the
// worker of a second card gets the request. If the second worker dies, too, the request fails, and
// the second card gets a new worker. If the worker of the last card dies, this card gets a new
// worker. A service's answer must not depend on the worker or on earlier requests.
//
// A thread that asks gives back its slot of the processor (share/slots.h) while it waits for a card
// or a GPU. A worker on the processor uses the slot of the thread that asks.
// Thread-safety: any thread. Each card answers one request at a time.
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
  /// `share` is the file of VFM_SHARE, or empty. `cards` is the result of find_cards().
  /// `need.memory` is the predicted memory of the service. Workers start with requests. Throws what
  /// CardBoard's constructor throws.
  WorkerPool(const std::string& share, std::vector<share::Card> cards, share::CardNeed need,
             WorkerPlan plan);
  /// Ends all workers, and waits until they have ended. All calls of ask() must have returned.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Waits until a worker has opened the service. Call it before the first request. Throws what
  /// ask() throws, or the service's Error{usage} if the service cannot open because of a wrong
  /// option or file.
  void open();
  /// Returns the answer. Throws the service's Error; Error{crash} if the request killed two
  /// workers; Error{device}, with the reasons, if no card can be used; Stopped.
  Parcel ask(const Parcel& request);
  /// Waits for a worker, calls `make` once, and asks the worker with the request that `make`
  /// returns. If `make` returns nothing, returns nothing. Throws what ask() throws.
  std::optional<Parcel> ask_late(const std::function<std::optional<Parcel>()>& make);
  /// Frees the cards for other programs. No request may follow.
  void finished() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::workers
