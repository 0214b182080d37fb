// The glimpse (curate/glimpse.h) of a clip: decodes it, once, and keeps a handful of small
// pictures. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "curate/glimpse.h"
#include "media/decode/hardware.h"
#include "shard/sample.h"

namespace vfm::columns {

/// The glimpse of a sample, and the facts that its json lacks: "width" and "height" as shown, and
/// of a video "seconds", "fps" and "frames", all of them counted.
struct Seen {
  curate::Glimpse glimpse;
  HeldJson facts = HeldJson::object();
};
/// Throws Error, naming `where` ("KEY.mp4 of 'x.tar'"), if nothing of it can be decoded. `known` is
/// the sample's json. `hardware` decodes it, with the same result; null: software.
Seen see_member(const shard::Member& member, const std::string& where, const Json& known,
                const media::HardwareDecoder* hardware = nullptr);

/// The glimpse of a file or URL.
curate::Glimpse glimpse_of_file(const std::string& path,
                                const media::HardwareDecoder* hardware = nullptr);

}  // namespace vfm::columns
