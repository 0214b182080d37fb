// The layout of the file of share/card_board.h in memory.
//
// Only running programs of one build of vfm, on one machine, read this layout. The file's first
// bytes, kCardWords, name the version. The file's lock guards all fields except `takes` and the
// futexes. If a program is killed while it writes, each number has its old or its new value.
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

/// The record of a program with a model, or of one kind of a program's sessions. Aligned to a page.
struct alignas(4096) CardRecord {
  char stage[32];
  std::int64_t pid;
  std::uint64_t input, output;  // Values of pipe_name().
  std::int64_t memory;
  std::int32_t kind;
  std::uint32_t beside;
  std::int32_t place;      // Place in the pipe. Any program writes it.
  std::uint32_t used;      // Whether the record ever had a program.
  std::uint32_t gone;      // Whether the program has ended. Any program writes it.
  std::uint32_t finished;  // Whether no more items come.
  std::int32_t waiting;    // Number of items that wait for a card.
  std::atomic<std::uint32_t> call_items, call_keeper;  // Futexes that wake waiting threads.
  std::uint64_t left;                                  // Time in nanoseconds when the program left.
  // Times in seconds of card_clock().
  double joined, beat, waits_since, last_item;
  double load_seconds;  // Seconds of the latest load, or 0 before the first load.
  CardSet may;          // Cards that the program can use.
  CardSet left_out;     // Cards of `may` that failed.
  CardSet wanted;       // Cards that should have the model. Any program writes it.
  std::array<CardModel, kMostCards> model;
  std::array<std::int32_t, kMostCards> items;  // Number of items or sessions in use.
  std::array<double, kMostCards> since;        // Begin of the item, or sum of the sessions' begins.
  std::array<double, kMostCards> unwanted;     // Time when the card left `wanted`.
  CardCounts counts;                           // Counters without items under way.
  CardAverages averages;                       // Averages. Any program writes them.
};

struct CardEntry {
  char name[kCardName];
  std::int64_t memory;
  std::array<std::int32_t, kCardKinds> sessions;  // Sessions for each CardKind, 0 if not known.
};

struct CardFile {
  struct alignas(4096) Head : SharedHead {
    std::int32_t cards;
    /// How often any program took a card for an item, for each CardKind.
    std::array<std::atomic<std::uint32_t>, kCardKinds> takes;
    double looked, changed;  // Times of the latest plan and of the latest load.
    std::array<CardEntry, kMostCards> card;
  } head;
  CardRecord records[kCardRecords];
};
static_assert(sizeof(CardRecord) == 8192);
static_assert(sizeof(CardFile) == 64 * 8192);

}  // namespace vfm::share
