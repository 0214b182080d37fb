// What is known of a finished shard of latents: SPLIT/X.json, its receipt.
// Thread-safety: pure functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "data/clip_size.h"
#include "data/entry.h"
#include "io/error_log.h"
#include "pack/sample.h"

namespace vfm::pack {

/// Of a finished shard, or of its part of one split: the contents of SPLIT/X.json.
struct ShardNotes {
  std::string input;                ///< the shard that it was made of, named from the folder
  HeldJson made_from;               ///< settings, split, hashes of the tars it was made from
  std::vector<std::string> splits;  ///< of all its parts, in order; its errors are in the first
  std::optional<std::uint64_t> max_member;  ///< the limit, if samples were refused, else nothing
  HeldJson record;                   ///< of the tar; null if none of its samples could be packed
  std::int64_t clips = 0;            ///< that its samples are windows of
  data::FrameCount frames;           ///< of these
  std::vector<data::Entry> entries;  ///< in the order of the tar
  ChannelSums sums;
  HeldJson text_encoder;          ///< null if no sample has text
  std::int64_t without_text = 0;  ///< samples
  std::vector<io::Fault> errors;
};

/// The file, and back. Throws Error, or what the JSON library does, for what is no such notes;
/// `path` stands in messages.
std::string notes_text(const ShardNotes& notes);
ShardNotes parse_notes(const Json& json, const std::string& path, int channels);

/// What of the notes stays in memory to the end of a run.
struct PartFacts {
  std::int64_t samples = 0, without_text = 0;
  std::int64_t tokens = 0;  ///< of patches of 1 x 2 x 2
  std::uint64_t bytes = 0;  ///< of the tar
  std::int64_t clips = 0;
  data::FrameCount frames;
  std::array<char, 32> xxh3{};  ///< of the tar
};
/// Throws Error where the record of the tar lacks something.
PartFacts facts_of(const ShardNotes& notes);

/// Of a finished shard, or its part of one split, what is still to be done with it.
struct FinishedPart {
  explicit FinishedPart(const ShardNotes& notes);
  PartFacts facts;
  HeldJson record, text_encoder;
  std::vector<io::Fault> errors;
  std::string keys;  ///< of its samples, one after the other
  std::vector<std::size_t> key_ends;
};
/// As base/held_bytes.h has it.
std::size_t held_bytes(const FinishedPart& part);

}  // namespace vfm::pack
