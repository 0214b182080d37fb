// How long work tells how far it is. cli/ draws it on a terminal; the default does nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace vfm {

/// Thread-safety: every member may be called from any thread.
class Progress {
 public:
  virtual ~Progress() = default;
  /// Names the work and its unit ("clips", "steps"); total 0 means unknown.
  virtual void start(std::string_view /*unit*/, std::uint64_t /*total*/) {}
  /// The total became known, or grew.
  virtual void set_total(std::uint64_t /*total*/) {}
  virtual void add(std::uint64_t /*done*/ = 1) {}
  /// A short remark after the numbers ("loss 0.231").
  virtual void note(std::string_view /*text*/) {}
};

/// The progress that says nothing.
Progress& no_progress();

}  // namespace vfm
