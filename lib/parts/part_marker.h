// The marker of a finished part, DIR/parts/TOOL/00003/done.json. It is created last, if absent, and
// never overwritten.
//
//   {"version":1, "tool":"vfm-clip", "part":3, "parts":16, "inputs":"9f…", "records":12,
//    "errors":{"decode":2}, "versions":{"vfm":"0.1.0"}, "host":"n12", "node_kind":"gpu",
//    "begun":"2026-11-30T08:01:02Z", "ended":"…", "seconds":488.2,
//    "outputs":[{"path":"1a/1a2b….tar", "bytes":1024, "xxh3":"77…"}, …]}
//
// The outputs come last, so that who asks for the other facts need not read them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/store.h"

namespace vfm::parts {

/// What a tool says of a part that it finished.
struct PartResults {
  struct Output {
    std::string path;  ///< Path relative to DIR.
    std::uint64_t bytes = 0;
    std::string xxh3;  ///< XXH3-128 of the contents (base/hash.h).
  };
  std::vector<Output> outputs;
  std::uint64_t records = 0;  ///< Number of records of the part's manifest.
  /// Number of inputs that gave an error, by the name of its Cause. Such an input is a result: the
  /// same input would give the same error again.
  std::map<std::string, std::uint64_t> errors;
  std::map<std::string, std::string> versions;  ///< Versions of the program and its libraries.
};

struct PartMarker {
  std::string tool;  ///< Such as "vfm-clip".
  int part = 0, parts = 0;
  std::string inputs;  ///< Digest of the inputs (PartRun::DigestOf).
  PartResults results;
  std::string host, begun, ended;  ///< Times in UTC, by the host's clock.
  std::string node_kind;           ///< PartChoice::node_kind of the process.
  double seconds = 0;              ///< Time from the claim of the part to its end.
};

/// Reads a marker of `store`, or returns nullopt if there is none. Throws Error for a damaged one.
std::optional<PartMarker> read_marker(const io::Store& store, const std::string& name);
/// Does the same, but leaves out the outputs. Reads at most 16 KiB of a marker that create_marker()
/// wrote, however many outputs it has. `bytes` is its size, if it is known.
std::optional<PartMarker> read_marker_facts(const io::Store& store, const std::string& name,
                                            std::optional<std::uint64_t> bytes = {});
/// Creates a marker. Returns false if there is one.
bool create_marker(io::Store& store, const std::string& name, const PartMarker& marker);

/// Returns the time of this host's clock, such as "2026-11-30T08:01:02Z".
std::string utc_now();
/// Returns the seconds between two times of one clock, or 0 if a text is no time.
double seconds_between(const std::string& begun, const std::string& ended);

}  // namespace vfm::parts
