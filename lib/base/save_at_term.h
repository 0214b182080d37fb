// SIGTERM as a request to save and end. Clusters send it some seconds before SIGKILL.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// While one exists, SIGTERM requests a gentle stop (request_wind_up(), base/stop.h) instead of a
/// stop. A second SIGTERM kills the process, as without it. One at a time.
class SaveAtTerm {
 public:
  SaveAtTerm() noexcept;
  ~SaveAtTerm();
  SaveAtTerm(const SaveAtTerm&) = delete;
  SaveAtTerm& operator=(const SaveAtTerm&) = delete;
};

/// Returns whether SIGTERM has requested a gentle stop. Whoever has saved then requests the stop,
/// after SaveAtTerm, so that the process ends by the signal.
bool term_requested() noexcept;

}  // namespace vfm
