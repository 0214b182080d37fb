// The interface by which long work reports progress. cli/ draws progress on a terminal; the default
// does nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace vfm {

/// Thread-safety: every member may be called from any thread.
class Progress {
 public:
  virtual ~Progress() = default;
  /// Names the work and its unit ("clips", "steps"); total 0 means unknown.
  virtual void start(std::string_view /*unit*/, std::uint64_t /*total*/) {}
  /// Says that the total became known, or grew.
  virtual void set_total(std::uint64_t /*total*/) {}
  virtual void add(std::uint64_t /*done*/ = 1) {}
  /// Shows a short remark after the numbers ("loss 0.231").
  virtual void note(std::string_view /*text*/) {}
  /// Shows the position inside one long item ("fox: step 12 of 36"), or none if `text` is empty.
  virtual void place(std::string_view /*text*/) {}
  /// Tells the share of an unfinished item that is done, 0 to 1, for the estimate of the time left.
  /// `item` is any address that identifies the item. If `done` is below 0, forgets the item.
  virtual void part(const void* /*item*/, double /*done*/) {}
};

/// Reports the position inside one long item: "film.mp4: 12m31s of 1h58m". Thread-safety: one
/// thread; the Progress may be shared.
class ItemProgress {
 public:
  ItemProgress(Progress& progress, std::string name)
      : progress_(progress), name_(std::move(name)) {}
  ~ItemProgress();
  ItemProgress(const ItemProgress&) = delete;
  ItemProgress& operator=(const ItemProgress&) = delete;

  /// Says that `seconds` of `all` are done; if `all` is 0, the whole is unknown. Most calls do
  /// nothing, so calls are cheap.
  void at(double seconds, double all);

 private:
  Progress& progress_;
  std::string name_;
  int calls_ = 0;
};

/// The Progress that does nothing.
Progress& no_progress();

}  // namespace vfm
