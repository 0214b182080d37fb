// Writes the files that other loaders need to read a folder of shards as a dataset:
// Megatron-Energon's .nv-meta and webdataset's wids.json. Reads only the shards' indexes, no tar.
// Equal datasets give files with equal bytes. Compressed shards are named as they are when they are
// unpacked, since these loaders do not read them before.
// Thread-safety: one thread at a time for each folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/held_json.h"

namespace vfm::shard {

struct DatasetShard {
  std::string path;   ///< Path relative to the dataset's folder. Others see plain_tar_path() of it.
  std::string split;  ///< Name of the split: "train".
  std::int64_t samples = 0;
  std::uint64_t bytes = 0;  ///< Bytes of the tar, not compressed.
  std::string xxh3;         ///< Hash of the whole file.
};

/// The shards of a dataset by number. They come from a list, which must outlive this object, or
/// from a function that makes one shard at a time.
class DatasetShards {
 public:
  using At = std::function<DatasetShard(std::size_t number)>;

  DatasetShards(const std::vector<DatasetShard>& list)
      : size_(list.size()), at_([&list](std::size_t number) { return list[number]; }) {}
  DatasetShards(std::size_t size, At at) : size_(size), at_(std::move(at)) {}

  std::size_t size() const { return size_; }
  DatasetShard at(std::size_t number) const { return at_(number); }
  void for_each(const std::function<void(const DatasetShard&)>& use) const {
    for (std::size_t number = 0; number < size_; ++number)
      use(at_(number));
  }

 private:
  std::size_t size_;
  At at_;
};

/// Energon's media metadata of one member. `type` is "av" for a video, "image" for a picture, and
/// empty if there is no metadata.
struct MediaMetadata {
  std::string type;
  HeldJson json;
};
/// Returns the metadata of a member. Called for every member of every sample, in order.
using MediaOf = std::function<MediaMetadata(std::size_t shard, std::int64_t sample,
                                            std::string_view key, std::string_view extension)>;

/// Writes DIR/.nv-meta, and with `list` DIR/samples.bin (shard/sample_list.h). Does nothing if the
/// folder already describes these shards. Throws Error. Keys must be unique over all shards.
void write_energon_meta(const std::string& directory, const DatasetShards& shards,
                        const MediaOf& media, bool list = false);

/// Writes DIR/wids.json for all shards, and DIR/SPLIT/wids.json for each split, without the
/// optional MD5 sums.
void write_wids(const std::string& directory, const std::string& name,
                const std::vector<DatasetShard>& shards);

struct IndexedMember {
  std::string extension;
  std::uint64_t offset = 0, size = 0;  ///< Offset of the data in the tar, and size of the data.
};
struct IndexedSample {
  std::string key;
  std::uint64_t offset = 0, size = 0;  ///< In bytes, with headers and padding.
  std::vector<IndexedMember> members;
};
/// Calls `use` for each sample in the indexes X.idx and X.tar.idx of a tar that a Writer wrote.
/// Throws Error if an index is missing or malformed, or if the indexes do not fit each other.
void for_each_indexed(const std::string& tar, const std::function<void(const IndexedSample&)>& use);

}  // namespace vfm::shard
