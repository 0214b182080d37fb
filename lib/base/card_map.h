// The mapped file of base/card_board.h: joined, cleared of programs that died, and planned.
//
// Of base/card_board.cc and base/card_states.cc alone. All is done under the file's lock (Locked),
// but join() and leave(), which take it; a view only looks, and does not join. Thread-safety: as
// base/shared_file.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/card_board.h"
#include "base/card_record.h"
#include "base/shared_file.h"

namespace vfm {

/// Seconds of pipe_clock().
double card_clock();

class CardMap {
 public:
  /// Opens the file of `share`; "": memory of this program alone.
  explicit CardMap(const std::string& share);
  /// Where the file is for a `share`.
  static std::string file_of(const std::string& share);

  /// Takes a record, with those of `cards`. Throws Error{usage}. places() has what the file calls
  /// them.
  void join(std::span<const Card> cards, const CardNeed& need);
  void leave();
  /// For a worker.
  int life() const { return shared_.life(); }

  class Locked : public SharedFile::Locked {
   public:
    explicit Locked(CardMap& map) : SharedFile::Locked(map.shared_) {}
  };

  CardFile& file() const { return *static_cast<CardFile*>(shared_.memory()); }
  CardRecord& own() const { return file().records[own_index_]; }
  std::size_t own_index() const { return own_index_; }
  std::size_t cards() const;
  /// Of the cards that this program gave: which in the file each is.
  const std::vector<int>& places() const { return places_; }

  /// Records of programs that ended count no more.
  void end_dead();
  /// Whether the record's program has joined, is not known to have ended, and has done what it has
  /// to do every 50 ms within the last second.
  bool answers(const CardRecord& record) const;

  /// The cards on which no item of a model is.
  CardSet free() const;
  /// Bytes of a card that models may have beside sessions, and those that models have.
  std::int64_t model_memory(int card) const;
  std::int64_t loaded_memory(int card) const;
  /// Bytes that sessions have, those in use, and programs with sessions themselves.
  std::int64_t session_memory(int card) const;
  /// Sessions of a kind that are free on a card. Models that were loaded before a program with
  /// sessions came may leave memory for some alone.
  int free_sessions(int card, CardKind kind) const;
  /// Those that will be, as long as the models stay that are loaded: as if none was in use but one
  /// of each model that has some beside it, which has an item again and again.
  int most_sessions(int card, CardKind kind) const;
  /// Whose models these are: "vfm-embed (process 4711)".
  std::vector<std::string> names_on(int card) const;
  /// With items that are under way.
  CardCounts counts_now(const CardRecord& record, double now) const;
  /// What the rule for items knows of each record; of those of another kind nothing.
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

}  // namespace vfm
