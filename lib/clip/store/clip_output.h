// The output of one video's clips: its store, under their keys. Clips that a killed run finished
// are not made again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/rational.h"
#include "clip/clip.h"
#include "clip/source.h"
#include "clip/store/store.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

/// Adds the fields of `from` that `to` lacks: a video's extra fields go on with its clips.
void pass_on(const Json& from, Json& to);

/// The error of a video without clips or other errors.
inline constexpr const char* kNoClip = "no clip: every shot is too short";

/// A clip that has ended.
struct Clip {
  Span span;
  std::string mp4;
  HeldJson facts;                    ///< KEY.json from "stream" on: no key, no source
  const GivenSpan* given = nullptr;  ///< by which it was cut
  bool hdr = false;                  ///< 10 bits, in the source's colours
  bool known = false;                ///< a killed run finished it: no mp4, no facts
};

/// Thread-safety: one thread at a time.
class ClipOutput {
 public:
  /// All three must outlive this.
  ClipOutput(const ClipSource& source, const ClipOptions& options, ClipSink& store);

  /// The same as ClipSink::begin().
  void begin(bool keep) { kept_ = store_.begin(keep); }
  /// True if a killed run finished the clip that begins here: it need not be encoded.
  bool has(std::int64_t pts) const { return !kept_.empty() && kept_.front().begin == pts; }
  /// Whether a killed run finished a clip that was not added yet.
  bool has_more() const { return !kept_.empty(); }
  /// Adds the next clip. `info`: the video's. Throws Error.
  void add(const media::StreamInfo& info, Clip&& clip);
  /// False: the clips of a killed run differ from this video's. Then added clips are dropped, and
  /// finish() returns null.
  bool fits() const { return fits_; }
  /// Ends the store with the video's `summary`. Null: a killed run's clips do not fit, and the
  /// video must be cut again without them.
  Json finish(const Json& summary);

 private:
  std::string key_of(const media::StreamInfo& info, const Clip& clip) const;
  shard::Sample sample_of(const std::string& key, Clip&& clip) const;

  const ClipSource& source_;
  const ClipOptions& options_;
  ClipSink& store_;
  KeptClips kept_;  // those that were not reached yet
  bool fits_ = true;
};

}  // namespace vfm::clip
