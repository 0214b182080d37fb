// How far a program is ahead of the programs that follow it: the bytes of its finished parts that
// one of them could do, and has not done yet. A program that does several parts as one could do
// them when all of them are finished.
//
// A program follows if it has parts in the same folder and shares out those of vfm-clip
// (parts/run_file.h). Each of them follows vfm-clip, and those follow another program that have it
// in "after". Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "parts/parts_look.h"
#include "parts/run_file.h"

namespace vfm::parts {

class PartsAhead {
 public:
  /// The parts of `tool`, such as "clip", in a folder.
  PartsAhead(std::string directory, std::string tool)
      : directory_(std::move(directory)), tool_(std::move(tool)) {}

  /// Looks at the markers that it has not seen before. Returns 0 if no program follows.
  std::uint64_t bytes();

 private:
  std::map<std::string, RunFile> followers() const;
  bool is_done(const std::string& tool, int part);
  bool waits_for(const std::string& tool, const RunFile& run, const std::vector<int>& clip_parts);
  std::uint64_t bytes_of(int part);

  std::string directory_, tool_;
  int listed_ = 0;  // parts of vfm-clip
  RunFile own_;     // of `tool`
  std::map<std::string, PartMarks> marks_;
  std::map<int, std::uint64_t> bytes_;  // of finished parts of `tool`
};

}  // namespace vfm::parts
