// SPDX-License-Identifier: Apache-2.0
#include "dataset/write.h"

#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "io/file.h"
#include "shard/reader.h"
#include "shard/receipt.h"
#include "shard/writer.h"

namespace vfm::dataset {

/// Open tars, the last used ones: a shuffled dataset jumps between all inputs, and descriptors are
/// few.
class ShardWriter::Readers {
 public:
  Readers(const Scan& scan, const shard::ReadLimits& limits) : scan_(scan), limits_(limits) {}

  std::shared_ptr<const shard::IndexedReader> get(std::uint32_t shard, std::size_t column) {
    const Key key{shard, column};
    const std::lock_guard lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      used_.splice(used_.begin(), used_, found->second);
      return found->second->second;
    }
    const InputShard& input = scan_.shards[shard];
    used_.emplace_front(key, std::make_shared<const shard::IndexedReader>(
                                 shard::IndexedReader::without_index(input.tars[column], limits_)));
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
  const Scan& scan_;
  shard::ReadLimits limits_;
  std::mutex mutex_;
  std::list<Entry> used_;  // the last used first
  std::map<Key, std::list<Entry>::iterator> by_key_;
};

ShardWriter::ShardWriter(const Scan& scan, const ShardOptions& options)
    : scan_(scan), options_(options), readers_(std::make_unique<Readers>(scan, options.limits)) {}
ShardWriter::~ShardWriter() = default;

Json ShardWriter::write(const PlannedShard& planned, std::string_view items) const {
  const std::string tar = io::join_path(options_.output, planned.path);
  shard::Receipt receipt(shard::receipt_path(tar), "plan", planned.plan);
  Json record = receipt.find([&](const Json& found) { shard::check_written(tar, found); });
  if (record.is_null()) {
    io::make_directories(io::dir_name(tar));
    shard::Writer writer(tar);
    std::vector<shard::ReadBuffer> buffers;
    while (!items.empty()) {
      check_stop();
      const Item item = PlannedItems::take(items, scan_.items.shapes());
      buffers.resize(std::max(buffers.size(), item.columns.size()));
      std::vector<const shard::SampleView*> parts;
      for (std::size_t c = 0; c < item.columns.size(); ++c) {
        const ColumnPlace& place = item.columns[c];
        parts.push_back(&readers_->get(item.shard, c)
                             ->view_at(place.row, place.offset, place.size, buffers[c]));
      }
      JoinedSample sample = join_sample(parts);
      if (options_.rekey) rekey(sample);
      if (sample.key != item.key)
        fail("'{}' changed while it was read; run the command again",
             scan_.shards[item.shard].name);
      add_place(sample.meta, planned);
      const std::string json = dump_json(sample.meta);
      shard::SampleView view{sample.key, sample.members};
      view.members.insert(view.members.begin() + (sample.media.empty() ? 0 : 1), {"json", json});
      writer.add(view);
    }
    record = writer.finish();
    record["split"] = planned.split;
    record["bin"] = planned.bin;
    record["plan"] = planned.plan;
    record.erase("path");  // the folder may be moved
    receipt.write(dump_json(record) + "\n");
  }
  Json result = {{"kind", "shard"}, {"path", tar}};
  for (const auto& [name, value] : record.items())
    if (name != "kind" && name != "plan") result[name] = value;
  return result;
}

}  // namespace vfm::dataset
