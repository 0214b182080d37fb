// For outputs that a run can do without for a while, such as a checkpoint before the last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// While an object of this class exists, a full or read-only disk is an Error with Cause::disk in
/// this thread, like any other failure of an output (base/full_disk.h), and does not end the run.
class SurvivesFullDisk {
 public:
  SurvivesFullDisk() noexcept;
  ~SurvivesFullDisk();
  SurvivesFullDisk(const SurvivesFullDisk&) = delete;
  SurvivesFullDisk& operator=(const SurvivesFullDisk&) = delete;
};

}  // namespace vfm
