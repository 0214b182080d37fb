// Reads and writes the notes on a finished shard of latents, SPLIT/X.json.
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

/// The notes on a finished shard's part in one split: the contents of SPLIT/X.json.
struct ShardNotes {
  std::string input;   ///< path of the source shard, relative to the folder
  HeldJson made_from;  ///< settings, split, hashes of the source tars
  /// The splits of all the shard's parts, in order. The first part has the errors.
  std::vector<std::string> splits;
  std::optional<std::uint64_t> max_member;  ///< the limit if samples were refused
  HeldJson record;                          ///< the tar's record; null: no sample could be packed
  std::int64_t clips = 0;                   ///< number of clips, of which samples are windows
  data::FrameCount frames;                  ///< these clips' frames
  std::vector<data::Entry> entries;         ///< entries in the tar's order
  ChannelSums sums;
  HeldJson text_encoder;          ///< null if no sample has text
  std::int64_t without_text = 0;  ///< samples without text
  std::vector<io::Fault> errors;
};

/// Both functions convert notes, to the file's text, and back from its JSON. `path` is used in
/// messages. Both throw Error, or exceptions of the JSON library, for invalid notes.
std::string notes_text(const ShardNotes& notes);
ShardNotes parse_notes(const Json& json, const std::string& path, int channels);

/// The part of the notes that is in memory until the end of a run.
struct PartFacts {
  std::int64_t samples = 0, without_text = 0;
  std::int64_t tokens = 0;  ///< tokens for patches of 1 x 2 x 2
  std::uint64_t bytes = 0;  ///< the tar's size
  std::int64_t clips = 0;
  data::FrameCount frames;
  std::array<char, 32> xxh3{};  ///< the tar's hash
};
/// Returns the facts of `notes`. Throws Error if the tar's record lacks a field.
PartFacts facts_of(const ShardNotes& notes);

/// Data of a finished part that are needed after its notes are written.
struct FinishedPart {
  explicit FinishedPart(const ShardNotes& notes);
  PartFacts facts;
  HeldJson record, text_encoder;
  std::vector<io::Fault> errors;
  std::string keys;  ///< its samples' keys, concatenated
  std::vector<std::size_t> key_ends;
};
/// See base/held_bytes.h.
std::size_t held_bytes(const FinishedPart& part);

}  // namespace vfm::pack
