// Decodes a clip once, for its glimpse (curate/glimpse.h): a few small pictures. Thread-safety: any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "curate/glimpse.h"
#include "media/decode/hardware.h"
#include "shard/sample.h"

namespace vfm::columns {

/// A sample's glimpse, and the facts from take_frames() (columns/clip_frames.h).
struct Seen {
  curate::Glimpse glimpse;
  HeldJson facts = HeldJson::object();
};
/// Arguments and errors: see take_frames().
Seen see_member(const shard::Member& member, const std::string& where, const Json& known,
                const media::HardwareDecoder* hardware = nullptr);

/// Returns the glimpse of a file or URL.
curate::Glimpse glimpse_of_file(const std::string& path,
                                const media::HardwareDecoder* hardware = nullptr);

}  // namespace vfm::columns
