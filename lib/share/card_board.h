// Cards (GPUs, or the processor as workers) as counted slots: which of the programs of a pipe may
// use which card now. It does not compute, and knows nothing of CUDA.
//
// An item of a model has a card for itself until it is done. A model stays loaded on a card while
// its stage has work. A card holds models of several stages where its memory allows.
// share/card_rule.h decides which stage gets which card. The board loads and unloads by the stage's
// `load` and `unload`, so no item waits for a load while other cards are free: take() gives only
// cards on which the model is loaded. Decoding and encoding have no model: an item has some of the
// card's sessions, beside any model that computes there. As long as a program decodes or encodes on
// the card, models cannot take the memory of its sessions. share/engine_sessions.h says which
// sessions a decoder or encoder takes.
//
// State lies in FILE.gpus beside the FILE of VFM_SHARE (share/pipe_board.h), and lives as slots do:
// a record belongs to one program, which holds a lock that the kernel frees however the program
// ends. Then its cards and its models' memory are free. Waiting programs look again every 50 ms. A
// worker process that inherits life() keeps the record alive until it has ended, too, so the memory
// counts until it is free. A program that is stopped (SIGSTOP) keeps the cards on which it has
// items, and its models' memory. It loses its turn for a free card after 50 ms, and the plan works
// around models that it does not unload. Without VFM_SHARE the cards are this program's alone.
//
// The file has room for 64 cards and 63 programs at a time; a program counts once more for each
// kind of session that it has. Programs must give the same memory and sessions for a card; else the
// least counts.
// Thread-safety: any thread. `load` and `unload` are called from threads of the board, for several
// cards at once, for one card one at a time, and not while an item of this program is on it.
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

/// What an item has of a card: the whole of it, for a model, or sessions of a video engine.
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
  int sessions = 0;         ///< decoding or encoding sessions of all programs, whichever is needed
  /// The part of `memory` that sessions of the same program always keep: its models cannot use it.
  std::int64_t kept = 0;
};

/// The needs of a stage.
struct CardNeed {
  std::string stage;  ///< "vfm-embed"
  CardKind kind = CardKind::compute;
  /// Bytes of a loaded model and its work. For a program with sessions: the bytes that it has on
  /// each of its cards as long as it runs (its CUDA context).
  std::int64_t memory = 0;
  /// For a model: the kinds of session (card_flag) that each of its items also has; their memory is
  /// in `memory`. An item does not wait for one, so the others have one fewer meanwhile, as soon as
  /// one is given back.
  unsigned beside = 0;
  /// Descriptors of the program's input and output, from which its place in the pipe follows.
  int input = 0, output = 1;
  /// Counts its results; null: all are handed on at once.
  std::shared_ptr<const OrderedFlow> flow = nullptr;
};

class CardBoard {
 public:
  struct Actions {
    /// Loads the model; returns when items can be given to the card. An Error that it throws leaves
    /// the card out, as fail() does. Empty: nothing is to be done.
    std::function<void(const Card&)> load;
    /// Unloads it; returns when its memory is free.
    std::function<void(const Card&)> unload;
  };
  /// What take() gives: until give() or fail() the card is this item's.
  struct Lease {
    const Card* card = nullptr;  ///< the board's, valid as long as the board
    int sessions = 1;            ///< how many it gives
  };

  /// Joins or makes `share`.gpus; no file if `share` is empty. Cards without the needed memory or
  /// sessions are left out, with a warning. Throws Error{usage} where the file cannot be used,
  /// where there is no card, or where none has the memory or the sessions; it says which.
  CardBoard(const std::string& share, std::vector<Card> cards, CardNeed need, Actions actions);
  /// Leaves, after finished() and the unloads that go with it. No lease may be out.
  ~CardBoard();
  CardBoard(const CardBoard&) = delete;
  CardBoard& operator=(const CardBoard&) = delete;

  /// Waits for a card for one item, in the order of the calls. Once items have waited five seconds
  /// for memory, one warning names the programs that have it. The thread should have no slot
  /// meanwhile (share/slots.h, Slots::Away). Models are loaded for stages that wait here, and for
  /// no others: as many threads should wait as there are cards, or more. Empty where `over` becomes
  /// true first. Throws Stopped; Error{device} when no card is left, with the reasons.
  std::optional<Lease> take(const std::atomic<bool>* over = nullptr);
  /// Takes `count` sessions of the card with most free. Empty where no card has as many: now, or,
  /// with `wait`, as long as the loaded models stay (most_sessions()). Throws what take() throws.
  std::optional<Lease> take_sessions(int count, bool wait);
  /// Most sessions that one card can have free while the loaded models stay: all but those that
  /// models use beside them, whether or not these have an item now.
  int most_sessions() const;
  /// The item is done.
  void give(const Lease& lease) noexcept;
  /// The card has failed, and nothing of this stage is on it any more: it is left out for this
  /// stage from now on, with an error in the log that names it and says why. The item is to be done
  /// again: take() once more.
  void fail(const Lease& lease, const std::string& why);
  /// No more items come, until take() is called again: the models are unloaded, and others may have
  /// the memory. Does not wait.
  void finished() noexcept;

  /// How many of its cards are not left out.
  int cards_left() const;
  /// The cards that this stage may use, in the order given.
  const std::vector<Card>& cards() const;
  /// A descriptor that a worker process may inherit (it is closed on exec otherwise).
  int life() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::share
