// Finds samples that vfm-shard drops as duplicates of a better sample.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "curate/vectors/cell_search.h"
#include "dataset/dataset.h"
#include "dataset/item_store.h"
#include "io/scratch_file.h"
#include "io/sorter.h"
#include "share/slots.h"

namespace vfm::dataset {

/// The kind of a duplicate. A "repeated" sample has the same key and media as an earlier sample of
/// the input.
enum class DuplicateKind { exact, near, repeated };
inline constexpr std::array kDuplicateKinds = {"exact", "near", "repeated"};

/// A dropped sample, and the better sample that is kept.
struct Duplicate {
  std::string key, keeper;
  DuplicateKind kind = DuplicateKind::exact;
  double cosine = 1;
  std::string reason;     ///< Reason why `keeper` is better.
  std::uint32_t set = 0;  ///< Number of the ComparedSet of a near duplicate.
};

/// A list of all duplicates, in a temporary file. Thread-safety: one thread at a time.
class DuplicateList {
 public:
  explicit DuplicateList(const std::string& folder) : sorter_(folder) {}

  void add(const Duplicate& duplicate);
  std::uint64_t count() const { return sorter_.records(); }
  std::uint64_t count(DuplicateKind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  const std::vector<double>& near_cosines() const { return cosines_; }
  /// Frees memory. Call park() after the last add() if for_each() is not called soon.
  void park() { sorter_.park(); }
  /// Calls `use` with all duplicates, sorted by key, until `use` returns false. If a key is listed
  /// several times, the kind `repeated` comes last.
  void for_each(const std::function<bool(const Duplicate& duplicate)>& use);

 private:
  io::Sorter sorter_;
  std::array<std::uint64_t, kDuplicateKinds.size()> counts_{};
  std::vector<double> cosines_;
};

/// A list of pairs (dropped, kept) of items. The sources of a pair show the same content.
class DuplicatePairs {
 public:
  explicit DuplicatePairs(const std::string& folder) : file_(folder) {}
  void add(std::uint32_t dropped, std::uint32_t kept);
  bool empty() const { return file_.size() == 0; }
  void for_each(const std::function<void(std::uint32_t dropped, std::uint32_t kept)>& use) const;

 private:
  io::ScratchFile file_;
};

/// A set of compared samples of one kind, with vectors of one encoder.
struct ComparedSet {
  /// Whether the samples are images, and not videos or other media.
  bool images = false;
  std::uint64_t encoder = 0;
  std::uint64_t samples = 0;
  /// Options and counts of a search in clusters (curate/vectors/cell_search.h). Not set if all
  /// pairs were compared.
  struct Clusters {
    double margin = 0;
    std::uint64_t most = 0, numbers = 0;
    curate::CellCounts counts;
  };
  std::optional<Clusters> clusters;

  /// Returns "exact", or the options of the search, such as "clusters=894 margin=0.5 most=64
  /// numbers=128".
  std::string method() const;
  Json clusters_json() const;
};

/// Drops from `items` each sample that duplicates a better sample. Exact duplicates have the same
/// media bytes. Near duplicates are videos (or images) with a cosine of at least
/// options.duplicate_threshold between embeddings of the same encoder. Of two samples, the sample
/// with more pixels is better. If both have the same number of pixels, the sample with more bytes
/// is better. If the numbers of bytes are equal too, the sample with the smaller key is better. If
/// options.keep_duplicates is set, drops nothing, but fills `pairs`, so that equal bytes are never
/// in two parts of a split. Throws Stopped.
std::vector<ComparedSet> find_duplicates(ItemStore& items, const ShardOptions& options,
                                         share::Slots& slots, DuplicateList& list,
                                         DuplicatePairs& pairs);

}  // namespace vfm::dataset
