// Faults of single items of a tool's input, and the file errors.jsonl that lists the faults.
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
  /// Takes the error's message and cause. If the cause is Cause::other, uses `otherwise` instead.
  Fault(std::string what, const Error& error, Cause otherwise = Cause::other);

  std::string input;  ///< Name such as "a.mp4", "KEY of 'X.tar'", "line 3 of 'list.jsonl'".
  std::string message;
  Cause cause = Cause::other;
};

/// See base/held_bytes.h.
std::size_t held_bytes(const Fault& fault);

/// Called with each invalid line of an input. Fault::input names the line.
using OnFault = std::function<void(Fault)>;

/// Convert faults to [{"input":…,"error":…,"code":…},…] and back. Outputs store this list, so that
/// a resumed run reports the faults again. parse_faults() throws Error for other JSON, and reads a
/// missing code as Cause::other.
Json to_json(const std::vector<Fault>& faults);
std::vector<Fault> parse_faults(const Json& list);

/// A writer of errors.jsonl. Each skipped item has one record, with the reason. If there were
/// errors, finish() replaces an earlier run's file. Otherwise finish() removes the earlier file.
/// Lines that another program adds during the run are kept, also if it adds them while finish()
/// works. (In a bucket without conditional writes, the latter are lost.) Equal lines are written
/// once. Inputs and messages are cut at 256 KiB. Thread-safety: any thread. Call add() from `done`
/// of for_each_ordered() (share/ordered.h), so that the file does not depend on -j.
class ErrorLog {
 public:
  ErrorLog(std::string path, std::string tool);
  ~ErrorLog();
  /// Records {"tool":…, "input":…, "error":…, "code":…}, and logs the warning "INPUT: MESSAGE". The
  /// file has the records sorted by `place`, then by arrival.
  void add(const Fault& fault, std::uint64_t place = 0);
  std::size_t count() const;
  void finish();

 private:
  void finish_object();
  void put_merged(const std::string& others, const std::function<void(std::string_view)>& put);

  std::string path_, tool_;
  const std::string before_;  // State of the file of an earlier run, or "".
  mutable std::mutex mutex_;
  Sorter lines_;  // Records of (line, place, number).
  std::uint64_t count_ = 0;
};

}  // namespace vfm::io
