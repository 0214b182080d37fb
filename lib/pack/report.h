// vfm-pack's --report: what the tokenizer keeps of the pictures, as a page to look at.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/clip_pixels.h"
#include "models/tokenizer.h"
#include "pack/feed.h"

namespace vfm::pack {

/// Of which tars each shard of latents was made, as little as that can be in memory. Thread-safety:
/// one thread at a time.
class ClipTars {
 public:
  /// DIR/SPLIT/name is made of the shard.
  void add(const std::string& split, const ClipShard& shard);
  /// "SPLIT/name" -> the tars, of those that are wanted.
  std::map<std::string, std::vector<std::string>> find(const std::set<std::string>& wanted) const;

 private:
  std::string lines_;  // of JSON
};

struct PackReportOptions {
  std::string directory;  ///< of the latents
  std::string path;       ///< of the page
  data::ClipOptions clip;
};

/// Original and decoded frames side by side, a histogram of their PSNR over samples spread evenly
/// over the folder, a histogram of token counts, the channel statistics. Throws Error.
void write_pack_report(const PackReportOptions& options, const models::VideoTokenizer& tokenizer,
                       const ClipTars& tars);

}  // namespace vfm::pack
