// The begin and end records of a tool's output (vfm-manifest(5)). These records show whether the
// output is complete or the tool was killed.
//
//   {"kind":"begin","tool":"vfm-clip","id":"5f0c...","folder":"/data"}
//   ...records...
//   {"kind":"end","id":"5f0c...","records":2,"status":0}
//
// The tool was started in "folder", and its records name files relative to this folder.
//
// A stream is a begin record, other records, and an end record with the same id. An input may have
// several streams, one after the other (`cat part-*.jsonl`), and two streams may have the same id.
// A stream may continue in the next input file. Lines outside a stream are allowed, such as bare
// paths, or the rest of a stream whose begin record was removed by a filter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "io/places.h"

namespace vfm::io {

Json begin_record(std::string_view tool, std::string_view id, const std::string& folder);
/// Returns an end record. The fields of the object `told` are added to the record.
Json end_record(std::string_view id, std::uint64_t records, const Json& told, int status);

/// A check of one reader's lines for begin and end records. At most kMostOpen streams may be open
/// at the same time. Thread-safety: one thread at a time.
class InputStreams {
 public:
  static constexpr std::size_t kMostOpen = 1000;

  /// Takes the next line that is not blank. Returns true for a begin or end record, which the tool
  /// must ignore. `source` names the origin of the line, such as "standard input" or "'a.jsonl'".
  /// If a file ends with an incomplete line, `cat` appends the next begin record to this line.
  /// take() finds such a begin record, too, and returns false. Throws Error for an invalid begin or
  /// end record, and for too many open streams.
  bool take(std::string_view line, const std::string& source);

  /// Records that inputs are missing for another reason, `why`, a clause such as "part 3 of 'clips'
  /// is not complete". Then broken_off() returns this clause, and check_whole() throws.
  void miss(std::string why) { missing_ = std::move(why); }

  /// Returns the folder to which relative names in the line of the last take() refer, or "" for the
  /// working directory. Throws Error if tools that were started in different folders write into one
  /// pipe at the same time.
  std::string folder() const;
  /// Call broken_off() after the last line. Returns a clause that names the input and the tool
  /// whose output is incomplete, or "" if all outputs are complete.
  std::string broken_off() const;
  /// Call check_whole() after the last line. With -v, logs facts about the outputs, for example how
  /// many records a filter removed. Throws Error if an output is incomplete. The error's message
  /// contains `outcome`, the consequence, such as "no dataset is written".
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
  std::vector<Stream> open_;
  std::vector<std::string> remarks_;
  std::string missing_;
};

}  // namespace vfm::io
