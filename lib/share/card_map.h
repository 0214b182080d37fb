// Joins the file that share/card_board.h maps into memory, removes dead programs from it, and
// plans.
//
// Only share/card_board.cc and share/card_states.cc use this file. Callers hold the file's lock
// (Locked), but not when they call join() or leave(), which lock the file themselves. A view of the
// pipe reads without join(). Thread-safety: as SharedFile.
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
  /// Opens the file for `share` (VFM_SHARE). If `share` is empty, uses memory of this program
  /// alone.
  explicit CardMap(const std::string& share);
  /// Returns the path of the file for `share`.
  static std::string file_of(const std::string& share);

  /// Claims a free record for this program, and finds or adds the entries of `cards` in the file.
  /// Then places() returns the numbers of these entries. Throws Error{usage}.
  void join(std::span<const Card> cards, const CardNeed& need);
  void leave();
  /// Returns the descriptor that CardBoard::life() returns.
  int life() const { return shared_.life(); }

  class Locked : public SharedFile::Locked {
   public:
    explicit Locked(CardMap& map) : SharedFile::Locked(map.shared_) {}
  };

  CardFile& file() const { return *static_cast<CardFile*>(shared_.memory()); }
  CardRecord& own() const { return file().records[own_index_]; }
  std::size_t own_index() const { return own_index_; }
  std::size_t cards() const;
  /// Returns, for each card of this program, the card's number in the file.
  const std::vector<int>& places() const { return places_; }

  /// Marks the records of programs that ended.
  void end_dead();
  /// Returns whether the record's program has joined, is not known to have ended, and was running
  /// within the last second. A running program marks its record every 50 ms.
  bool answers(const CardRecord& record) const;

  /// Returns the cards on which no item of a model is computed.
  CardSet free() const;
  /// Return the bytes of a card that models may use, and the bytes that models use.
  std::int64_t model_memory(int card) const;
  std::int64_t loaded_memory(int card) const;
  /// Returns the bytes of the sessions in use and of the contexts of programs with sessions.
  std::int64_t session_memory(int card) const;
  /// Returns the number of free sessions of a kind on a card. Models that were loaded before the
  /// program with sessions joined may leave memory for only some of the card's sessions.
  int free_sessions(int card, CardKind kind) const;
  /// Returns the most sessions that can become free while loaded models stay. Each model with
  /// CardNeed::beside keeps one session, also while it has no item.
  int most_sessions(int card, CardKind kind) const;
  /// Returns the programs whose models are on the card: "vfm-embed (process 4711)".
  std::vector<std::string> names_on(int card) const;
  /// Returns the record's counts, including the time up to `now` of items under way.
  CardCounts counts_now(const CardRecord& record, double now) const;
  /// Returns the input of card_for_item() (share/card_rule.h): a claim for each record, empty if
  /// the record's kind is not `kind`.
  std::vector<CardClaim> claims(CardKind kind) const;
  std::vector<CardPlace> card_places() const;

  /// Updates the averages, and plans on which cards models are loaded: every quarter of a second,
  /// and at once if a stage has no card for its items.
  void plan();
  /// Wakes a waiting thread of the stage to which card_for_item() gives this card.
  void call_for(int card);

 private:
  void add_card(const Card& card, CardKind kind);
  std::int64_t program_memory(int card) const;
  int sessions_used(int card, CardKind kind) const;
  int beside_models(int card, CardKind kind, bool at_work) const;
  CardStage stage_of(const CardRecord& record, double now) const;

  SharedFile shared_;
  std::size_t own_index_ = kCardRecords;  // none
  std::vector<int> places_;
};

}  // namespace vfm::share
