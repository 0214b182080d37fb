// SPDX-License-Identifier: Apache-2.0
#include "base/full_disk.h"

#include <cerrno>

#include "base/disk_errors.h"
#include "base/run_end.h"
#include "base/stop.h"

namespace vfm {
namespace {

thread_local int t_survives = 0;  // objects of SurvivesFullDisk

}  // namespace

void throw_output_error(int err, const std::string& message) {
  if (err == EPIPE) {
    note_closed_pipe();
    check_stop();
  }
  const std::string text = message + ": " + errno_text(err);
  if (t_survives > 0 || (err != ENOSPC && err != EDQUOT && err != EROFS))
    throw Error(text, Cause::disk);
  end_run(text + (err == EROFS ? "; give a folder that can be written to"
                               : "; make room, then give the same command again"));
  throw Stopped();
}

SurvivesFullDisk::SurvivesFullDisk() noexcept {
  ++t_survives;
}
SurvivesFullDisk::~SurvivesFullDisk() {
  --t_survives;
}

}  // namespace vfm
