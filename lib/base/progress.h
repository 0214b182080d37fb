// The interface for progress reports of long work. cli/ draws progress on a terminal. The class
// Progress itself does nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace vfm {

/// Receives progress reports. Thread-safety: any thread.
class Progress {
 public:
  virtual ~Progress() = default;
  /// Sets the unit of work ("clips", "steps") and the total, or 0 if the total is unknown.
  virtual void start(std::string_view /*unit*/, std::uint64_t /*total*/) {}
  /// Sets the total when it becomes known or grows.
  virtual void set_total(std::uint64_t /*total*/) {}
  virtual void add(std::uint64_t /*done*/ = 1) {}
  /// Shows a short remark after the numbers ("loss 0.231").
  virtual void note(std::string_view /*text*/) {}
  /// Shows the position inside one long item ("fox: step 12 of 36"), or nothing if `text` is empty.
  virtual void place(std::string_view /*text*/) {}
  /// Sets `done`, the finished part (0 to 1) of an unfinished item, for the estimate of the time
  /// left. `item` is any address that identifies the item. If `done` is below 0, forgets the item.
  virtual void part(const void* /*item*/, double /*done*/) {}
};

/// Reports the position inside one long item: "film.mp4: 12m31s of 1h58m". Thread-safety: one
/// thread; several objects may share a Progress.
class ItemProgress {
 public:
  ItemProgress(Progress& progress, std::string name)
      : progress_(progress), name_(std::move(name)) {}
  ~ItemProgress();
  ItemProgress(const ItemProgress&) = delete;
  ItemProgress& operator=(const ItemProgress&) = delete;

  /// Reports that `seconds` of `all` are done. `all` is 0 if unknown. Frequent calls are cheap.
  void at(double seconds, double all);

 private:
  Progress& progress_;
  std::string name_;
  int calls_ = 0;
};

Progress& no_progress();

}  // namespace vfm
