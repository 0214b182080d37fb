// Gives each clip of a video its key, and passes the clip to the store. Clips that a killed run
// finished are not made again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/rational.h"
#include "clip/options.h"
#include "clip/source.h"
#include "clip/store/store.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

/// Adds the fields of `from` that `to` lacks.
void pass_on(const Json& from, Json& to);

/// The error of a video that has no clip and no other error.
inline constexpr const char* kNoClip = "no clip: every shot is too short";

struct Clip {
  Span span;
  std::string mp4;
  HeldJson facts;                    ///< Fields of KEY.json, from "stream" on.
  const GivenSpan* given = nullptr;  ///< Span that gave the clip, or null.
  bool hdr = false;                  ///< If true, the clip is 10-bit HDR.
  /// If true, a killed run finished the clip, and `mp4` and `facts` are empty.
  bool known = false;
};

/// Thread-safety: one thread at a time.
class ClipOutput {
 public:
  /// All arguments must outlive the output.
  ClipOutput(const ClipSource& source, const ClipOptions& options, ClipSink& store);

  /// Acts as ClipSink::begin().
  void begin(bool keep) { kept_ = store_.begin(keep); }
  /// Returns true if a killed run finished the clip that begins at `pts`.
  bool has(std::int64_t pts) const { return !kept_.empty() && kept_.front().begin == pts; }
  /// Returns true if a clip of the killed run still has to be added.
  bool has_more() const { return !kept_.empty(); }
  /// Adds the next clip of the video `info`. Throws Error.
  void add(const media::StreamInfo& info, Clip&& clip);
  /// Returns false if the clips of a killed run differ from this video's clips. If fits() is false,
  /// added clips are ignored.
  bool fits() const { return fits_; }
  /// Ends the store with the video's `summary`. If fits() is false, returns null, and the video
  /// must be cut again without the kept clips.
  Json finish(const Json& summary);

 private:
  std::string key_of(const media::StreamInfo& info, const Clip& clip) const;
  shard::Sample sample_of(const std::string& key, Clip&& clip) const;

  const ClipSource& source_;
  const ClipOptions& options_;
  ClipSink& store_;
  KeptClips kept_;
  bool fits_ = true;
};

}  // namespace vfm::clip
