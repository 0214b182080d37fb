// Chooses the samples that the page of --report shows, and collects statistics of the numbers in
// the JSON of all samples that stay. The page shows the lowest and highest samples by each score,
// and samples chosen at random. For each of these samples it also shows the nearest other samples
// by a vector.
//
// Samples' notes are in a temporary file (dataset/item_store.h); memory holds only counts and the
// samples shown. The page depends on the samples that stay, not on their order, because ties are
// sorted by the keys' hashes. Neighbours are searched among all vectors. Thread-safety: one thread
// at a time; put_number_notes() from any thread.
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

/// Fields with numbers, by hash of the name, and the number of samples with each.
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

/// Appends a sample's data for the page: its numbers, and its unit vector as halves. Ignores names
/// of more than 64 bytes.
void put_number_notes(std::string& notes, const JoinedSample& sample, const SampleVector& vector,
                      NumberNames& names);

struct NumberField {
  struct End {
    double value = 0;
    std::size_t item = 0;  ///< index into Shown::items
  };
  std::string name;
  std::uint64_t samples = 0;  ///< samples that stay and have the field
  report::AxisRange range;
  std::string chart;
  bool score = false;
  std::vector<End> lowest, highest;  ///< for scores: the extreme value first
};

struct ShownItem {
  struct Near {
    std::size_t item = 0;
    float cosine = 0;
  };
  Item item;               ///< from ItemStore::get()
  bool whole = false;      ///< shown in full, not only as a neighbour
  std::vector<Near> near;  ///< nearest first; all of the same encoder
};

struct Shown {
  std::vector<NumberField> fields;          ///< sorted by name
  std::size_t more_fields = 0, scores = 0;  ///< number of fields left out; number of scores
  std::vector<ShownItem> items;
  std::vector<std::size_t> drawn;  ///< indices of `items` chosen at random
  std::uint64_t samples = 0;       ///< number of samples that stay
  std::string member;              ///< name of the compared vectors
  std::uint64_t vectors = 0;       ///< samples with a vector
};

/// Chooses samples from the kept `items`. `names`: fields of all samples with notes. Throws
/// Stopped.
Shown pick_shown(const ItemStore& items, const ShardOptions& options, const NumberNames& names,
                 share::Slots& slots);

}  // namespace vfm::dataset
