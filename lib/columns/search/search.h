// vfm-embed search: finds samples of embedded shards nearest to a text, video or picture.
//
// A video or picture is encoded by the encoder of video.npy and compared by cosine. If there are no
// captions, a text is encoded and compared in the same way, by CLIP or SigLIP. With captions, each
// word of the query is compared with the nearest word of the caption (cosine of token vectors, as
// in Khattab and Zaharia, "ColBERT", 2020). The score is the mean over the query's words, weighted
// by their rarity among the captions searched (idf): 1 is a perfect match, 0 is chance. Every
// vector is read. Memory: about 100 bytes a sample, and its caption.
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
  std::vector<std::string> inputs;  ///< forms: shard/shard_input.h; columns beside them are found
  shard::ReadLimits limits;
  std::string query;                        ///< an existing media file, or text
  std::optional<std::string> query_prompt;  ///< put before a text; empty: the encoder's prompt
  std::size_t top = 10;
  std::string index;   ///< for search_index() (columns/search/index_search.h), instead of `inputs`
  bool exact = false;  ///< with `index`: compare all its vectors
  /// If null, software decodes, with the same result.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Writes the matches to standard output, best first, ties by key:
/// {"kind":"match","rank":1,"score":…,"key":…,"path":SHARD,"caption":…,"source":…,"begin":…,
/// "end":…}, without unknown fields. Skips shards that cannot be searched, with a warning, and
/// returns their number. Throws Error{usage} if the query has no words or its media file is
/// missing.
long search(const SearchOptions& options, share::Slots& slots, Progress& progress,
            io::ManifestWriter& manifest);

}  // namespace vfm::columns
