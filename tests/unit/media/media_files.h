// Media for the tests, made once a run by the `ffmpeg` program; and what `ffmpeg` and `ffprobe` say
// of it, to compare with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace media_files {

/// False where the programs are missing: such tests warn and pass.
bool available();

/// Path of a generated file by its name ("plain.mp4"; the list is in media_files.cc), or of a file
/// that the test wants to write.
std::string path(const std::string& name);

std::string read(const std::string& path);
void write(const std::string& path, const std::string& bytes);
/// Runs a command in a shell; its stdout. Fails the test when it fails.
std::string run(const std::string& command);

/// best_effort_timestamp of each frame, by ffprobe.
std::vector<std::int64_t> probe_times(const std::string& path, const std::string& stream = "v:0");
/// All frames' bytes, no padding, by ffmpeg; `format` as in -pix_fmt, "" for the file's own.
std::string raw_frames(const std::string& path, const std::string& stream = "v:0",
                       const std::string& format = "");

}  // namespace media_files

/// First line of a test case that needs the files.
#define NEED_FFMPEG()                                       \
  if (!media_files::available()) {                          \
    WARN("skipped: no ffmpeg and ffprobe on this machine"); \
    return;                                                 \
  }
