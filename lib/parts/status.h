// How far the parts of a tool's work are: the verb `status`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::parts {

struct PartState {
  enum class Kind {
    done,     ///< The part has a marker.
    working,  ///< A process has the lease.
    failed,   ///< A process gave the part up after a fault that may pass.
    missing,  ///< Nobody works at the part.
  };
  int part = 0;
  Kind kind = Kind::missing;
  std::string host;           ///< Host that did the part, works at it, or gave it up.
  long pid = 0;               ///< Process that works at the part.
  std::string node_kind;      ///< PartChoice::node_kind of that process.
  std::string begun, ended;   ///< Times in UTC.
  double seconds = 0;         ///< Time that a part took that is done.
  std::string why;            ///< Why the part failed.
  std::uint64_t records = 0;  ///< Records of a part that is done.
  std::map<std::string, std::uint64_t> errors;  ///< Errors of its inputs, by cause.
};

/// What one host did, or the nodes of one kind.
struct HostState {
  int done = 0, working = 0;
  double seconds = 0;  ///< Sum of the times of its parts.
};

/// The parts of one tool in one folder.
struct PartsStatus {
  std::string tool;  ///< Such as "vfm-clip".
  std::vector<PartState> parts;
  std::map<std::string, HostState> hosts;
  std::map<std::string, HostState> kinds;  ///< By PartState::node_kind.

  int count(PartState::Kind kind) const;
  /// Returns the parts that a new job has to do: those that are missing or failed.
  std::vector<int> to_do() const;
  /// Returns parts an hour of the processes that work now, by the mean time of the parts that are
  /// done, or 0 if unknown.
  double rate() const;
  /// Returns the seconds until all parts are done at this rate, or 0 if unknown.
  double seconds_left() const;
};

/// Looks at the parts of `tool`, such as "clip". With `watch`, waits until each lease has shown a
/// sign of life, or none for too long (at most 80 seconds), so that no part of a killed process
/// counts as `working`. Changes nothing. Throws Error{usage} if the folder has no parts of the
/// tool; Error and Stopped.
PartsStatus look_at_parts(const std::string& directory, const std::string& tool, bool watch);

/// Return records for standard output: {"kind":"part",…} of one part, and {"kind":"parts",…} of
/// all.
Json part_record(const PartsStatus& status, const PartState& part);
Json parts_record(const PartsStatus& status);
/// Returns a table for people, with at most 20 parts that are not done.
std::string status_table(const PartsStatus& status);

/// Numbers of parts for the option --array of sbatch, such as "0-3,7". Slurm refuses numbers from
/// MaxArraySize on, so there is a window for each `max_array_size` numbers. The numbers of a window
/// are relative to its offset, which VFM_PART_OFFSET tells the tasks.
struct ArrayWindow {
  std::string expression;
  int offset = 0;
};
/// Returns the windows for these parts, which are in order. With `max_array_size` 0, returns one
/// window. Pure.
std::vector<ArrayWindow> missing_expressions(const std::vector<int>& parts, int max_array_size);

}  // namespace vfm::parts
