// The parts of earlier programs that a part of a work needs, when a folder of clips is the input.
//
// A part needs the parts of vfm-clip whose shards it has, and of each program in run.json's "after"
// (parts/run_file.h) the parts with the same shards. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parts/parts_look.h"
#include "parts/run_file.h"

namespace vfm::parts {

class NeededParts {
 public:
  /// `clips` is the folder of clips, and `run` the work in need. With `all_clips`, each part needs
  /// all parts of vfm-clip.
  NeededParts(std::string clips, RunFile run, bool all_clips);

  /// Returns true if all parts that a part of the work needs are done.
  bool are_done(int part);
  /// Returns a clause that names the parts which these parts of the work need and which are not
  /// done, such as "of vfm-clip, 2 of the 6 parts of 'out' are not complete: 1, 4".
  std::string missing(const std::vector<int>& parts);
  /// Looks at all parts that are needed by these parts of the work, and are not done. Returns true
  /// if since the last call one of them is done, or its process gave a sign of life. The first call
  /// returns false.
  bool have_moved(const std::vector<int>& parts);

 private:
  using Numbers = std::map<std::string, std::set<int>>;  // by program
  bool is_done(const std::string& tool, int number);
  /// Returns what the part needs and what is not done. A program that has no parts yet has an
  /// empty set. With `first`, returns only the first that is found.
  Numbers open(int part, bool first);
  Numbers open(const std::vector<int>& parts);
  /// Returns the run.json of a program, or null as long as it has none.
  const RunFile* find_run(const std::string& tool);

  std::string clips_;
  RunFile run_;
  bool all_clips_;
  int listed_, first_open_ = 0;  // of vfm-clip; all parts before first_open_ are done
  std::map<std::string, RunFile> runs_;
  std::map<std::string, PartMarks> marks_;
  std::map<std::string, std::optional<LeaseName>> leases_;  // by folder
  std::set<std::pair<std::string, int>> done_;
  std::size_t done_before_ = 0;
};

}  // namespace vfm::parts
