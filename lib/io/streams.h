// The begin and end records of a tool's output (vfm-manifest(5)), so that a killed tool does not
// look like one that is done.
//
//   {"kind":"begin","tool":"vfm-clip","id":"5f0c...","folder":"/data"}
//   ...records...
//   {"kind":"end","id":"5f0c...","records":2,"status":0}
//
// "folder" is where the tool was started: from there its records name files.
//
// Each begin needs its end, with the same id. Streams may follow one another (`cat part-*.jsonl`),
// also with the same id, and may extend from one input to the next. Lines outside a stream need no
// begin or end: bare paths, and the rest of a stream after a filter took its begin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "io/places.h"

namespace vfm::io {

Json begin_record(std::string_view tool, std::string_view id, const std::string& folder);
/// `told`: an object with its other fields.
Json end_record(std::string_view id, std::uint64_t records, const Json& told, int status);

/// Watches one reader's lines. Holds the open streams, at most kMostOpen. Thread-safety: one thread
/// at a time.
class InputStreams {
 public:
  static constexpr std::size_t kMostOpen = 1000;

  /// Takes each line that is not blank, in order. True: it begins or ends a stream, and is not for
  /// the tool. `source` is its origin: "standard input", "'a.jsonl'". A stream may begin in the
  /// middle of a line, which then is the tool's: `cat` glues it to a line that was cut off. Throws
  /// Error for a malformed begin or end, and for one begin too many.
  bool take(std::string_view line, const std::string& source);

  /// The folder from which the last line names files; "": the working directory. Throws Error if
  /// that is ambiguous, because tools started in several folders write into one pipe at once.
  std::string folder() const;
  /// Once all is read: the tool whose output broke off, and where, as a clause; empty if none.
  std::string broken_off() const;
  /// Once all is read: says with -v what filters took, and throws Error if an output broke off.
  /// `outcome` says what that means for this run: "no dataset is written".
  void check_whole(std::string_view outcome) const;

 private:
  struct Stream {
    std::string tool, id, folder, source;
    std::uint64_t records = 0;
  };
  void begin(const Json& record, const std::string& source);
  void begin_inside(std::string_view line, const std::string& source);
  void end(const Json& record);
  void remark(std::string text);

  std::string here_ = working_folder();
  std::vector<Stream> open_;          // the latest last
  std::vector<std::string> remarks_;  // for -v; the first ones
};

}  // namespace vfm::io
