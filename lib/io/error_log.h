// Faults of single items of a tool's input, and the file errors.jsonl that lists them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_fwd.h"
#include "io/sorter.h"

namespace vfm::io {

/// The fault of one item, which does not affect other items.
struct Fault {
  Fault() = default;
  Fault(std::string what, std::string why, Cause sort = Cause::other);
  /// `otherwise` is the cause if the error's cause is Cause::other.
  Fault(std::string what, const Error& error, Cause otherwise = Cause::other);

  std::string input;  ///< "a.mp4", "KEY of 'X.tar'", "line 3 of 'list.jsonl'"
  std::string message;
  Cause cause = Cause::other;
};

/// See base/held_bytes.h.
std::size_t held_bytes(const Fault& fault);

/// Called with each malformed line of an input; Fault::input names the line.
using OnFault = std::function<void(Fault)>;

/// Converts faults to [{"input":…,"error":…,"code":…},…] and back. Outputs keep this list, to
/// report the faults again on resume. parse_faults() throws Error for other JSON; a missing code is
/// Cause::other.
Json to_json(const std::vector<Fault>& faults);
std::vector<Fault> parse_faults(const Json& list);

/// Writes errors.jsonl: one record for each skipped item, with the reason. If there was an error,
/// finish() writes the file in place of an earlier run's file. Otherwise finish() removes an
/// earlier run's file. Lines that another program adds meanwhile are kept. Equal lines appear once.
/// Memory does not grow with the number of errors, which wait in a temporary file. Inputs and
/// messages are cut at 256 KiB. Each fault is also logged as a warning at once. Thread-safety: any
/// thread; call add() from the ordered side of for_each_ordered, so that the file does not depend
/// on -j.
class ErrorLog {
 public:
  /// `tool` is the program's name, stored in each record.
  ErrorLog(std::string path, std::string tool);
  ~ErrorLog();
  /// Records {"tool":…, "input":…, "error":…, "code":…}, and warns "INPUT: MESSAGE". The file has
  /// records in order of `place`, then of arrival.
  void add(const Fault& fault, std::uint64_t place = 0);
  std::size_t count() const;
  void finish();

 private:
  std::string others_lines() const;

  std::string path_, tool_;
  std::string before_;  // content of path_ when this run began
  mutable std::mutex mutex_;
  Sorter lines_;  // (line, place, number)
  std::uint64_t count_ = 0;
};

}  // namespace vfm::io
