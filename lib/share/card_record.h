// The layout of the file of share/card_board.h in memory: the machine's cards, and one record for
// each program.
//
// The layout is no disk format: only running programs of one build of vfm, on one machine, read it.
// The file's first bytes, kCardWords, name the version. The file's lock guards all reads and
// writes, except of `takes` and of the words on which threads wait. Fields that other programs
// write are marked. If a program is killed while it writes, each number has its old or its new
// value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "share/card_averages.h"
#include "share/card_rule.h"
#include "share/shared_file.h"

namespace vfm::share {

inline constexpr std::size_t kCardRecords = 63;
inline constexpr std::size_t kCardName = 64, kCardKinds = 3;
inline constexpr char kCardWords[24] = "vfm: cards of a pipe, 5";

enum class CardModel : std::uint8_t { none, loading, loaded, unloading };

/// A program with a model, or one kind of session that a program takes. Aligned to a page.
struct alignas(4096) CardRecord {
  char stage[32];
  std::int64_t pid;
  std::uint64_t input, output;  // as share/pipe_places.h
  std::int64_t memory;          // CardNeed::memory
  std::int32_t kind;            // CardKind
  std::uint32_t beside;         // CardNeed::beside
  std::int32_t place;           // other programs write it
  std::uint32_t used;           // a program has or had it: the fields below are valid
  std::uint32_t gone;           // its program has ended; other programs write it
  std::uint32_t finished;       // no more items come
  std::int32_t waiting;         // items
  std::atomic<std::uint32_t> call_items, call_keeper;  // futexes: to be looked at again
  std::uint64_t left;                                  // nanoseconds
  // Seconds of pipe_clock().
  double joined, beat, waits_since, last_item;
  double load_seconds;  // seconds of the last load; 0: no load yet
  CardSet may;          // cards that it can use
  CardSet left_out;     // cards of `may` that failed
  CardSet wanted;       // cards for its model; other programs write it
  std::array<CardModel, kMostCards> model;
  std::array<std::int32_t, kMostCards> items;  // items, or sessions taken, on the card
  std::array<double, kMostCards> since;        // begin of the item; sum of the sessions' begins
  std::array<double, kMostCards> unwanted;     // when it left `wanted`; other programs write it
  CardCounts counts;                           // without items under way
  CardAverages averages;                       // other programs write it
};

/// The entry of one card.
struct CardEntry {
  char name[kCardName];
  std::int64_t memory;
  std::array<std::int32_t, kCardKinds> sessions;  // by CardKind; 0: not known yet
};

struct CardFile {
  struct alignas(4096) Head : SharedHead {
    std::int32_t cards;  // how many are known
    /// Counts how often any program took a card for an item, by CardKind.
    std::array<std::atomic<std::uint32_t>, kCardKinds> takes;
    double looked, changed;  // times of the last plan and of the last load
    std::array<CardEntry, kMostCards> card;
  } head;
  CardRecord records[kCardRecords];
};
static_assert(sizeof(CardRecord) == 8192);
static_assert(sizeof(CardFile) == 64 * 8192);

}  // namespace vfm::share
