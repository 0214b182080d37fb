// The page of vfm-caption --report. The page plays the first captioned clips of the shards, and
// shows the sources and lengths of all captions. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/manifest.h"
#include "report/html.h"

namespace vfm::columns {

class CaptionReport {
 public:
  /// If `path` is empty, no page is written.
  explicit CaptionReport(std::string path) : path_(std::move(path)) {}

  /// Adds a shard. Throws Error if the caption column cannot be read.
  void add(const io::Record& record);
  /// Writes the page. `incomplete` is the reason why the page is incomplete, or empty.
  void write(const std::string& incomplete) const;

 private:
  void add_figures(const io::Record& record);

  std::string path_, of_;                // of_ is the folder of the first shard
  std::map<std::string, long> sources_;  // numbers of samples by caption_source
  std::vector<double> words_;            // numbers of words of the captions
  std::int64_t cut_ = 0;                 // number of texts cut at the token limit
  std::vector<report::Figure> figures_;
};

}  // namespace vfm::columns
