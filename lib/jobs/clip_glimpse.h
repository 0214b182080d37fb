// The glimpse (curate/glimpse.h) of a clip: decodes it, once, and keeps a handful of small
// pictures. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "curate/glimpse.h"
#include "media/hardware.h"
#include "shard/sample.h"

namespace vfm::jobs {

/// The member of `sample` that is a video or a still picture, or null.
const shard::Member* media_member(const shard::Sample& sample);

/// Throws Error, naming `where` ("KEY.mp4 of 'x.tar'"), if nothing of it can be decoded. `hardware`
/// decodes it, with the same result; null: software.
curate::Glimpse glimpse_of_member(const shard::Member& member, const std::string& where,
                                  const media::HardwareDecoder* hardware = nullptr);
/// The same of a file or URL.
curate::Glimpse glimpse_of_file(const std::string& path,
                                const media::HardwareDecoder* hardware = nullptr);

/// Whether a name's extension is that of a video or a still picture.
bool is_media_name(const std::string& path);

}  // namespace vfm::jobs
