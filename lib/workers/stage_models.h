// The models of one program that compute in workers: each of its cards has one worker with all of
// them.
//
// A model is added here, before the first request to any, and asked by the number that add()
// returns. workers/pictures.h, workers/texts.h and workers/captions.h do so behind the interfaces
// of models in this process. Workers start with the first request. Thread-safety: add() by one
// thread; ask() from any thread, after it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "share/card_board.h"
#include "share/engine_sessions.h"
#include "share/ordered_flow.h"
#include "tensor/tensor.h"
#include "workers/parcel.h"
#include "workers/service.h"

namespace vfm::workers {

/// Bytes of a GPU that a process uses before any tensor: its context and the kernels' code.
inline constexpr std::int64_t kContextBytes = std::int64_t{768} << 20;

class StageModels {
 public:
  /// `cards`: find_cards(); `share`: the file of VFM_SHARE, or empty; `stage`: the program's name.
  StageModels(std::vector<share::Card> cards, std::string share, std::string stage);
  /// Ends the workers.
  ~StageModels();
  StageModels(const StageModels&) = delete;
  StageModels& operator=(const StageModels&) = delete;

  /// The kind of device of the workers.
  Device device() const;
  /// Requests that are answered at once, at most.
  std::size_t together() const;
  /// For the program's slots (share/slots.h): counts its results, for those who share the cards.
  std::shared_ptr<share::OrderedFlow> flow() const;
  /// Adds a service that each worker opens: its name, and the parcel to open it with. `memory`: the
  /// predicted bytes of its model and work on a card. Returns its number.
  std::size_t add(const std::string& service, Parcel open, std::int64_t memory);
  /// Lets the services decode, or encode, on their worker's card, with its own kOwnSessions
  /// (share/engine_sessions.h): adds their memory, and while the card has an item others have one
  /// session fewer there. Must precede the first request.
  void add_sessions(share::CardKind kind);
  /// Says that all services are added, and so checks the cards before the first request. Throws
  /// what CardBoard's constructor throws.
  void start();
  /// Calls start(), and waits until a worker has opened the services, so that faults show before
  /// any work. Throws what WorkerPool::open() throws, too.
  void open();
  /// Asks the service of that number; returns and throws as WorkerPool::ask().
  Parcel ask(std::size_t number, Parcel request);
  /// The same as WorkerPool::ask_late().
  std::optional<Parcel> ask_late(std::size_t number,
                                 const std::function<std::optional<Parcel>()>& make);
  /// Says that no more requests come, so other programs may have the cards.
  void finished() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The service of StageModels' workers, which combines the services `parts`. For
/// Tool::serve_card():
///   return serve_card(channel, stage_services({{"pictures", open_pictures}}));
Services stage_services(const Services& parts);

}  // namespace vfm::workers
