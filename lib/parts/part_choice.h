// Which part of a work a command does: the value of --part.
//
// A work of N parts is done by any number of commands, on any number of machines. Parts are
// numbered from 0. "3/16" is the fourth of 16. Slurm, Kubernetes, HyperQueue or GNU parallel start
// the commands, and vfm only reads the number that they give.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace vfm::parts {

/// The highest number of parts of a work.
inline constexpr int kMostParts = 10'000'000;

/// A value of --part.
struct PartChoice {
  enum class Kind {
    whole,      ///< No --part: the command does the whole work, without parts.
    fixed,      ///< One part.
    automatic,  ///< One part after the other, each claimed by a lease, until all are done.
    next,       ///< One part without a marker, claimed by a lease.
  };
  Kind kind = Kind::whole;
  std::optional<int> part;   ///< Number of the part, for Kind::fixed.
  std::optional<int> parts;  ///< Number of parts, if --part named it.
  /// Seconds between two beats of a lease (part_lease.h), from VFM_LEASE_SECONDS in tests.
  std::optional<double> lease_seconds;
  /// What the markers call this node, from VFM_NODE_KIND: nodes of one kind do a part equally fast.
  std::string node_kind;
  /// Seconds for which a process waits for parts of earlier programs that do not move (--follow).
  /// Without, it does not wait.
  std::optional<double> follow;
  /// Bytes of finished parts that the programs which follow may not have done yet (--waiting).
  std::optional<std::uint64_t> waiting;

  bool whole() const { return kind == Kind::whole; }
};

/// Returns the value of a variable of the environment, or "" if it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The longest node_kind.
inline constexpr std::size_t kLongestKind = 64;
/// Returns the value of VFM_NODE_KIND, or "" if it is not set. Throws Error{usage} if it is too
/// long, or has other characters than letters, digits, '.', '-', '_' and '+'.
std::string node_kind_of(const Environment& environment);

/// Parses "I/N", "env", "auto" or "next", or one of these words and "/N". "env" takes the number of
/// the part from the first of these variables that is set: VFM_PART; SLURM_ARRAY_TASK_ID, plus
/// VFM_PART_OFFSET if that is set; JOB_COMPLETION_INDEX; HQ_TASK_ID. "/N" also says the number of
/// parts, which is never read from the environment. Takes node_kind_of() too. Throws Error{usage}.
PartChoice parse_part(std::string_view text, const Environment& environment);

}  // namespace vfm::parts
