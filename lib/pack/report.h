// The HTML page of vfm-pack --report, which compares pictures before and after the tokenizer.
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

/// A compact map from each shard of latents to its source tars. Thread-safety: one thread at a
/// time.
class ClipTars {
 public:
  /// Records that DIR/SPLIT/name is made from `shard`.
  void add(const std::string& split, const ClipShard& shard);
  /// Returns the source tars of each shard in `wanted`. Shards are given as "SPLIT/name".
  std::map<std::string, std::vector<std::string>> find(const std::set<std::string>& wanted) const;

 private:
  std::string lines_;
};

struct PackReportOptions {
  std::string directory;
  std::string path;
  data::PixelOptions clip;
};

/// Writes the page, which shows original and decoded frames side by side, histograms of PSNR and of
/// token counts, and channel statistics. PSNR is measured for evenly spaced samples of the folder.
/// Throws Error.
void write_pack_report(const PackReportOptions& options, const models::VideoTokenizer& tokenizer,
                       const ClipTars& tars);

}  // namespace vfm::pack
