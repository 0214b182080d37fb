// Fetches the bytes of samples from an object store before they are taken: by several threads, as a
// request takes long, and in bounded memory.
//
// Parts are wanted and taken in one order. Of the parts that are wanted, those of one shard are
// fetched together (Dataset::fetch()), beginning with the one that is taken first. So how far the
// wants are ahead decides how many a request brings.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "data/entry.h"
#include "train/data/dataset.h"

namespace vfm::train {

class FetchAhead {
 public:
  /// Keeps the reference. At most `limit` bytes, by Dataset::about_bytes(), are held or under way,
  /// and one part more: the one that is taken next. Starts no thread before want().
  FetchAhead(const Dataset& data, std::int64_t limit);
  /// Waits for the requests that are under way.
  ~FetchAhead();
  FetchAhead(const FetchAhead&) = delete;
  FetchAhead& operator=(const FetchAhead&) = delete;

  /// Appends the part [begin, end) of about_bytes() of a sample.
  void want(std::size_t sample, std::int64_t begin, std::int64_t end);
  /// Whether fewer bytes are wanted, and not yet taken, than the limit.
  bool has_room() const;
  /// Waits for the first part, and removes it. Throws what fetching it threw (Error if the store
  /// failed, Stopped).
  data::SampleBytes take();

 private:
  enum class State { wanted, under_way, there };
  struct Part {
    data::SampleBytes data;
    std::uint32_t shard = 0;
    State state = State::wanted;
    std::exception_ptr thrown;

    std::int64_t bytes() const { return data.end - data.begin; }
  };
  void work();
  std::vector<Part*> choose();
  void fetch(std::span<Part* const> parts);

  const Dataset& data_;
  const std::int64_t limit_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Part> parts_;  ///< in the order of want()
  std::deque<Part*> next_;  ///< of these those that are wanted, and some that no longer are
  std::map<std::uint32_t, std::deque<Part*>> of_shards_;  ///< the same by shard
  std::int64_t wanted_bytes_ = 0, held_bytes_ = 0;        ///< of all parts; under way or there
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

/// The limit of a run: 'data.ahead', and enough requests at once for a store that is far away.
std::int64_t fetch_limit(const Recipe& recipe);
/// The memory of its host that a rank takes to fetch these samples: what is held or under way, one
/// sample more, what waits to be written to a cache (io/block_cache.h), and threads with their
/// connections. 0 for data on a disk.
double fetch_bytes(const Recipe& recipe, const Dataset& data);

/// Fetches these parts, several at once. Throws as take().
std::vector<data::SampleBytes> fetch_all(const Dataset& data, std::vector<data::SampleBytes> parts);

}  // namespace vfm::train
