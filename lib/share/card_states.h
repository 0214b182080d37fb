// The state of the cards (GPUs) that programs of a pipe share (share/card_board.h), for a view of
// the pipe.
//
// Reading the state changes only the records of programs that have died. Thread-safety: one thread
// at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vfm::share {

struct CardState {
  std::string name;
  std::int64_t memory = 0;  ///< Bytes for models and sessions.
  std::int64_t used = 0;    ///< Bytes that models and sessions use.
};

/// The state of one record of the board. A program may have several records.
struct CardStageState {
  std::string stage, kind;  ///< Program and CardKind: "vfm-embed", "compute".
  std::int64_t pid = 0;
  bool alive = false;
  int held = 0;                       ///< Cards or sessions with an item.
  int waiting = 0;                    ///< Items that wait for a card or session.
  bool lacks_memory = false;          ///< Whether items wait for memory for the model.
  std::vector<std::string> loaded;    ///< Names of cards with the model.
  std::vector<std::string> loading;   ///< Names of cards that load or unload the model.
  std::vector<std::string> left_out;  ///< Names of cards that failed.
  int cards = 0;                      ///< Number of cards of the program, including failed cards.
  double busy_seconds = 0;            ///< Seconds with an item, summed over all cards.
  double short_seconds = 0;           ///< Seconds in which an item waited for a card.
  std::int64_t items = 0;             ///< Number of finished items.
};

struct CardStates {
  std::vector<CardState> cards;
  std::vector<CardStageState> stages;  ///< Records in the order of the pipe.
};

class CardMap;

class CardWatch {
 public:
  explicit CardWatch(std::string share);
  ~CardWatch();
  /// Returns the state of all programs. Returns an empty state if no program of this VFM_SHARE uses
  /// cards, or if the file cannot be read.
  CardStates look();

 private:
  const std::string share_;
  std::unique_ptr<CardMap> map_;
};

}  // namespace vfm::share
