// SPDX-License-Identifier: Apache-2.0
#include "pack/shard_parts.h"

#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "io/places.h"

namespace vfm::pack {

void ShardParts::add(const ClipShard& shard, const std::string& split, ClipLatents& clip) {
  Part& part = parts_[split];
  ++part.notes.clips;
  part.notes.frames.add(clip.frames);
  for (LatentOutput& latent : clip.windows)
    put(part, shard, split, latent);
}

void ShardParts::put(Part& part, const ClipShard& shard, const std::string& split,
                     LatentOutput& latent) {
  ShardNotes& notes = part.notes;
  if (!part.writer) {
    const std::string tar = folder_.tar_path(split, shard.name);
    folder_.begin_shard(tar, shard.path);
    part.writer.emplace(tar);
  }
  part.writer->add(latent.sample);
  latent.entry.shard = shard.name;
  latent.entry.row = part.writer->samples() - 1;
  notes.entries.push_back(latent.entry);
  notes.sums.add(latent.sums);
  if (latent.text_encoder->is_null())
    ++notes.without_text;
  else if (notes.text_encoder->is_null())
    notes.text_encoder = latent.text_encoder;
}

std::map<std::string, FinishedPart> ShardParts::write(const ClipShard& shard, const Json& made_from,
                                                      std::vector<io::Fault> errors,
                                                      std::optional<std::uint64_t> max_member) {
  std::map<std::string, FinishedPart> finished;
  if (parts_.empty()) {
    if (folder_.has(shard.split, shard.name)) return finished;  // another shard has the name
    folder_.begin_shard(folder_.tar_path(shard.split, shard.name), shard.path);
    parts_[shard.split];
  }
  std::vector<std::string> splits;
  for (const auto& [split, part] : parts_)
    splits.push_back(split);
  for (auto& [split, part] : parts_) {
    const std::string tar = folder_.tar_path(split, shard.name);
    ShardNotes& notes = part.notes;
    notes.input = io::name_from(folder_.directory(), shard.path);
    notes.made_from = made_from;
    notes.splits = splits;
    notes.max_member = max_member;
    if (split == splits.front()) notes.errors = std::move(errors);
    if (part.writer) {
      notes.record = part.writer->finish();
      notes.record->erase("path");  // the folder may be moved
    }
    folder_.write_notes(tar, notes);
    log_info("'{}': {} samples, {} errors", tar, notes.entries.size(), notes.errors.size());
    finished.emplace(split, FinishedPart(notes));
    notes = {};
  }
  parts_.clear();
  return finished;
}

}  // namespace vfm::pack
