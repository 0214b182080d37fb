// Chooses the samples that the page of --report shows, and counts the numbers in the JSON of all
// that stay. It shows for each score the samples with the least and the most; some at random; and
// for each of these the nearest others by a vector.
//
// Samples' notes are on a temporary file (dataset/item_store.h); memory holds counts, and the
// samples shown. So the page for a hundred million samples is as small as that for a thousand. It
// depends on the samples that stay, not on their order: ties are in order of the keys' hashes.
// Cosines are computed with all vectors. Thread-safety: one thread at a time, put_number_notes()
// from any.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/item_store.h"
#include "dataset/join.h"
#include "dataset/sample_vector.h"
#include "report/html.h"
#include "share/slots.h"

namespace vfm::dataset {

/// The fields with numbers, by the hash of their names, and the number of samples with each.
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

/// Appends a sample's data for the page: its numbers, and its vector as halves of length 1. Ignores
/// names of more than 64 bytes.
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

/// Picks from the samples that `items` keeps. `names`: of all noted samples. Throws Stopped.
Shown pick_shown(const ItemStore& items, const ShardOptions& options, const NumberNames& names,
                 share::Slots& slots);

}  // namespace vfm::dataset
