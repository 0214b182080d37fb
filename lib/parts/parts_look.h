// Looks at the parts of a tool: which have markers, and on which processes work.
//
// On a disk, each question looks at the files. In a bucket, where each question would be a request,
// refresh() makes one listing, which answers the questions until the next refresh().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/store.h"
#include "parts/part_lease.h"
#include "parts/part_marker.h"
#include "parts/part_notes.h"

namespace vfm::parts {

/// How many requests to a server are under way at once.
inline constexpr std::size_t kRequests = 32;

/// Returns the store of DIR/parts.
std::unique_ptr<io::Store> open_parts(const std::string& directory);
/// Does the same, and throws Error if leases cannot rest on the store (Store::check_conditions()).
std::unique_ptr<io::Store> open_leases(const std::string& directory);
/// Returns the path of an object of open_parts(), for messages.
std::string parts_path(const std::string& directory, std::string_view name);

/// Thread-safety: one thread at a time, but marker() any thread.
class PartsLook {
 public:
  /// Calls refresh(). `store` is open_parts(directory), and must outlive the object.
  PartsLook(const io::Store& store, std::string directory, std::string tool);

  void refresh();
  /// Returns true if the questions are answered by a listing.
  bool is_listed() const { return listed_; }
  /// Returns the parts that have a folder, in order.
  std::set<int> begun() const;
  bool done(int part) const;
  /// Returns the facts of the marker, without its outputs, or nullopt if there is none.
  std::optional<PartMarker> marker(int part) const;
  std::optional<LeaseFacts> lease(int part);
  /// Returns the name of the newest lease, or nullopt if there is none.
  std::optional<LeaseName> newest_lease(int part) const;
  /// Returns false if it is known that the part has no failed.json.
  bool may_have_failed(int part) const { return !listed_ || failed_.contains(part); }
  std::vector<PartNote> notes() const;

 private:
  std::string folder(int part) const;
  void note_object(const std::string& name, std::uint64_t bytes);

  const io::Store& store_;
  std::string directory_, tool_;
  bool listed_;
  std::set<int> begun_, failed_;
  std::map<int, std::uint64_t> marked_;             // bytes of the markers
  std::map<int, LeaseName> leases_;                 // the newest of each part
  std::map<std::pair<int, int>, LeaseFacts> read_;  // leases by part and generation
  std::vector<PartNote> notes_;
};

/// Returns which of `parts` parts of a tool have a marker. In a bucket, by one listing.
std::vector<bool> marked_parts(const io::Store& store, const std::string& directory,
                               const std::string& tool, int parts);

/// Answers whether parts have markers, again and again. Once a part has one, it keeps it. In a
/// bucket, the markers of a few parts are looked for one by one, and those of many by a listing, at
/// most once a second. Thread-safety: one thread at a time.
class PartMarks {
 public:
  PartMarks(std::string directory, std::string tool);
  bool done(int part);

 private:
  std::string directory_, tool_;
  std::unique_ptr<io::Store> store_;
  std::set<int> done_, asked_;
  double listed_at_ = -1;
};

}  // namespace vfm::parts
