// All models of one program that compute in workers. Each card has one worker (workers/worker.h)
// with all these models.
//
// add() adds a model, before the first request to any model, and returns its number for ask().
// workers/pictures.h, workers/texts.h and workers/captions.h add models with the interfaces of
// models in this process. Workers start with the first request. Thread-safety: add() by one thread;
// then ask() from any thread.
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
  /// `cards` are the result of find_cards(), `share` is the file of VFM_SHARE, or empty, and
  /// `stage` is the program's name.
  StageModels(std::vector<share::Card> cards, std::string share, std::string stage);
  /// Ends the workers.
  ~StageModels();
  StageModels(const StageModels&) = delete;
  StageModels& operator=(const StageModels&) = delete;

  /// Returns the kind of device of the workers.
  Device device() const;
  /// Returns the most requests that are answered at the same time.
  std::size_t together() const;
  /// Counts the program's results for programs that share the cards. Pass it to Slots::set_flow()
  /// (share/slots.h).
  std::shared_ptr<share::OrderedFlow> flow() const;
  /// Adds a service that each worker opens, by its name and the parcel to open it with. `memory`:
  /// predicted bytes of its model and work on a card. Returns its number.
  std::size_t add(const std::string& service, Parcel open, std::int64_t memory);
  /// Lets the services decode or encode on their worker's card, with kOwnSessions sessions
  /// (share/engine_sessions.h), whose memory this call adds. While the card has an item, other
  /// programs have one session fewer there. Must precede the first request.
  void add_sessions(share::CardKind kind);
  /// Call it after the last add(), to check the cards before the first request. Throws what
  /// CardBoard's constructor throws.
  void start();
  /// Calls start(), and waits until a worker has opened the services, so that errors come before
  /// any work. Also throws what WorkerPool::open() throws.
  void open();
  /// Asks the service `number`; returns and throws what WorkerPool::ask() does.
  Parcel ask(std::size_t number, Parcel request);
  /// Asks the service `number` as WorkerPool::ask_late() does.
  std::optional<Parcel> ask_late(std::size_t number,
                                 const std::function<std::optional<Parcel>()>& make);
  /// Says that no more requests come, so other programs may use the cards.
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
