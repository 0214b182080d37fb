// Reads and writes SPLIT/X.json, the notes on a finished shard of latents. Thread-safety: pure
// functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/held_bytes.h"
#include "base/held_json.h"
#include "base/json_fwd.h"
#include "data/channel_sums.h"
#include "data/clip_size.h"
#include "data/entry.h"
#include "io/error_log.h"

namespace vfm::pack {

using data::ChannelSums;
using vfm::held_bytes;

/// to_json() converts counts to {"read":…,"latents":…,"rate":…,"windows":…,"remainder":…}.
/// parse_frame_count() converts the JSON back. Both functions throw Error.
Json to_json(const data::FrameCount& frames);
data::FrameCount parse_frame_count(const Json& json);

/// The contents of SPLIT/X.json: notes on one split's part of a finished shard.
struct ShardNotes {
  std::string input;   ///< Path of the source shard, relative to the folder.
  HeldJson made_from;  ///< Settings, the split, and the hashes of the source tars.
  /// The names of the splits of all parts of the shard, in order. The errors are in the notes of
  /// the first split.
  std::vector<std::string> splits;
  /// Size limit of a member in bytes, set if samples were refused.
  std::optional<std::uint64_t> max_member;
  HeldJson record;  ///< Record of the tar, or null without samples.
  std::int64_t clips = 0;
  data::FrameCount frames;
  std::vector<data::Entry> entries;
  ChannelSums sums;
  HeldJson text_encoder;  ///< Text encoder, or null if no sample has text.
  std::int64_t without_text = 0;
  std::vector<io::Fault> errors;
};

/// notes_text() converts notes to the text of the file, and parse_notes() converts the JSON back.
/// `path` is used in messages. Both functions throw Error, or exceptions of the JSON library, for
/// invalid notes.
std::string notes_text(const ShardNotes& notes);
ShardNotes parse_notes(const Json& json, const std::string& path, int channels);

/// The facts of a part that stay in memory until the end of the run.
struct TarFacts {
  std::int64_t samples = 0, without_text = 0;
  std::int64_t tokens = 0;  ///< Number of tokens for patches of 1 x 2 x 2.
  std::uint64_t bytes = 0;  ///< Size of the tar.
  std::int64_t clips = 0;
  data::FrameCount frames;
  std::array<char, 32> xxh3{};  ///< Hash of the tar.
};
/// Returns the facts of `notes`. Throws Error if the record of the tar lacks a field.
TarFacts facts_of(const ShardNotes& notes);

/// The data of a finished part that are used after the notes are written.
struct FinishedPart {
  explicit FinishedPart(const ShardNotes& notes);
  TarFacts facts;
  HeldJson record, text_encoder;
  std::vector<io::Fault> errors;
  std::string keys;  ///< Keys of the samples, concatenated.
  std::vector<std::size_t> key_ends;
};
/// Returns the memory of `part` in bytes (base/held_bytes.h).
std::size_t held_bytes(const FinishedPart& part);

}  // namespace vfm::pack
