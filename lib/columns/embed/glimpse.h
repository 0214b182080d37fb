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

/// A sample's glimpse, and the facts that its json lacks: "width" and "height" as shown; for a
/// video also "seconds", "fps" and "frames", measured over all frames.
struct Seen {
  curate::Glimpse glimpse;
  HeldJson facts = HeldJson::object();
};
/// `known`: the sample's json. `hardware`: a decoder with the same result; null: software. Throws
/// Error, which names `where` ("KEY.mp4 of 'x.tar'"), if nothing decodes.
Seen see_member(const shard::Member& member, const std::string& where, const Json& known,
                const media::HardwareDecoder* hardware = nullptr);

/// The glimpse of a file or URL.
curate::Glimpse glimpse_of_file(const std::string& path,
                                const media::HardwareDecoder* hardware = nullptr);

}  // namespace vfm::columns
