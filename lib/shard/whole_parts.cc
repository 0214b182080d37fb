// SPDX-License-Identifier: Apache-2.0
#include "shard/whole_parts.h"

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/json.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/line_reader.h"
#include "io/packed.h"
#include "io/places.h"
#include "io/sorter.h"
#include "io/text_writer.h"
#include "parts/part_inputs.h"
#include "parts/part_run.h"
#include "shard/part_output.h"

namespace vfm::shard {
namespace {

/// Records of joined videos, and errors, have some MiB.
constexpr std::size_t kJoinMemory = std::size_t{64} << 20;

void for_each_error_line(
    const std::string& directory, const std::string& tool,
    const std::function<void(const std::string& line, const std::string& path)>& use) {
  for_each_marker(directory, tool, [&](const std::string& folder, const parts::PartMarker&) {
    const std::string path = io::join_path(folder, "errors.jsonl");
    if (!io::file_exists(path)) return;
    io::LineReader lines(io::File::open_read(path), "'" + path + "'");
    while (const auto line = lines.next())
      use(*line, path);
  });
}

}  // namespace

std::vector<std::string> complete_tools(const std::string& directory,
                                        const std::vector<std::string>& tools) {
  std::vector<std::string> there;
  std::string missing;
  for (const std::string& tool : tools) {
    const auto inputs = parts::part_inputs(directory, tool);
    if (!inputs) continue;
    there.push_back(tool);
    if (!inputs->missing.empty())
      missing += fmt::format("{}of {}, {}", missing.empty() ? "" : "; ", parts::command_of(tool),
                             inputs->message(directory));
  }
  if (!missing.empty()) fail("{}; nothing is joined", missing);
  return there;
}

void for_each_marker(
    const std::string& directory, const std::string& tool,
    const std::function<void(const std::string& folder, const parts::PartMarker& marker)>& use) {
  const int parts = parts::count_parts(directory, tool).value_or(0);
  for (int part = 0; part < parts; ++part)
    use(parts::part_folder(directory, tool, part), parts::need_marker(directory, tool, part));
}

void read_of_part(const std::string& folder, const std::string& path,
                  const std::function<void()>& read) {
  const auto refuse = [&](const char* why) {
    fail("'{}' is not as its part wrote it ({}); remove '{}', and do this part again", path, why,
         io::join_path(folder, "done.json"));
  };
  try {
    read();
  } catch (const Error& error) {
    refuse(error.what());
  } catch (const Json::exception& error) {
    refuse(error.what());
  }
}

void for_each_part_error(const std::string& directory, const std::string& tool,
                         const std::function<void(const Json& error)>& use) {
  for_each_error_line(directory, tool, [&](const std::string& line, const std::string& path) {
    Json error;
    read_of_part(io::dir_name(path), path, [&] {
      error = parse_json(line, "an error");
      need_string(error, "input", "an error");
    });
    use(error);
  });
}

void join_errors(const std::string& directory, const std::string& tool, const std::string& path) {
  io::Sorter lines(directory, kJoinMemory);
  for_each_error_line(directory, tool,
                      [&](const std::string& line, const std::string&) { lines.add(line); });
  if (lines.records() == 0) {
    io::remove_file(path);
    return;
  }
  io::TextWriter writer(path);
  io::Sorter::Stream sorted = lines.sorted();
  std::string last;
  for (std::string_view line; sorted.next(line);) {
    if (line == last) continue;
    last = line;
    writer.add(line);
    writer.add("\n");
  }
  writer.update();
}

void for_each_joined_record(const std::string& directory, const std::string& tool,
                            const std::function<void(const Json& record)>& use) {
  io::Sorter records(directory, kJoinMemory);
  for_each_marker(directory, tool, [&](const std::string& folder, const parts::PartMarker&) {
    for_each_part_record(directory, io::join_path(folder, "manifest.jsonl"), [&](Json& record) {
      std::string packed;
      io::put_ordered_text(packed, record.at("path").get<std::string>());
      records.add(packed + dump_json(record));
    });
  });
  io::Sorter::Stream sorted = records.sorted();
  for (std::string_view packed; sorted.next(packed);) {
    io::take_ordered_text(packed);
    use(parse_json(packed, "a temporary file"));
  }
}

Json named_in(const std::string& directory, const Json& record) {
  Json named = record;
  const auto rename = [&](Json& name) { name = io::name_from(directory, name.get<std::string>()); };
  rename(named.at("path"));
  if (const auto columns = named.find("columns"); columns != named.end())
    for (Json& column : *columns)
      rename(column);
  return named;
}

}  // namespace vfm::shard
