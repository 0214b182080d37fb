// SPDX-License-Identifier: Apache-2.0
#include "dataset/write.h"

#include <vector>

#include "base/json.h"
#include "base/stop.h"
#include "io/file.h"
#include "shard/receipt.h"
#include "shard/writer.h"

namespace vfm::dataset {

ShardWriter::ShardWriter(const Scan& scan, const ShardOptions& options)
    : scan_(scan), options_(options), reader_(scan, options) {}

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
      JoinedSample sample = reader_.read(item, buffers);
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
    record.erase("path");  // The folder may be moved.
    receipt.write(dump_json(record) + "\n");
  }
  Json result = {{"kind", "shard"}, {"path", tar}};
  for (const auto& [name, value] : record.items())
    if (name != "kind" && name != "plan") result[name] = value;
  return result;
}

}  // namespace vfm::dataset
