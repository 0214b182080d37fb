// What a view of a pipe shows of the cards that its programs share (base/card_board.h).
//
// Looking changes nothing but what is known of programs that have died.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vfm {

/// One card.
struct CardState {
  std::string name;
  std::int64_t memory = 0;  ///< bytes, for models and sessions
  std::int64_t used = 0;    ///< by these
};

/// What one program has of them: a record of the board, of which a program may have several.
struct CardStageState {
  std::string stage, kind;  ///< "vfm-embed"; "compute"
  std::int64_t pid = 0;
  bool alive = false;
  int held = 0;                       ///< cards or sessions with an item
  int waiting = 0;                    ///< items without one
  bool lacks_memory = false;          ///< they wait for that: no card has, or gets, its model
  std::vector<std::string> loaded;    ///< names of cards with its model
  std::vector<std::string> loading;   ///< and those where it is being loaded or unloaded
  std::vector<std::string> left_out;  ///< that failed
  int cards = 0;                      ///< that it may use, those that failed included
  double busy_seconds = 0;            ///< of all cards together, with an item
  double short_seconds = 0;           ///< in which an item had none
  std::int64_t items = 0;             ///< that ended
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
  /// Of all programs; empty as long as no program of that --share has cards, and where the file
  /// cannot be read, which a program that has cards tells.
  CardStates look();

 private:
  const std::string share_;
  std::unique_ptr<CardMap> map_;
};

}  // namespace vfm
