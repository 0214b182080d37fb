// SPDX-License-Identifier: Apache-2.0
#include "shard/part_shards.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/input_limits.h"
#include "base/json.h"
#include "base/stop.h"
#include "io/file.h"
#include "io/late_files.h"
#include "parts/part_inputs.h"
#include "parts/part_marker.h"
#include "parts/part_run.h"
#include "shard/columns.h"
#include "shard/receipt.h"

namespace vfm::shard {
namespace {

/// Returns the hash of a column that its json tells, if the tar has the size that this tells.
std::string told_hash(const std::string& tar, std::uint64_t bytes) {
  const std::string path = receipt_path(tar);
  if (!io::file_exists(path)) return "";
  try {
    const Json notes = parse_json(io::read_file(path), path);
    const Json& record = notes.at("record");
    if (get_integer(record, "bytes") != static_cast<std::int64_t>(bytes)) return "";
    return get_string(record, "xxh3").value_or("");
  } catch (const std::exception&) {
    return "";  // the tar is read
  }
}

using Outputs = std::vector<parts::PartResults::Output>;

/// Returns what the marker of a part says that it wrote.
Outputs outputs_of(const std::string& clips, const std::string& tool, int part) {
  return parts::need_marker(clips, tool, part).results.outputs;
}

class PartDigest {
 public:
  explicit PartDigest(const std::string& clips) : clips_(clips) {}

  /// Adds the outputs of a part. Returns them.
  Outputs add_part(const std::string& tool, int part) {
    Outputs outputs = outputs_of(clips_, tool, part);
    for (const parts::PartResults::Output& output : outputs)
      add(fmt::format("{} {} {}", output.path, output.bytes, output.xxh3));
    return outputs;
  }
  /// Adds a column of a shard, if there is one.
  void add_column(const std::string& shard, const std::string& column) {
    const std::string tar = column_tar_path(shard, column);
    if (!io::file_exists(tar)) return;
    const std::uint64_t bytes = io::File::open_read(tar).size();
    std::string hash = told_hash(tar, bytes);
    if (hash.empty()) hash = io::hash_file(tar);
    add(fmt::format("{} {} {}", io::base_name(tar), bytes, hash));
  }
  void add(const std::string& line) { hasher_.update(line + "\n"); }
  std::string hex() const { return hasher_.hex128(); }

 private:
  std::string clips_;
  Hasher hasher_;
};

}  // namespace

bool PartShards::has(const io::Record& record) const {
  const auto path = get_string(record.json, "path");
  return record.kind == "shard" && path && parts::part_of_shard(*path, parts) == part;
}

std::string digest_of(const PartShards& shards, const parts::RunFile& run,
                      const std::vector<std::string>& reads) {
  PartDigest digest(shards.clips);
  digest.add(run.digest);
  for (const int part : shards.clip_parts)
    for (const parts::PartResults::Output& output : digest.add_part("clip", part))
      for (const std::string& column : reads) {
        check_stop();
        if (std::ranges::find(run.after, column) == run.after.end())
          digest.add_column(io::join_path(shards.clips, output.path), column);
      }
  for (const std::string& tool : run.after)
    if (const auto other = parts::read_run_file(shards.clips, tool))
      for (const int part : parts::parts_with(*other, shards.clip_parts))
        digest.add_part(tool, part);
  for (const int number : shards.later ? shards.clip_parts : std::vector<int>()) {
    ClipsOfPart part(shards.clips, number);
    while (auto record = part.next())
      for (const DuplicateSource& source : shards.later->mark(*record))
        digest.add(source.hash);
  }
  return digest.hex();
}

std::vector<io::Fault> late_inputs(const PartShards& shards, const parts::RunFile& run) {
  std::vector<io::Fault> late;
  const auto look_for = [&](const std::string& tool, int part) {
    for (const parts::PartResults::Output& output : outputs_of(shards.clips, tool, part)) {
      const std::string path = io::join_path(shards.clips, output.path);
      try {
        io::look_until_seen(input_limits().timeout, [&] {
          if (const std::uint64_t bytes = io::File::open_read(path).size(); bytes != output.bytes)
            fail("'{}' is not as it was written: it has {} bytes, the marker of its part says {}",
                 path, bytes, output.bytes);
        });
      } catch (const Error& error) {
        late.emplace_back(path, error);
      }
    }
  };
  for (const int part : shards.clip_parts)
    look_for("clip", part);
  for (const std::string& tool : run.after)
    if (const auto other = parts::read_run_file(shards.clips, tool))
      for (const int part : parts::parts_with(*other, shards.clip_parts))
        look_for(tool, part);
  return late;
}

}  // namespace vfm::shard
