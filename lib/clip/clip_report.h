// The HTML page of vfm-clip --report, with a time line of each video's shots and the middle frame
// of each clip.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "io/scratch_file.h"
#include "report/html.h"
#include "shard/sample.h"

namespace vfm::clip {

/// Data are read from finished outputs, so a resumed run also writes the whole page. Thread-safety:
/// one thread at a time.
class ClipReport {
 public:
  /// Sets the path of the page. If `path` is empty, all functions do nothing.
  ClipReport(std::string path, std::string directory);
  /// Adds a finished source, given the text of its DIR/NAME.json.
  void add(const std::string& json);
  /// Writes the page. `incomplete` is the reason for missing data, or empty if no data are missing.
  void write(const std::string& incomplete);

 private:
  /// hash of the source -> begin of the earliest clip
  using FirstClips = std::map<std::string, double>;
  FirstClips add_clips(const Json& finished);
  void add_clip(const shard::Sample& sample, const Json& facts, std::size_t& shown);

  std::string path_, directory_;
  std::vector<std::string> lines_;
  std::vector<std::string> line_captions_;
  std::vector<report::Figure> figures_;
  static constexpr std::size_t kMeasures = 3;  // seconds, motion, brightness
  std::array<report::AxisRange, kMeasures> ranges_;
  io::ScratchFile measures_;
  std::size_t videos_ = 0, clips_ = 0;
};

}  // namespace vfm::clip
