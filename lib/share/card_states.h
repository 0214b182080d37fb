// The state of the cards (GPUs) that a pipe's programs share (share/card_board.h), for a view of
// the pipe.
//
// A look changes only the records of programs that have died.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vfm::share {

/// The state of one card.
struct CardState {
  std::string name;
  std::int64_t memory = 0;  ///< bytes, for models and sessions
  std::int64_t used = 0;    ///< bytes in use by models and sessions
};

/// The state of one record of the board; a program may have several.
struct CardStageState {
  std::string stage, kind;  ///< "vfm-embed"; "compute"
  std::int64_t pid = 0;
  bool alive = false;
  int held = 0;                       ///< cards or sessions that have an item
  int waiting = 0;                    ///< items that wait for a card or session
  bool lacks_memory = false;          ///< items wait for memory: no card has or loads the model
  std::vector<std::string> loaded;    ///< names of cards with its model
  std::vector<std::string> loading;   ///< names of cards that load or unload its model
  std::vector<std::string> left_out;  ///< names of cards that failed
  int cards = 0;                      ///< how many it may use, failed cards included
  double busy_seconds = 0;            ///< seconds with an item, summed over cards
  double short_seconds = 0;           ///< seconds in which an item waited for a card
  std::int64_t items = 0;             ///< items that ended
};

struct CardStates {
  std::vector<CardState> cards;
  std::vector<CardStageState> stages;  ///< in the order of the pipe
};

class CardMap;

class CardWatch {
 public:
  explicit CardWatch(std::string share);
  ~CardWatch();
  /// Returns the state of all programs. Returns an empty state if no program of this VFM_SHARE has
  /// cards, or if the file cannot be read; programs that have cards report such a file.
  CardStates look();

 private:
  const std::string share_;
  std::unique_ptr<CardMap> map_;
};

}  // namespace vfm::share
