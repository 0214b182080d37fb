// The begin and end records of a tool's output (vfm-manifest(5)). These records show whether the
// output is complete or the tool was killed.
//
//   {"kind":"begin","tool":"vfm-clip","id":"5f0c...","folder":"/data"}
//   ...records...
//   {"kind":"end","id":"5f0c...","records":2,"status":0}
//
// The tool was started in "folder", and its records name files relative to this folder.
//
// A stream is a begin, its records, and an end with the same id. Streams may follow one another
// (`cat part-*.jsonl`), also with the same id, and a stream may continue in the next input file.
// Lines outside a stream are allowed: bare paths, or the rest of a stream whose begin a filter
// removed.
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
/// `told` is an object with further fields of the record.
Json end_record(std::string_view id, std::uint64_t records, const Json& told, int status);

/// Checks one reader's lines for begin and end records. At most kMostOpen streams may be open.
/// Thread-safety: one thread at a time.
class InputStreams {
 public:
  static constexpr std::size_t kMostOpen = 1000;

  /// Call it for each line that is not blank, in order. Returns true if the line is a begin or end
  /// record, which the tool does not get. `source` is the line's origin: "standard input",
  /// "'a.jsonl'". A begin in the middle of a line is recognised, since `cat` appends it to a line
  /// that was cut off; the tool gets this line. Throws Error for a malformed begin or end, and for
  /// too many open streams.
  bool take(std::string_view line, const std::string& source);

  /// Returns the folder to which names in the last line are relative, or "" for the working
  /// directory. Throws Error if the folder is ambiguous, because tools started in several folders
  /// write into one pipe at once.
  std::string folder() const;
  /// Returns, after the last line, a clause that names the tool whose output is incomplete and the
  /// input with it, or "" if all are complete.
  std::string broken_off() const;
  /// Logs, after the last line, with -v what filters removed. Throws Error if an output is
  /// incomplete. `outcome` says what that means for this run: "no dataset is written".
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
  std::vector<Stream> open_;          // open streams, the latest last
  std::vector<std::string> remarks_;  // the first remarks, for -v
};

}  // namespace vfm::io
