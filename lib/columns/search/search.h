// vfm-embed search: finds the samples of shards with an embed column that are nearest to a text,
// video or picture.
//
// If the query is a video or picture, it is encoded by the encoder of video.npy, and compared with
// clips by cosine. In shards without captions, a text is encoded by CLIP or SigLIP, and also
// compared with clips by cosine. In shards with captions, each word of the query is compared with
// the nearest word of the caption, by the cosine of token vectors (Khattab and Zaharia, "ColBERT",
// 2020). The score is the mean over the query's words, weighted by their rarity among the captions
// searched (idf). A score of 1 is a perfect match, and 0 is chance. A search reads the vectors of
// all samples. For each sample it needs memory for the caption, and about 100 bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "io/manifest.h"
#include "media/decode/hardware.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::columns {

struct SearchOptions {
  /// Inputs in the forms of shard/shard_input.h. Columns beside the shards are found.
  std::vector<std::string> inputs;
  shard::ReadLimits limits;
  std::string query;                        ///< Path of a media file, or a text.
  std::optional<std::string> query_prompt;  ///< Prompt; if unset, the encoder's prompt is used.
  std::size_t top = 10;
  std::string index;   ///< Index for search_index(), in place of `inputs`.
  bool exact = false;  ///< If true, the query is compared with all vectors of `index`.
  /// Hardware decoder, or null for decoding in software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Writes the matches to standard output by falling score, then by key:
/// {"kind":"match","rank":1,"score":…,"key":…,"path":SHARD,"caption":…,"source":…,"begin":…,
/// "end":…}. Fields of unknown value are left out. Skips shards that cannot be searched, with a
/// warning, and returns the number of skipped shards. Throws Error{usage} if the query has no
/// words, or is a media file that is missing.
long search(const SearchOptions& options, share::Slots& slots, Progress& progress,
            io::ManifestWriter& manifest);

}  // namespace vfm::columns
