// Decodes a clip once and computes its Glimpse, a few small pictures (curate/glimpse.h).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "curate/glimpse.h"
#include "media/decode/hardware.h"
#include "shard/sample.h"

namespace vfm::columns {

/// The Glimpse of a sample, and the facts that take_frames() measures (columns/clip_frames.h).
struct Seen {
  curate::Glimpse glimpse;
  HeldJson facts = HeldJson::object();
};
/// Throws what take_frames() throws.
Seen see_member(const shard::Member& member, const std::string& where, const Json& known,
                const media::HardwareDecoder* hardware = nullptr);

/// Returns the Glimpse of a file or URL.
curate::Glimpse glimpse_of_file(const std::string& path,
                                const media::HardwareDecoder* hardware = nullptr);

}  // namespace vfm::columns
