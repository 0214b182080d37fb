// vfm-caption --report: a page that plays the first clips of the shards with their captions, and
// shows the captions' sources and lengths. Thread-safety: one thread at a time.
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
  /// An empty path makes a report that does nothing.
  explicit CaptionReport(std::string path) : path_(std::move(path)) {}

  /// Adds a shard with its caption column. Throws Error if that column cannot be read.
  void add(const io::Record& record);
  /// Writes the page. `incomplete`: the reason why the page lacks something, or empty if it is
  /// complete.
  void write(const std::string& incomplete) const;

 private:
  void add_figures(const io::Record& record);

  std::string path_, of_;                // of_: the folder of the first shard
  std::map<std::string, long> sources_;  // caption_source -> samples
  std::vector<double> words_;            // in each caption
  std::int64_t cut_ = 0;                 // texts cut at the token limit
  std::vector<report::Figure> figures_;
};

}  // namespace vfm::columns
