// Which of several stages a node does a part of next: unlike nodes share out the stages of a work.
//
// A stage is the work of one program on the parts of a list, such as the captions. A node that can
// do several stages takes a part of the stage with the largest product of
//   - the number of parts that wait: their input is there, and nobody works at them;
//   - the rate of this kind of node, relative to the best kind for the stage. Both are means of the
//     last 16 parts that the kind did. A kind that has done no part of the stage counts as the
//     best, so that it tries it.
// So the stages wait equally long, as in the rule of Tassiulas and Ephremides ("Stability
// properties of constrained queueing systems", 1992), and a node does what its kind does best.
// Two exceptions keep slow kinds from holding up the end:
//   - While a node of a kind that has not done the stage works at its first part, other nodes of
//     this kind take the stage only if no other has parts that wait.
//   - If the nodes of the best kind will have done all parts that wait before this node would have
//     done one, it leaves them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vfm::parts {

/// What the nodes of one kind do at a stage.
struct KindWork {
  int working = 0;     ///< Processes that work at parts.
  double seconds = 0;  ///< Mean time of the last parts, or 0 if the kind has done none.
};
/// The number of parts of which KindWork::seconds is the mean.
inline constexpr std::size_t kRecentParts = 16;

struct ListStage {
  std::string tool;  ///< Such as "caption".
  int parts = 0, done = 0, working = 0;
  int ready = 0;  ///< Parts that wait.
  std::map<std::string, KindWork> kinds;
};

/// Returns the number of the stage for a node of this kind, or nullopt if it has none to do. Pure.
std::optional<std::size_t> choose_stage(const std::vector<ListStage>& stages,
                                        const std::string& kind);

}  // namespace vfm::parts
