// The models of one program that compute in workers: on each of its cards one worker, which has all
// of them.
//
// Who wants a model in workers adds it here, before the first request of any, and asks by the
// number that it gets: cards/pictures.h, cards/texts.h and cards/captions.h do so, with the
// interfaces that the models have here. Workers start with the first request. Thread-safety: add()
// by one thread; ask() from any thread, after it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/card_board.h"
#include "base/engine_sessions.h"
#include "base/ordered_flow.h"
#include "cards/parcel.h"
#include "cards/service.h"
#include "tensor/tensor.h"

namespace vfm::cards {

/// Of a GPU, that a process has on it before any tensor: its context and the kernels' code.
inline constexpr std::int64_t kContextBytes = std::int64_t{768} << 20;

class StageModels {
 public:
  /// `cards`: find_cards(); `share`: the file of --share, or empty; `stage`: the program's name.
  StageModels(std::vector<Card> cards, std::string share, std::string stage);
  /// Ends the workers.
  ~StageModels();
  StageModels(const StageModels&) = delete;
  StageModels& operator=(const StageModels&) = delete;

  /// What they compute on.
  Device device() const;
  /// Requests that are answered at once, at most.
  std::size_t together() const;
  /// For the program's slots (base/slots.h): counts its results, for those who share the cards.
  std::shared_ptr<OrderedFlow> flow() const;
  /// A service that each worker opens: its name, and with what. `memory`: what it is predicted to
  /// take of a card, model and work. Returns its number.
  std::size_t add(const std::string& service, Parcel open, std::int64_t memory);
  /// The services decode, or encode, on the card of their worker, with kOwnSessions that it has for
  /// itself (base/engine_sessions.h): their memory is added, and while the card has an item others
  /// have one session less there. Before the first request.
  void add_sessions(CardKind kind);
  /// All have been added: who knows that before there is a request finds out by this whether the
  /// cards will do. Throws what CardBoard's constructor throws.
  void start();
  /// start(), and waits until a worker has them: what is wrong with one shows before any work.
  /// Throws what WorkerPool::open() throws, too.
  void open();
  /// Of the service of that number, what WorkerPool::ask() returns and throws.
  Parcel ask(std::size_t number, Parcel request);
  /// What WorkerPool::ask_late() returns and throws.
  std::optional<Parcel> ask_late(std::size_t number,
                                 const std::function<std::optional<Parcel>()>& make);
  /// No more requests come: other programs may have the cards.
  void finished() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The service of workers of StageModels, of those that it may consist of. For Tool::serve_card():
///   return serve_card(channel, stage_services({{"pictures", open_pictures}}));
Services stage_services(const Services& parts);

}  // namespace vfm::cards
