// Which samples the page of --report shows, and what it counts of all that stay: the numbers in
// their JSON; for each score the samples with the least and the most of it; some by chance; and of
// each of these the nearest others by a vector.
//
// What it needs of a sample are notes on a temporary file (dataset/item_store.h); in memory are
// counts, and the samples that are shown. So the page of a hundred million samples is no larger
// than that of a thousand. It depends on the samples that stay, not on their order: of equals those
// come first whose keys have the smaller hash. Cosines are of all vectors, none is left out.
// Thread-safety: one thread at a time, put_number_notes() from any.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/slots.h"
#include "dataset/dataset.h"
#include "dataset/item_store.h"
#include "dataset/join.h"
#include "dataset/sample_vector.h"
#include "report/html.h"

namespace vfm::dataset {

/// The fields with numbers, by the hash of their names, and how many samples have each.
class NumberNames {
 public:
  struct Field {
    std::string name;
    std::uint64_t samples = 0;
  };
  void add(std::uint64_t hash, std::string_view name, std::uint64_t samples = 1);
  void merge(const NumberNames& other);
  const std::map<std::uint64_t, Field>& fields() const { return fields_; }

 private:
  std::map<std::uint64_t, Field> fields_;
};

/// Appends what the page needs of a sample: its numbers, and its vector as halves of length 1.
/// Names of more than 64 bytes are passed over.
void put_number_notes(std::string& notes, const JoinedSample& sample, const SampleVector& vector,
                      NumberNames& names);

struct NumberField {
  struct End {
    double value = 0;
    std::size_t item = 0;  ///< of Shown::items
  };
  std::string name;
  std::uint64_t samples = 0;  ///< that stay and have it
  report::Range range;
  std::string chart;
  bool score = false;
  std::vector<End> lowest, highest;  ///< of a score: the least first, the most first
};

struct ShownItem {
  struct Near {
    std::size_t item = 0;
    float cosine = 0;
  };
  Item item;               ///< as ItemStore::get() has it
  bool whole = false;      ///< with a card; else only as a neighbour
  std::vector<Near> near;  ///< the nearest first; of the same encoder
};

struct Shown {
  std::vector<NumberField> fields;          ///< by name
  std::size_t more_fields = 0, scores = 0;  ///< fields that are left out; all scores
  std::vector<ShownItem> items;
  std::vector<std::size_t> drawn;  ///< of `items`, by chance
  std::uint64_t samples = 0;       ///< that stay
  std::string member;              ///< whose vectors are compared
  std::uint64_t vectors = 0;       ///< samples that have one
};

/// Of the samples that `items` keeps. `names`: of all that were noted. Throws Stopped.
Shown pick_shown(const ItemStore& items, const ShardOptions& options, const NumberNames& names,
                 Slots& slots);

}  // namespace vfm::dataset
