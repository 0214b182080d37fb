// SPDX-License-Identifier: Apache-2.0
#include "dataset/write.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/held_bytes.h"
#include "base/json.h"
#include "base/stop.h"
#include "io/file.h"
#include "shard/receipt.h"
#include "shard/writer.h"
#include "share/ordered.h"

namespace vfm::dataset {

ShardWriter::ShardWriter(const WritePlan& plan, std::string output, std::string unpacked)
    : plan_(plan),
      output_(std::move(output)),
      reader_(plan.inputs, plan.rekey, plan.limits, std::move(unpacked)) {}

/// Takes planned items with up to 32 MiB together, but at least one.
std::vector<Item> ShardWriter::take_some(std::string_view& rest) const {
  constexpr std::uint64_t kTogether = std::uint64_t{32} << 20;
  std::vector<Item> items;
  for (std::uint64_t bytes = 0; !rest.empty() && bytes < kTogether;) {
    items.push_back(take_planned(rest, plan_.shapes));
    for (const ColumnPlace& place : items.back().columns)
      bytes += place.size;
  }
  return items;
}

Json ShardWriter::write(const PlannedShard& planned) const {
  const std::string tar = io::join_path(output_, planned.path);
  shard::Receipt receipt(shard::receipt_path(tar), "plan", planned.plan);
  Json record = receipt.find([&](const Json& found) { shard::check_written(tar, found); });
  if (record.is_null()) {
    io::make_directories(io::dir_name(tar));
    shard::Writer writer(tar);
    std::vector<shard::ReadBuffer> buffers;
    const std::string items = planned_items(plan_, planned);
    for (std::string_view rest = items; !rest.empty();) {
      const std::vector<Item> some = take_some(rest);
      const std::vector<SampleReader::Fetched> fetched = reader_.fetch(some);
      for (std::size_t i = 0; i < some.size(); ++i) {
        check_stop();
        JoinedSample sample = reader_.read(some[i], buffers, fetched[i]);
        add_place(sample.meta, planned);
        const std::string json = dump_json(sample.meta);
        shard::SampleView view{sample.key, sample.members};
        view.members.insert(view.members.begin() + (sample.media.empty() ? 0 : 1), {"json", json});
        writer.add(view);
      }
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

void write_shards(const WritePlan& plan, const ShardWriter& writer, const ShardChoice& choice,
                  share::Slots& slots, Progress& progress,
                  const std::function<void(Json& record)>& done) {
  std::size_t next = choice.first;
  const std::size_t count = plan.shards.size();
  progress.start("shards", count > next ? (count - next - 1) / choice.step + 1 : 0);
  share::for_each_ordered<const PlannedShard*, Json>(
      slots,
      [&]() -> std::optional<const PlannedShard*> {
        if (next >= count) return std::nullopt;
        const PlannedShard* shard = &plan.shards[next];
        next += choice.step;
        return shard;
      },
      [&](const PlannedShard*& shard) { return writer.write(*shard); },
      [&](Json& record) {
        progress.add();
        done(record);
      },
      [](const Json& record) { return held_bytes(record); });
}

}  // namespace vfm::dataset
