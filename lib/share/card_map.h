// The mapped file of share/card_board.h: joined, cleared of programs that died, and planned.
//
// For share/card_board.cc and share/card_states.cc only. All is done under the file's lock
// (Locked), except join() and leave(), which take it; a view only looks, and does not join.
// Thread-safety: as share/shared_file.h.
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

/// Seconds of pipe_clock().
double card_clock();

class CardMap {
 public:
  /// Opens the file of `share`; "": memory of this program alone.
  explicit CardMap(const std::string& share);
  /// Where the file is for a `share`.
  static std::string file_of(const std::string& share);

  /// Takes a record, and the file's entries of `cards`, whose numbers places() then has. Throws
  /// Error{usage}.
  void join(std::span<const Card> cards, const CardNeed& need);
  void leave();
  /// A descriptor for workers: CardBoard::life().
  int life() const { return shared_.life(); }

  class Locked : public SharedFile::Locked {
   public:
    explicit Locked(CardMap& map) : SharedFile::Locked(map.shared_) {}
  };

  CardFile& file() const { return *static_cast<CardFile*>(shared_.memory()); }
  CardRecord& own() const { return file().records[own_index_]; }
  std::size_t own_index() const { return own_index_; }
  std::size_t cards() const;
  /// The number in the file of each card that this program gave.
  const std::vector<int>& places() const { return places_; }

  /// Marks the records of programs that ended.
  void end_dead();
  /// Whether the record's program has joined, is not known to have ended, and has, within the last
  /// second, done its work of every 50 ms.
  bool answers(const CardRecord& record) const;

  /// The cards without an item of a model.
  CardSet free() const;
  /// Bytes of a card for models, beside sessions; and bytes that models have.
  std::int64_t model_memory(int card) const;
  std::int64_t loaded_memory(int card) const;
  /// Bytes of the sessions in use, and of the programs with sessions themselves.
  std::int64_t session_memory(int card) const;
  /// Sessions of a kind that are free on a card. Models loaded before a program with sessions came
  /// may leave memory for only some.
  int free_sessions(int card, CardKind kind) const;
  /// Most sessions that can become free while loaded models stay: all but one for each model that
  /// uses some beside it, whether or not it has an item now.
  int most_sessions(int card, CardKind kind) const;
  /// The programs whose models are on the card: "vfm-embed (process 4711)".
  std::vector<std::string> names_on(int card) const;
  /// The record's counts, with the items under way.
  CardCounts counts_now(const CardRecord& record, double now) const;
  /// The input of the rule for items, by record; empty for records of another kind.
  std::vector<CardClaim> claims(CardKind kind) const;
  std::vector<CardPlace> card_places() const;

  /// Brings the averages up to now, and plans where models are to be, once a quarter of a second;
  /// at once where a stage has no card for its items.
  void plan();
  /// Wakes a thread with an item of the stage that the rule gives this card to.
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
