// The state of a CardBoard; for card_board.cc and card_taking.cc only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "share/card_board.h"
#include "share/card_map.h"
#include "share/waiting_line.h"

namespace vfm::share {

/// Cards are numbered as the program gave them; place() is a card's number in the file.
struct CardBoard::State {
  State(const std::string& share, std::vector<Card> given, CardNeed what, Actions acts);

  // card_taking.cc
  bool await(Lease& lease, const std::atomic<bool>* over, std::atomic<bool>* never);
  void count_waiting(int by);
  void check_left();
  Taken take(bool out_of_turn, Lease& taken);
  int choose(bool out_of_turn, int sessions, bool& left) const;
  int most_sessions() const;

  // card_board.cc
  void give(std::size_t which, int sessions);
  void leave_out(std::size_t which, const std::string& why, const Lease* item);
  void keep();
  bool act();
  void begin(std::size_t which, CardModel state);
  void load(std::size_t which);
  void unload(std::size_t which);
  void end_thread(std::size_t which);
  std::string reasons();
  std::string lack_of_memory();

  const CardNeed need;
  const Actions actions;
  const std::vector<Card> cards;
  CardMap map;
  WaitingLine line;  // of items that wait for a card
  // Guarded by the file's lock, like own():
  bool leaving = false;
  std::map<std::size_t, std::thread> acting;  // by card
  std::vector<std::thread> ended;
  std::vector<std::string> failures;
  double lacks_since = 0;  // when items began to wait for memory; 0: none waits
  bool lack_told = false;
  std::thread keeper;

  CardRecord& own() const { return map.own(); }
  std::atomic<std::uint32_t>& takes() const {
    return map.file().head.takes[static_cast<std::size_t>(need.kind)];
  }
  int place(std::size_t which) const { return map.places()[which]; }
  std::size_t at(std::size_t which) const { return static_cast<std::size_t>(place(which)); }
  CardSet bit(std::size_t which) const { return card_bit(place(which)); }
  std::size_t which(const Lease& lease) const {
    return static_cast<std::size_t>(lease.card - cards.data());
  }
  bool computes() const { return need.kind == CardKind::compute; }
};

}  // namespace vfm::share
