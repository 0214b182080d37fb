// Chooses the samples that the report of vfm-shard shows: the lowest and highest by each score, and
// random samples. For each of these samples, the report also shows the samples with the nearest
// vectors. Collects statistics of the numbers in the JSON of all kept samples.
//
// The choice does not depend on the order of samples. Thread-safety: one thread at a time;
// put_number_notes() from any thread.
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

/// A table of the JSON fields with numbers. The key is the hash of a field's name. `samples` is the
/// number of samples that have the field.
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

/// Appends a sample's numbers and unit vector (as 16-bit floats) to `notes`. Ignores fields with
/// names of more than 64 bytes.
void put_number_notes(std::string& notes, const JoinedSample& sample, const SampleVector& vector,
                      NumberNames& names);

struct NumberField {
  struct End {
    double value = 0;
    std::size_t item = 0;  ///< Index into Shown::items.
  };
  std::string name;
  std::uint64_t samples = 0;  ///< Number of kept samples that have the field.
  report::AxisRange range;
  std::string chart;
  bool score = false;
  std::vector<End> lowest, highest;  ///< Samples with extreme values, most extreme first.
};

struct ShownItem {
  struct Near {
    std::size_t item = 0;
    float cosine = 0;
  };
  Item item;
  /// Whether the page shows the sample in full, not only as a neighbour.
  bool whole = false;
  std::vector<Near> near;  ///< Samples with the nearest vectors, nearest first.
};

struct Shown {
  std::vector<NumberField> fields;
  std::size_t more_fields = 0, scores = 0;  ///< Numbers of omitted fields and of scores.
  std::vector<ShownItem> items;
  std::vector<std::size_t> drawn;  ///< Indices of the random samples in `items`.
  std::uint64_t samples = 0;
  std::string member;         ///< Member with the compared vectors.
  std::uint64_t vectors = 0;  ///< Number of kept samples with a vector.
};

/// Chooses samples from the kept `items`. `names` are Scan::numbers. Throws Stopped.
Shown pick_shown(const ItemStore& items, const ShardOptions& options, const NumberNames& names,
                 share::Slots& slots);

}  // namespace vfm::dataset
