// The file of share/card_board.h in memory.
//
// Only share/card_board.cc and share/card_states.cc use this header. Callers hold the file's lock
// (Locked), except for join() and leave(), which lock the file themselves. A view of the pipe reads
// without join(). Thread-safety: as SharedFile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "share/card_board.h"
#include "share/card_record.h"
#include "share/shared_file.h"

namespace vfm::share {

/// Returns pipe_clock() in seconds.
double card_clock();

class CardMap {
 public:
  /// Opens the file for `share`, the value of VFM_SHARE. If `share` is empty, uses memory of this
  /// program.
  explicit CardMap(const std::string& share);
  static std::string file_of(const std::string& share);

  /// Takes a free record for this program, and finds or adds an entry for each of `cards`. Throws
  /// Error{usage}.
  void join(std::span<const Card> cards, const CardNeed& need);
  void leave();
  int life() const { return shared_.life(); }

  class Locked : public SharedFile::Locked {
   public:
    explicit Locked(CardMap& map) : SharedFile::Locked(map.shared_) {}
  };

  CardFile& file() const { return *static_cast<CardFile*>(shared_.memory()); }
  CardRecord& own() const { return file().records[own_index_]; }
  std::size_t own_index() const { return own_index_; }
  std::size_t cards() const;
  /// Returns the number in the file of each card of this program.
  const std::vector<int>& places() const { return places_; }

  /// Marks the records of ended programs.
  void end_dead();
  /// Returns whether the record's program has joined, has not ended, and was running within the
  /// last second. A running program updates its record every 50 ms.
  bool answers(const CardRecord& record) const;

  /// Returns the cards on which no model computes an item.
  CardSet free() const;
  /// Return the bytes of a card that models may use, and the bytes that loaded models use.
  std::int64_t model_memory(int card) const;
  std::int64_t loaded_memory(int card) const;
  /// Returns the bytes that sessions in use and the CUDA contexts of programs with sessions take.
  std::int64_t session_memory(int card) const;
  /// Returns the number of free sessions of a kind on a card. Models may leave memory for few
  /// sessions.
  int free_sessions(int card, CardKind kind) const;
  /// Returns the most sessions that can be free while the loaded models stay loaded. Each model
  /// with CardNeed::beside keeps one session.
  int most_sessions(int card, CardKind kind) const;
  /// Returns the programs with a model on the card: "vfm-embed (process 4711)".
  std::vector<std::string> names_on(int card) const;
  /// Returns the record's counters, including the time until `now` of items under way.
  CardCounts counts_now(const CardRecord& record, double now) const;
  /// Returns the input of card_for_item() (share/card_rule.h), with one claim for each record.
  /// Claims of records of another kind are empty.
  std::vector<CardClaim> claims(CardKind kind) const;
  std::vector<CardPlace> card_places() const;

  /// Updates the averages, and plans which models each card loads: every quarter of a second, and
  /// at once if a stage has no card for its items.
  void plan();
  /// Wakes a waiting thread of the stage that card_for_item() chooses for this card.
  void call_for(int card);

 private:
  void add_card(const Card& card, CardKind kind);
  std::int64_t program_memory(int card) const;
  int sessions_used(int card, CardKind kind) const;
  int beside_models(int card, CardKind kind, bool at_work) const;
  CardStage stage_of(const CardRecord& record, double now) const;

  SharedFile shared_;
  std::size_t own_index_ = kCardRecords;  // no record
  std::vector<int> places_;
};

}  // namespace vfm::share
