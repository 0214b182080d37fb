// SPDX-License-Identifier: Apache-2.0
#include "generate/files/joined_clips.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "generate/files/contact_sheet.h"
#include "io/file.h"
#include "io/line_reader.h"
#include "io/packed.h"
#include "io/sorter.h"
#include "parts/part_marker.h"
#include "shard/part_output.h"
#include "shard/whole_parts.h"

namespace vfm::generate {
namespace {

constexpr const char* kGenerate = "generate";
constexpr std::size_t kJoinMemory = std::size_t{64} << 20;

/// Reads the next line of places.jsonl.
std::uint64_t next_place(io::LineReader& places) {
  const std::optional<std::string> line = places.next();
  if (!line) fail("it ends too early");
  std::uint64_t place = 0;
  const char* const end = line->data() + line->size();
  const auto read = std::from_chars(line->data(), end, place);
  if (read.ec != std::errc() || read.ptr != end) fail("'{}' is not a number", *line);
  return place;
}

/// Calls `use` with each record of the parts and the number of its prompt.
void for_each_placed_record(
    const std::string& directory,
    const std::function<void(const Json& record, std::uint64_t place)>& use) {
  std::optional<std::string> settings;
  shard::for_each_marker(
      directory, kGenerate, [&](const std::string& part, const parts::PartMarker& marker) {
        const std::string& own = marker.results.versions.at(kSettings);
        if (settings && *settings != own)
          fail("part {} of '{}' has another model or other options than part 0; do it again",
               marker.part, directory);
        settings = own;
        const std::string path = io::join_path(part, kPlaces);
        std::optional<io::LineReader> places;
        shard::read_of_part(
            part, path, [&] { places.emplace(io::File::open_regular(path), "'" + path + "'"); });
        shard::for_each_part_record(
            directory, io::join_path(part, "manifest.jsonl"), [&](const Json& record) {
              std::uint64_t place = 0;
              shard::read_of_part(part, path, [&] { place = next_place(*places); });
              use(record, place);
            });
      });
}

}  // namespace

void join_generated(const std::string& directory, io::ManifestWriter& manifest) {
  shard::complete_tools(directory, {kGenerate});
  io::Sorter records(directory, kJoinMemory), paths(directory, kJoinMemory);
  for_each_placed_record(directory, [&](const Json& record, std::uint64_t place) {
    std::string packed;
    io::put_ordered(packed, place, 8);
    records.add(packed + dump_json(record));
    paths.add(need_string(record, "path", "a record"));
  });
  std::string last;
  io::Sorter::Stream sorted_paths = paths.sorted();
  for (std::string_view path; sorted_paths.next(path); last = path)
    if (path == last)
      fail("two parts made '{}'; give one of the prompts another name, and do the parts again",
           path);
  shard::join_errors(directory, kGenerate, io::join_path(directory, "errors.jsonl"));
  std::vector<std::string> clips;
  const auto each_record = [&](const std::function<void(const Json&)>& use) {
    io::Sorter::Stream sorted = records.sorted();
    std::optional<std::uint64_t> before;
    for (std::string_view packed; sorted.next(packed);) {
      const std::uint64_t place = io::take_ordered(packed, 8);
      if (before == place)
        fail("two parts have prompt {}, as they were given other prompts; do the parts again",
             place + 1);
      before = place;
      use(parse_json(packed, "a temporary file"));
    }
  };
  each_record([&](const Json& record) {
    if (clips.size() < kShownClips && record.at("kind") == "clip")
      clips.push_back(record.at("path").get<std::string>());
  });
  if (!clips.empty()) write_contact_sheet(io::join_path(directory, "contact-sheet.png"), clips);
  each_record([&](const Json& record) { manifest.write(record); });
}

}  // namespace vfm::generate
