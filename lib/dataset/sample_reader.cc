// SPDX-License-Identifier: Apache-2.0
#include "dataset/sample_reader.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "io/at_once.h"
#include "io/file.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"
#include "io/zstd_reader.h"

namespace vfm::dataset {

/// Keeps the last used tars open. A shuffled dataset reads from all inputs in turn, and the number
/// of file descriptors is limited.
class SampleReader::Tars {
 public:
  Tars(const std::vector<InputShard>& inputs, const shard::ReadLimits& limits, std::string unpacked)
      : inputs_(inputs), limits_(limits), unpacked_(std::move(unpacked)) {}

  std::shared_ptr<const shard::IndexedReader> get(std::uint32_t shard, std::size_t column) {
    const Key key{shard, column};
    std::unique_lock lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      used_.splice(used_.begin(), used_, found->second);
      return found->second->second;
    }
    const std::string tar = path(shard, column);
    // Other threads need not wait for a server. Two may open one object.
    if (io::is_remote(tar)) lock.unlock();
    auto reader = std::make_shared<const shard::IndexedReader>(
        shard::IndexedReader::without_index(tar, limits_));
    if (!lock) lock.lock();
    if (by_key_.contains(key)) return reader;
    used_.emplace_front(key, std::move(reader));
    by_key_[key] = used_.begin();
    constexpr std::size_t kOpen = 256;
    if (used_.size() > kOpen) {
      by_key_.erase(used_.back().first);
      used_.pop_back();
    }
    return used_.front().second;
  }

 private:
  using Key = std::pair<std::uint32_t, std::size_t>;
  using Entry = std::pair<Key, std::shared_ptr<const shard::IndexedReader>>;
  std::string path(std::uint32_t shard, std::size_t column) const {
    const InputShard& input = inputs_.at(shard);
    if (!input.packed.at(column)) return input.tars[column];
    const std::string copy = unpacked_path(unpacked_, input.line, column);
    if (!io::file_exists(copy)) {
      io::make_directories(unpacked_);
      shard::unpack(input.tars[column], copy, limits_);
    }
    return copy;
  }

  const std::vector<InputShard>& inputs_;
  shard::ReadLimits limits_;
  std::string unpacked_;
  std::mutex mutex_;
  std::list<Entry> used_;  // Last used first.
  std::map<Key, std::list<Entry>::iterator> by_key_;
};

SampleReader::SampleReader(const std::vector<InputShard>& inputs, bool rekey,
                           const shard::ReadLimits& limits, std::string unpacked)
    : inputs_(inputs),
      rekey_(rekey),
      tars_(std::make_unique<Tars>(inputs, limits, std::move(unpacked))) {}
SampleReader::~SampleReader() = default;

std::vector<SampleReader::Fetched> SampleReader::fetch(std::span<const Item> items) const {
  struct Wanted {
    std::shared_ptr<const shard::IndexedReader> tar;
    std::vector<io::RemoteFile::Range> ranges;
    std::vector<std::string*> texts;
  };
  std::map<std::pair<std::uint32_t, std::size_t>, Wanted> by_tar;
  std::vector<Fetched> fetched(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const InputShard& input = inputs_.at(items[i].shard);
    fetched[i].resize(items[i].columns.size());
    for (std::size_t c = 0; c < fetched[i].size(); ++c) {
      const ColumnPlace& place = items[i].columns[c];
      const std::string& tar = input.tars[c];
      if (input.packed.at(c) || !io::is_remote(tar) || io::is_zstd_name(tar)) continue;
      std::string& text = fetched[i][c];
      text.resize(place.size);
      Wanted& wanted = by_tar[{items[i].shard, c}];
      wanted.ranges.push_back({place.offset, std::as_writable_bytes(std::span(text))});
      wanted.texts.push_back(&text);
    }
  }
  std::vector<std::pair<std::pair<std::uint32_t, std::size_t>, Wanted*>> all;
  for (auto& [name, wanted] : by_tar)
    all.emplace_back(name, &wanted);
  io::for_each_at_once(all.size(), io::kRequestsAtOnce, [&](std::size_t i) {
    const auto& [name, wanted] = all[i];
    try {
      tars_->get(name.first, name.second)->remote()->pread_all(wanted->ranges);
    } catch (const Error&) {
      for (std::string* text : wanted->texts)
        text->clear();
    }
  });
  return fetched;
}

JoinedSample SampleReader::read(const Item& item, std::vector<shard::ReadBuffer>& buffers,
                                const Fetched& fetched) const {
  buffers.resize(std::max(buffers.size(), item.columns.size()));
  std::vector<const shard::SampleView*> parts;
  for (std::size_t c = 0; c < item.columns.size(); ++c) {
    const ColumnPlace& place = item.columns[c];
    const auto tar = tars_->get(item.shard, c);
    parts.push_back(c < fetched.size() && !fetched[c].empty()
                        ? &tar->view_in(place.row, place.offset, fetched[c], buffers[c])
                        : &tar->view_at(place.row, place.offset, place.size, buffers[c]));
  }
  JoinedSample sample = join_sample(parts);
  if (rekey_) rekey(sample);
  if (sample.key != item.key)
    fail("'{}' changed while it was read; run the command again", inputs_[item.shard].name);
  return sample;
}

}  // namespace vfm::dataset
