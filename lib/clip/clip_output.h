// Where the clips of one video go: into its store, under their keys. Clips that a killed run
// finished are not made a second time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "base/rational.h"
#include "clip/clip.h"
#include "clip/source.h"
#include "clip/store.h"
#include "media/decoder.h"

namespace vfm::clip {

/// Adds those fields of `from` that `to` lacks: what came with a video goes on with its clips.
void pass_on(const Json& from, Json& to);

/// What is wrong with a video without clips and errors.
inline constexpr const char* kNoClip = "no clip: every shot is too short";

/// A clip that has ended.
struct Clip {
  Span span;
  std::string mp4;
  HeldJson facts;                    ///< KEY.json from "stream" on: no key, no source
  const GivenSpan* given = nullptr;  ///< that it was cut by
  bool hdr = false;                  ///< 10 bits, in the source's colours
  bool known = false;                ///< a killed run finished it: no mp4, no facts
};

/// Thread-safety: one thread at a time.
class ClipOutput {
 public:
  /// All three must outlive this.
  ClipOutput(const ClipSource& source, const ClipOptions& options, ClipSink& store);

  /// As ClipSink::begin() says.
  void begin(bool keep) { kept_ = store_.begin(keep); }
  /// Whether a killed run finished the clip that begins here: then it need not be encoded.
  bool has(std::int64_t pts) const { return !kept_.empty() && kept_.front().begin == pts; }
  /// Whether a killed run finished a clip that was not added yet.
  bool has_more() const { return !kept_.empty(); }
  /// The next clip. `info`: of the video. Throws Error.
  void add(const media::StreamInfo& info, Clip&& clip);
  /// False: the clips that a killed run left are not those that the video gives. What is added then
  /// is dropped, and finish() gives nothing.
  bool fits() const { return fits_; }
  /// Ends the store with `summary` of the video. Null: what a killed run left does not fit, and all
  /// is to be cut again without it.
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
