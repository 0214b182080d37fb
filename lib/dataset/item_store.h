// A store of the facts of all samples, in temporary files in the dataset's folder.
//
// Memory holds a few bits for each sample, and the shapes. Items are numbered in input order. An
// item is called dropped if it is a duplicate or left out, and gone if an earlier item has the same
// key. Dropped and gone items keep their numbers. Thread-safety: one thread at a time; get() from
// any thread after the last take().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset/item.h"
#include "io/scratch_file.h"
#include "io/sorter.h"

namespace vfm::dataset {

/// The items of one input shard. One thread fills the batch and passes it to ItemStore::take().
class ItemBatch {
 public:
  explicit ItemBatch(const std::string& folder) : items_(folder) {}
  /// Throws Error if a name is too long.
  void add(const Item& item);

  const Shapes& shapes() const { return shapes_; }
  /// The packed items, which have numbers of shapes().
  const io::ScratchFile& items() const { return items_; }

 private:
  Shapes shapes_;
  io::ScratchFile items_;
  std::string packed_;
};

/// The place of a stored embedding. If `halves` is true, the numbers are 16-bit floats, as in the
/// sample's array. Otherwise they are 32-bit floats.
struct EmbeddingPlace {
  std::uint32_t item = 0;
  bool halves = false;
  std::uint32_t dim = 0;
  std::uint64_t encoder = 0, offset = 0;
};

/// Memory in bytes for each compared embedding. near_bytes() is for comparing all pairs of
/// embeddings of length `dim`. near_bytes_in_clusters() is the minimum for a search in clusters: a
/// sketch (curate/vectors/sketch.h), and kPlaceInClusters bytes for the embedding's place and
/// positions in two orders.
inline constexpr std::uint64_t kPlaceInClusters =
    sizeof(EmbeddingPlace) + 2 * sizeof(std::uint32_t);
std::uint64_t near_bytes(std::uint64_t dim);
std::uint64_t near_bytes_in_clusters();

class ItemStore {
 public:
  /// Limits the embeddings to the number that can be compared in `most_near_bytes` bytes. All pairs
  /// are compared if `all_pairs` is true, otherwise pairs in clusters. Keeps Item::notes if `notes`
  /// is true.
  ItemStore(const std::string& folder, std::uint64_t most_near_bytes, bool all_pairs,
            bool notes = false);

  /// Adds the items of a batch. Throws Error{usage} if the store would have too many embeddings.
  void take(const ItemBatch& batch, std::uint32_t shard);
  /// The same for ItemBatch::shapes() and ItemBatch::items().
  void take(const Shapes& shapes, io::ScratchReader items, std::uint32_t shard);
  /// Marks an item as gone if an earlier item has the same key. Call settle_keys() after the last
  /// take(). Calls `again` for each gone item, in any order, with the item's number, the item, and
  /// the first item with the same key. Throws Stopped.
  void settle_keys(
      const std::function<void(std::uint32_t number, const Item& item, const Item& first)>& again);

  std::uint32_t size() const { return count_; }
  /// Returns the number of items that are not gone.
  std::uint64_t there() const { return count_ - gone_count_; }
  bool is_there(std::uint32_t number) const { return !gone_[number]; }
  bool is_kept(std::uint32_t number) const { return !gone_[number] && !dropped_[number]; }
  void drop(std::uint32_t number) { dropped_[number] = true; }

  /// Returns an item, without source, path and embedding.
  Item get(std::uint32_t number) const;
  /// Calls `use` with each kept item, in order. Throws Stopped.
  void for_each_kept(const std::function<void(std::uint32_t number, const Item& item)>& use) const;
  /// Calls `use` with each kept item, in order, and with its facts as put_facts() wrote them.
  /// Throws Stopped.
  using UsePacked =
      std::function<void(std::uint32_t number, const std::string& key, std::uint32_t shape,
                         std::uint32_t shard, std::string_view facts)>;
  void for_each_kept_packed(const UsePacked& use) const;
  /// Calls `use` with each kept item, in order, and with its notes. Throws Stopped.
  void for_each_noted(const std::function<void(std::uint32_t number, const std::string& key,
                                               std::string_view notes)>& use) const;

  const Shapes& shapes() const { return shapes_; }
  Shapes take_shapes() { return std::move(shapes_); }
  const std::deque<EmbeddingPlace>& embeddings() const { return embeddings_; }
  /// Reads place.dim numbers into `out`. Thread-safety: any thread.
  void read_embedding(const EmbeddingPlace& place, float* out) const;
  const std::string& folder() const { return folder_; }

  /// Consecutive items of one source and path.
  struct SourceRun {
    std::string source, path;
    std::uint32_t first = 0;
    std::uint64_t count = 0;
    std::string content;  ///< Item::content if by_key is true, else empty.
    bool by_key = false;
  };
  /// Calls `use` with all runs, sorted by source, path and first item. Runs contain dropped and
  /// gone items, too. May be called repeatedly. Throws Stopped.
  void for_each_source_run(const std::function<void(const SourceRun& run)>& use);
  /// Frees the data for for_each_noted().
  void forget_notes();
  /// forget_sources() frees the data for for_each_source_run() and get(). forget_items() frees the
  /// data for all functions except shapes().
  void forget_sources();
  void forget_items();

 private:
  void take_embedding(std::string_view packed, std::uint64_t encoder);
  void note_source(const Item& item);
  void end_source();

  std::string folder_;
  std::uint64_t near_left_;
  bool all_pairs_, keeps_notes_;
  std::uint32_t count_ = 0, gone_count_ = 0;
  std::vector<bool> gone_, dropped_;
  Shapes shapes_;
  io::ScratchFile items_, offsets_, embedding_bytes_, notes_;
  std::deque<EmbeddingPlace> embeddings_;
  io::Sorter keys_, source_runs_;
  SourceRun run_;
};

}  // namespace vfm::dataset
