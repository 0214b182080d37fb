// Decides which program of a pipe may now use which card (a GPU, or a worker on the processor).
//
// An item that a model computes has a card for itself until the item is done. A model stays loaded
// on a card while its stage has work. A card holds models of several stages if they fit into its
// memory. share/card_rule.h decides which stage gets which card. The board calls the stage's `load`
// and `unload`. take() gives only cards on which the model is loaded, so no item waits for a load
// while such a card is free. Decoding and encoding have no model: an item takes some of the card's
// sessions, while a model may compute there. As long as a program decodes or encodes on a card,
// models cannot take the memory of the program's sessions. share/engine_sessions.h says which
// sessions a decoder or encoder takes.
//
// The state is in FILE.gpus, next to the FILE of VFM_SHARE (share/pipe_board.h). Each record of the
// file belongs to one program, which holds a lock. The kernel frees the lock however the program
// ends. Then the program's cards and the memory of its models are free. Waiting programs look again
// every 50 ms. A worker process that inherits life() keeps the record alive until the process ends,
// so the memory of the process stays reserved. A program that is stopped (SIGSTOP) keeps the cards
// on which it has items, and its models' memory. It loses its turn for a free card after 50 ms, and
// its models stay where they are. Without VFM_SHARE only this program uses the cards.
//
// The file has room for 64 cards and 63 programs at a time; a program takes one more place for each
// kind of session that it has. Programs must give the same memory and sessions for a card; if the
// numbers differ, the least number is used.
// Thread-safety: any thread. Threads of the board call `load` and `unload`: at the same time for
// different cards, one after another for the same card, and never while an item of this program is
// on the card.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "share/ordered_flow.h"

namespace vfm::share {

/// The part of a card that an item takes: the whole card (`compute`), or sessions of a video
/// engine.
enum class CardKind { compute, decode, encode };
/// A flag of CardNeed::beside.
constexpr unsigned card_flag(CardKind kind) {
  return 1u << static_cast<unsigned>(kind);
}
/// Bytes of a card's memory for one session.
inline constexpr std::int64_t kSessionBytes = std::int64_t{160} << 20;

struct Card {
  int index = 0;            ///< CUDA's number; -1 - i: the i-th "cpu" of --device
  std::string name;         ///< unique on the machine: "GPU-5e6b...", "cpu 0"
  std::int64_t memory = 0;  ///< bytes for models and sessions of all programs together
  int sessions = 0;         ///< sessions of all programs, decoding and encoding together
  /// The part of `memory` that sessions of this program always keep, so that its models cannot use
  /// it.
  std::int64_t kept = 0;
};

/// Describes what a stage needs. A stage is one program of the pipe with one use of cards.
struct CardNeed {
  std::string stage;  ///< "vfm-embed"
  CardKind kind = CardKind::compute;
  /// For a model: its bytes when loaded, and the bytes of its work. For a program with sessions:
  /// the bytes that its CUDA context uses on each card while the program runs.
  std::int64_t memory = 0;
  /// For a model: the kinds of session (card_flag) that each of its items also uses; `memory`
  /// includes these sessions. An item does not wait for such a session. If no session is free, the
  /// next session that a program gives back is taken for this item.
  unsigned beside = 0;
  /// The descriptors of the program's input and output, which determine its place in the pipe.
  int input = 0, output = 1;
  /// Counts the program's results. Null means that each result is handed on as soon as it is ready.
  std::shared_ptr<const OrderedFlow> flow = nullptr;
};

class CardBoard {
 public:
  struct Actions {
    /// Loads the model; returns when the card can compute items. If `load` throws an Error, the
    /// card is left out, as after fail(). An empty function means that there is nothing to load.
    std::function<void(const Card&)> load;
    /// Unloads the model; returns when its memory is free.
    std::function<void(const Card&)> unload;
  };
  /// A card, or sessions of it, that one item has until give() or fail().
  struct Lease {
    const Card* card = nullptr;  ///< valid as long as the board
    int sessions = 1;            ///< how many the item has
  };

  /// Joins or makes the file `share`.gpus. If `share` is empty, uses no file. Cards without the
  /// needed memory or sessions are left out, with a warning. Throws Error{usage} if the file cannot
  /// be used, or if no card has the memory and sessions.
  CardBoard(const std::string& share, std::vector<Card> cards, CardNeed need, Actions actions);
  /// Calls finished(), waits for the unloads, and leaves. Every lease must have been given back.
  ~CardBoard();
  CardBoard(const CardBoard&) = delete;
  CardBoard& operator=(const CardBoard&) = delete;

  /// Waits for a card for one item, in the order of the calls. Once items have waited five seconds
  /// for memory, one warning names the programs that use it. While the thread waits, it should have
  /// no slot (share/slots.h, Slots::Away). Models are loaded only for stages that wait here, so at
  /// least as many threads should wait as there are cards. Returns nothing if `over` becomes true
  /// first. Throws Stopped; Error{device}, with the reasons, when no card is left.
  std::optional<Lease> take(const std::atomic<bool>* over = nullptr);
  /// Takes `count` sessions of the card with the most free sessions. If no card has `count`, waits
  /// for them if `wait` is set and `count` is at most most_sessions(); otherwise returns nothing.
  /// Throws what take() throws.
  std::optional<Lease> take_sessions(int count, bool wait);
  /// Returns the most sessions that one card can have free while the loaded models stay. Sessions
  /// that these models use (CardNeed::beside) are left out, also while the models have no item.
  int most_sessions() const;
  /// Says that the item is done, and gives its card or sessions back.
  void give(const Lease& lease) noexcept;
  /// Says that the card has failed, and that nothing of this stage is on it any more. From now on
  /// this stage does not get the card; an error in the log names the card and says why. The item
  /// must be done again, after another take().
  void fail(const Lease& lease, const std::string& why);
  /// Says that no more items come, until take() is called again. The models are unloaded, and other
  /// programs may use the memory. Does not wait.
  void finished() noexcept;

  /// Returns how many cards of this stage are not left out.
  int cards_left() const;
  /// Returns the cards that this stage may use, in the order of the constructor's `cards`.
  const std::vector<Card>& cards() const;
  /// Returns a descriptor that a worker process may inherit. By default it is closed on exec.
  int life() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::share
