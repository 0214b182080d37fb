// vfm-pack's --report: what the tokenizer keeps of the pictures, as a page to look at.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "data/clip_pixels.h"
#include "models/tokenizer.h"
#include "pack/feed.h"

namespace vfm::pack {

struct PackReportOptions {
  std::string directory;  ///< of the latents
  std::string path;       ///< of the page
  data::ClipOptions clip;
};

/// Original and decoded frames side by side, a histogram of their PSNR over samples spread evenly
/// over the folder, a histogram of token counts, the channel statistics. Throws Error.
void write_pack_report(const PackReportOptions& options, const models::VideoTokenizer& tokenizer,
                       const std::vector<ClipShard>& shards);

}  // namespace vfm::pack
