// SPDX-License-Identifier: Apache-2.0
#include "pack/whole_latents.h"

#include <optional>
#include <string_view>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/file.h"
#include "io/first_names.h"
#include "pack/folder.h"
#include "shard/receipt.h"
#include "shard/whole_parts.h"

namespace vfm::pack {
namespace {

constexpr const char* kPack = "pack";
constexpr std::string_view kNotesEnd = ".json";

Json read_json(const std::string& path) {
  return parse_json(io::read_file(path), "'" + path + "'");
}

/// Adds the shards of latents that the parts wrote. A part names the notes of each.
void add_shards(PackFolder& folder, int channels) {
  shard::for_each_marker(
      folder.directory(), kPack, [&](const std::string& part, const parts::PartMarker& marker) {
        for (const parts::PartResults::Output& output : marker.results.outputs) {
          if (!output.path.ends_with(kNotesEnd)) continue;
          check_stop();
          const std::string notes = io::join_path(folder.directory(), output.path);
          const std::string tar = notes.substr(0, notes.size() - kNotesEnd.size()) + ".tar";
          TarFacts facts;
          shard::read_of_part(part, notes, [&] {
            const ShardNotes found = parse_notes(read_json(notes), notes, channels);
            if (!found.record->is_null()) shard::check_written(tar, found.record);
            facts = facts_of(found);
          });
          folder.add(io::base_name(io::dir_name(tar)), io::base_name(tar), facts);
        }
      });
}

}  // namespace

void join_latents(const std::string& directory, bool prune, io::ManifestWriter& manifest) {
  shard::complete_tools(directory, {kPack});
  std::optional<LatentTokenizer> tokenizer;
  shard::for_each_marker(directory, kPack, [&](const std::string& part, const parts::PartMarker&) {
    if (tokenizer) return;
    const std::string path = io::join_path(part, kTokenizerFile);
    shard::read_of_part(part, path, [&] {
      tokenizer = LatentTokenizer::from_json(read_json(path), "'" + path + "'");
    });
  });
  PackFolder folder(directory, read_json(io::join_path(directory, "pack.json")),
                    tokenizer->channels, false);
  add_shards(folder, tokenizer->channels);
  if (prune) folder.goes_on();
  io::FirstNames keys(directory);
  folder.finish(*tokenizer, &keys);
  shard::join_errors(directory, kPack, io::join_path(directory, "errors.jsonl"));
  shard::for_each_joined_record(directory, kPack,
                                [&](const Json& record) { manifest.write(record); });
  manifest.tell("frames", to_json(folder.frames()));
  if (const auto count = folder.without_text(); count > 0)
    log_warning("{} will be trained without text, as they have no embeddings; vfm-embed makes them",
                counted(static_cast<std::int64_t>(count), "sample"));
}

}  // namespace vfm::pack
