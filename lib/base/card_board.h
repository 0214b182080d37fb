// Cards (GPUs, or the processor as workers) as counted slots: which of the programs of a pipe may
// use which card now. It does not compute, and knows nothing of CUDA.
//
// An item of a model has a card for itself as long as it takes. A model stays loaded on a card
// while its stage has work, and models of several stages are loaded on one card where its memory
// allows. Nothing is loaded where memory lacks. Who gets which card: base/card_rule.h. The board
// calls the stage's `load` and `unload` for that, so no item is held up by a load while other cards
// are free: take() gives only cards on which the model is loaded. Decoding and encoding have no
// model: an item has some of the card's sessions, beside whatever model computes there. Memory for
// all sessions is kept from models that are to be loaded as long as there is a program that decodes
// or encodes on the card. Which sessions a decoder or an encoder takes: base/engine_sessions.h.
//
// State lies in FILE.cards beside the FILE of --share (base/pipe_board.h), and lives as slots do: a
// record belongs to one program, which holds a lock that the kernel frees however the program ends.
// Then its cards and the memory of its models count no more. Who waits looks again every 50 ms. A
// worker process that inherits life() keeps the record alive until it has ended, too: then the
// memory counts until it is free. A program that is stopped (SIGSTOP) keeps the cards on which it
// has items, and the memory of its models; a card that it could have, it loses to the others after
// 50 ms, and others are planned around models that it does not unload. Without --share the cards
// are this program's alone.
//
// The file is for up to 64 cards and 63 programs at a time, of which one with sessions counts once
// more for each kind of them. Programs must say the same memory and sessions of a card; where they
// do not, the least counts.
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

#include "base/ordered_flow.h"

namespace vfm {

/// What an item has of a card: the whole of it, for a model, or sessions of a video engine.
enum class CardKind { compute, decode, encode };
/// A flag of CardNeed::beside.
constexpr unsigned card_flag(CardKind kind) {
  return 1u << static_cast<unsigned>(kind);
}
/// Of a card's memory, that a session has.
inline constexpr std::int64_t kSessionBytes = std::int64_t{160} << 20;

struct Card {
  int index = 0;            ///< as CUDA numbers it; -1 - i: the i-th "cpu" of --devices
  std::string name;         ///< that no other card of the machine has: "GPU-5e6b...", "cpu 0"
  std::int64_t memory = 0;  ///< bytes that models and sessions may have, of all programs together
  int sessions = 0;         ///< of decoding, or of encoding, whichever is needed, likewise
  /// Of `memory`, what sessions of the same program always have: none of its models fit in them.
  std::int64_t kept = 0;
};

/// Of a stage.
struct CardNeed {
  std::string stage;  ///< "vfm-embed"
  CardKind kind = CardKind::compute;
  /// Bytes of a loaded model and its work; of a program with sessions what it has itself on each of
  /// its cards as long as it is there (its CUDA context).
  std::int64_t memory = 0;
  /// Of a model: kinds of which an item has a session, too, whose memory is in `memory`. It waits
  /// for none, so the others have one session less meanwhile, as soon as they give one back.
  unsigned beside = 0;
  /// Descriptors of the program's input and output, from which its place in the pipe follows.
  int input = 0, output = 1;
  /// What counts its results; null: they are all handed on at once.
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
    const Card* card = nullptr;  ///< of the board's own, which stays
    int sessions = 1;            ///< of it
  };

  /// Joins, or makes `share`.cards; `share` empty: none. Cards that have less memory than is
  /// needed are not used, with a warning, nor are those without sessions that are needed. Throws
  /// Error{usage} where the file cannot be used, where there is no card, or none that has the
  /// memory or the sessions, which it says.
  CardBoard(const std::string& share, std::vector<Card> cards, CardNeed need, Actions actions);
  /// Leaves, after finished() and the unloads that go with it. No lease may be out.
  ~CardBoard();
  CardBoard(const CardBoard&) = delete;
  CardBoard& operator=(const CardBoard&) = delete;

  /// Waits for a card for one item, in the order of the calls; items that wait for memory for five
  /// seconds are told of, once, by a warning that names who has it. The thread should have no slot
  /// meanwhile (base/slots.h, Slots::Away). Models are loaded for stages that wait here, and for no
  /// others: as many threads should wait as there are cards, or more. Empty where `over` becomes
  /// true first. Throws Stopped; Error{device} when no card is left, with the reasons.
  std::optional<Lease> take(const std::atomic<bool>* over = nullptr);
  /// So many sessions of the card that has most of them free. Empty where none has so many: now,
  /// or, with `wait`, for as long as the models stay that are loaded (most_sessions()). Throws what
  /// take() throws.
  std::optional<Lease> take_sessions(int count, bool wait);
  /// Those that one card will have free at most, for as long as the models stay that are loaded:
  /// all of them, but what models have beside them, whether or not these have an item now.
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
  /// Those that this stage may use, in the order given.
  const std::vector<Card>& cards() const;
  /// A descriptor that a worker process may inherit (it is closed on exec otherwise).
  int life() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm
