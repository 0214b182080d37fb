// vfm-embed search: the samples of embedded shards that are nearest to a text, a video or a
// picture.
//
// A video or picture file is compared with video.npy, after encoding by the same encoder, by
// cosine. A text is compared with vectors of clips by CLIP or SigLIP if there are no captions; else
// word by word: each word of the query with the nearest word of the sample's caption (cosine of
// token vectors, as in Khattab and Zaharia, "ColBERT", 2020), and the mean of these, weighted by
// how rare the word is among the captions searched (idf). 1 is a perfect match; 0 is chance.
// Exhaustive: every vector is read. Memory: about 100 bytes a sample and its caption.
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
  std::vector<std::string> inputs;  ///< as shard/shard_input.h takes them; columns found beside
  shard::ReadLimits limits;
  std::string query;                        ///< an existing media file, else text
  std::optional<std::string> query_prompt;  ///< before a text, instead of the shards' own
  std::size_t top = 10;
  std::string index;   ///< for search_index() (columns/search/index_search.h): instead of `inputs`
  bool exact = false;  ///< there: compare all vectors of the index
  /// Decodes a video to search for, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Writes the matches to standard output, best first, ties by key:
/// {"kind":"match","rank":1,"score":…,"key":…,"path":SHARD,"caption":…,"source":…,"begin":…,
/// "end":…}, unknown fields left out.
/// Shards that cannot be searched are warned of and counted; returns their number. Throws
/// Error{usage} for a query without words or a missing media file.
long search(const SearchOptions& options, share::Slots& slots, Progress& progress,
            io::ManifestWriter& manifest);

}  // namespace vfm::columns
