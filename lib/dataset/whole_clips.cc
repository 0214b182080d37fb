// SPDX-License-Identifier: Apache-2.0
#include "dataset/whole_clips.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/file.h"
#include "io/first_names.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "io/text_writer.h"
#include "parts/clip_list.h"
#include "parts/part_inputs.h"
#include "parts/part_marker.h"
#include "parts/part_run.h"
#include "shard/columns.h"
#include "shard/listed_clips.h"
#include "shard/part_output.h"
#include "shard/receipt.h"
#include "shard/whole_parts.h"

namespace vfm::dataset {
namespace {

constexpr const char* kClip = "clip";

/// The columns that the parts of one program wrote.
class JoinedColumn {
 public:
  JoinedColumn(const std::string& directory, std::string tool)
      : directory_(directory),
        tool_(std::move(tool)),
        run_(parts::read_run_file(directory, tool_).value_or(parts::RunFile{1})),
        records_(directory),
        failed_(directory) {
    shard::for_each_joined_record(directory, tool_, [&](const Json& record) {
      records_.put(shard::named_in(directory, record).at("path"), dump_json(record));
    });
    shard::for_each_part_error(directory, tool_, [&](const Json& error) {
      failed_.put(io::base_name(error.at("input").get<std::string>()), {});
    });
  }

  /// Adds the column and the fields of the program. `name` is the shard's, relative to the folder,
  /// and `clip_part` the part of vfm-clip that wrote it.
  void add_to(const std::string& name, int clip_part, Json& record) const {
    const auto found = records_.find(name);
    if (!found) {
      if (failed_.find(io::base_name(name))) return;
      fail(
          "the parts of vfm-{} were complete before '{}' was there; remove '{}', do them again, "
          "then join again",
          tool_, record.at("path").get<std::string>(), marker_of(name, clip_part));
    }
    Json made = parse_json(*found, "a temporary file");
    const std::string marker = marker_of(name, clip_part), folder = io::dir_name(marker);
    std::string tar;
    shard::read_of_part(folder, io::join_path(folder, "manifest.jsonl"),
                        [&] { tar = made.at("columns").at(tool_).get<std::string>(); });
    if (!io::file_exists(tar))
      fail("'{}' is missing; remove '{}', and do this part of vfm-{} again", tar, marker, tool_);
    record["columns"][tool_] = tar;
    add_members(record, made);
  }

  /// Returns what vfm wrote of the shard's column, or null if the shard has none.
  Json receipt_of(const Json& record) const {
    const auto tar = record.at("columns").find(tool_);
    if (tar == record.at("columns").end()) return nullptr;
    const std::string path = shard::receipt_path(tar->get<std::string>());
    return parse_json(io::read_file(path), "'" + path + "'");
  }
  /// Notes the part if the column was made of other tars than those with these hashes.
  void check_sources(const std::string& name, int clip_part, const Json& receipt,
                     const std::set<std::string>& hashes) {
    const Json::json_pointer sources("/made_from/sources");
    if (receipt.is_null() || !receipt.contains(sources)) return;
    for (const Json& source : receipt.at(sources))
      if (!hashes.contains(need_string(source, "xxh3", "a source")))
        stale_.insert(part_of(name, clip_part));
  }
  /// Throws Error if parts have older columns.
  void check_fresh() const {
    if (stale_.empty()) return;
    std::string numbers;
    for (const int part : stale_)
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(part);
    fail(
        "vfm-{} read columns that were made again later; do its parts {} again with the same "
        "command, then join again",
        tool_, numbers);
  }

 private:
  int part_of(const std::string& name, int clip_part) const {
    return run_.of_clips ? clip_part % run_.parts : parts::part_of_shard(name, run_.parts);
  }
  /// Returns the marker of the part that has the shard.
  std::string marker_of(const std::string& name, int clip_part) const {
    return io::join_path(parts::part_folder(directory_, tool_, part_of(name, clip_part)),
                         "done.json");
  }

  std::string directory_, tool_;
  parts::RunFile run_;
  io::FirstNames records_;  // name of the shard -> its record
  io::FirstNames failed_;   // file names of inputs with errors
  std::set<int> stale_;
};

/// Notes the columns of a shard's record that were made of older columns.
void check_columns(std::vector<JoinedColumn>& columns, const std::string& name, int clip_part,
                   const Json& record) {
  std::set<std::string> hashes{need_string(record, "xxh3", "the record of '" + name + "'")};
  std::vector<Json> receipts;
  for (const JoinedColumn& column : columns) {
    receipts.push_back(column.receipt_of(record));
    if (!receipts.back().is_null())
      hashes.insert(receipts.back().at("record").at("xxh3").get<std::string>());
  }
  for (std::size_t i = 0; i < columns.size(); ++i)
    columns[i].check_sources(name, clip_part, receipts[i], hashes);
}

/// Returns the name of the unit, such as "joined-0011223344556677", in the name of its index, or
/// of one of its shards without the number. Returns "" for other files.
std::string unit_of(const std::string& file) {
  constexpr std::string_view kJoined = "joined-";
  constexpr std::size_t kDigits = 16;
  std::string_view digits = file;
  if (digits.starts_with(kJoined)) digits.remove_prefix(kJoined.size());
  digits = digits.substr(0, kDigits);
  const bool is_unit = digits.size() == kDigits &&
                       digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_unit ? file.substr(0, static_cast<std::size_t>(digits.data() - file.data()) + kDigits)
                 : std::string();
}

bool is_link(const std::string& path) {
  std::error_code error;
  return !io::is_remote(path) && std::filesystem::is_symlink(path, error);
}

/// Returns the shards of an index of vfm-clip that are as it wrote them. Returns none for other
/// files.
std::vector<std::string> shards_of(const std::string& index) {
  std::vector<std::string> tars;
  try {
    const Json json = parse_json(io::read_file(index), index);
    const std::string kind = need_string(json, "kind", index);
    if ((kind != "clips" && kind != "images" && kind != "joined") ||
        !json.at("settings").is_object())
      return {};
    for (const Json& shard : json.at("shards")) {
      const std::string name = need_string(shard, "name", index);
      if (io::base_name(name) != name) return {};
      const std::string tar = io::join_path(io::dir_name(index), name);
      const auto bytes = static_cast<std::uint64_t>(need_integer(shard, "bytes", index));
      if (is_link(tar) || io::size_of(tar) != bytes) return {};
      tars.push_back(tar);
    }
  } catch (const std::exception&) {
    return {};
  }
  return tars;
}

/// Removes the units of vfm-clip in a subfolder that `wrote` does not have. The hash of a unit
/// begins with the subfolder's name.
std::int64_t prune_folder(const std::string& folder, const io::FirstNames& wrote) {
  std::int64_t count = 0;
  std::vector<std::string> indexes;
  for (const io::FolderEntry& entry : io::entries(folder)) {
    const std::string path = io::join_path(folder, entry.name), unit = unit_of(entry.name);
    const std::string_view hash = std::string_view(unit).substr(unit.rfind('-') + 1);
    if (!unit.empty() && entry.name == unit + ".json" && !entry.folder &&
        hash.starts_with(io::base_name(folder)) && !is_link(path) && !wrote.find(unit))
      indexes.push_back(path);
  }
  for (const std::string& index : indexes) {
    check_stop();
    const std::vector<std::string> tars = shards_of(index);
    if (tars.empty()) continue;
    log_info("'{}' is of no complete part; it and its shards are removed", index);
    for (const std::string& tar : tars) {
      std::vector<std::string> files = shard::column_files(tar), own = shard::shard_files(tar);
      files.insert(files.end(), own.begin() + 1, own.end());  // its receipt is the index
      for (const std::string& file : files)
        io::remove_file(file);
    }
    io::remove_file(index);
    ++count;
  }
  return count;
}

void prune_clips(const std::string& directory) {
  const auto digits = static_cast<std::size_t>(parts::read_list(directory)->digits);
  io::FirstNames wrote(directory);
  std::set<std::string> folders;
  shard::for_each_marker(directory, kClip, [&](const std::string&, const parts::PartMarker& part) {
    for (const parts::PartResults::Output& output : part.results.outputs)
      wrote.put(unit_of(io::base_name(output.path)), {});
  });
  for (const io::FolderEntry& entry : io::entries(directory)) {
    const std::string path = io::join_path(directory, entry.name);
    if (entry.folder && entry.name.size() == digits && !is_link(path) &&
        entry.name.find_first_not_of("0123456789abcdef") == std::string::npos)
      folders.insert(path);
  }
  std::int64_t count = 0;
  for (const std::string& folder : folders)
    count += prune_folder(folder, wrote);
  if (count > 0) log_info("the files of {} are removed", counted(count, "unit"));
}

/// Throws Error if the shard of a record is not there, or has another size.
void check_tar(const std::string& directory, const io::Record& record) {
  const std::string tar = record.path();
  const auto bytes = static_cast<std::uint64_t>(need_integer(record.json, "bytes", record.where));
  if (io::size_of(tar) != bytes)
    fail(
        "'{}' is missing, or is not as its part wrote it; remove the done.json that names it below "
        "'{}', and do this part of vfm-clip again",
        tar, io::join_path(directory, "parts/clip"));
}

/// Writes clips.jsonl and duplicates.jsonl, and then prints the records.
void write_clips(const std::string& directory, const std::vector<std::string>& tools,
                 io::ManifestWriter& manifest) {
  std::vector<JoinedColumn> columns;
  for (const std::string& tool : tools)
    if (tool != kClip) columns.emplace_back(directory, tool);
  const std::string clips_path = io::join_path(directory, "clips.jsonl"),
                    duplicates_path = io::join_path(directory, "duplicates.jsonl");
  io::TextWriter clips(clips_path), duplicates(duplicates_path);
  std::int64_t twins = 0;
  shard::ListedClips listed(directory, directory);
  if (!listed.missing().empty()) fail("{}; nothing is joined", listed.missing());
  listed.on_duplicate([&](const shard::DuplicateSource& one) {
    duplicates.add(
        dump_json({{"source", one.source}, {"first", one.first}, {"source_hash", one.hash}}) +
        "\n");
    ++twins;
  });
  while (auto record = listed.next()) {
    check_stop();
    check_tar(directory, *record);
    shard::complete_shard(*record);
    Json joined = record->json;
    const std::string name = shard::named_in(directory, joined).at("path");
    for (const JoinedColumn& column : columns)
      column.add_to(name, listed.part(), joined);
    check_columns(columns, name, listed.part(), joined);
    clips.add(dump_json(shard::named_in(directory, joined)) + "\n");
  }
  for (const JoinedColumn& column : columns)
    column.check_fresh();
  clips.update();
  if (twins > 0)
    duplicates.update();
  else
    io::remove_file(duplicates_path);
  if (twins > 0)
    log_info("{} the contents of an earlier one",
             twins == 1 ? "a source has" : counted(twins, "source") + " have");
  shard::for_each_part_record(directory, clips_path,
                              [&](const Json& record) { manifest.write(record); });
}

}  // namespace

void join_clips(const std::string& directory, bool prune, io::ManifestWriter& manifest) {
  const std::vector<std::string> tools =
      shard::complete_tools(directory, {kClip, "caption", "embed"});
  const bool listed = std::ranges::find(tools, kClip) != tools.end();
  if (listed) write_clips(directory, tools, manifest);
  for (const std::string& tool : tools)
    shard::join_errors(
        directory, tool,
        io::join_path(directory, tool == kClip ? "errors.jsonl" : tool + "-errors.jsonl"));
  if (!listed && !tools.empty())
    shard::for_each_joined_record(directory, tools.back(),
                                  [&](const Json& record) { manifest.write(record); });
  if (listed && prune) prune_clips(directory);
}

}  // namespace vfm::dataset
