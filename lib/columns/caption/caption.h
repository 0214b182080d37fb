// vfm-caption: writes a caption for every sample of a shard X.tar to the column X.caption.tar.
//
// KEY.txt is the caption, KEY.json {"caption":…, "caption_source":…}. Sources are tried in order
// until one has a caption:
//   existing          the next five, in this order
//   existing:member   the sample's txt member (shards of other programs)
//   existing:field    "caption" of KEY.json or of the shard's record: text, or a list with times
//   existing:txt      x.txt beside the source video x.mp4: the whole video's caption
//   existing:json     x.json: {"caption": "…"} or [{"start": s, "end": s, "caption": "…"}, …]
//   existing:srt      x.srt: the cues in the clip's span, joined
//   field:NAME        any other field of KEY.json or the record; "a.b.0": a nested one
//   model:DIR         a model that sees the clip (columns/caption/model_caption.h), "caption_model"
//                     in KEY.json; with several windows also "caption_windows"; if a text of one
//                     window reached the token limit, "caption_cut": true
//   builtin:measure   a sentence of measurements (curate/measures/describe.h); always has a caption
// With --endpoint, the last source ("endpoint" in KEY.json) is a model on a server
// (columns/caption/endpoint.h). With --refine a language model rewrites captions and keeps the
// draft as "caption_draft" (columns/caption/refine.h). With --also the model or server that
// captions a clip answers further questions (columns/caption/questions.h). "caption_cut" in the
// shard's record counts texts cut at a model's token limit. A file beside a source is read only if
// the shard's record names the source, as records of vfm-clip do, or if the file is in a folder
// that the user names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/progress.h"
#include "columns/caption/caption_source.h"
#include "columns/caption/endpoint.h"
#include "columns/caption/model_caption.h"
#include "io/manifest.h"
#include "media/decode/hardware.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::columns {

/// The settings for rewriting captions.
struct RefineOptions {
  std::string folder;  ///< a language model's folder; empty: no rewriting
  std::string prompt =
      "You rewrite captions of videos and pictures. Rewrite the caption that you are given as a "
      "fluent, detailed paragraph. Keep all that it says and the order of events, and add nothing "
      "that it does not say. Answer with the new caption alone.";
};

struct CaptionOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< the columns' folder; empty: each shard's folder
  bool force = false;
  shard::ReadLimits limits;
  CaptionSources from;
  /// Folders in which files beside sources are read even if only the tar names the source.
  std::vector<std::string> sidecars;
  std::size_t max_characters = 0;  ///< longer captions are cut at a word; 0: never
  /// If true, an empty caption is accepted, and a sample may be without a caption. If false, the
  /// next source is tried after an empty caption, and a sample without words from any source is an
  /// error (its caption is empty).
  bool keep_empty = false;
  ModelCaptionOptions model;  ///< settings for the model of model:DIR
  EndpointOptions endpoint;   ///< the server, if `from` has one
  RefineOptions refine;       ///< its model runs with the settings of `model`
  std::string report;         ///< HTML file; empty: none
  /// If null, software decodes, with the same result.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Returns the number of errors recorded. Throws Error and Stopped.
long caption(const CaptionOptions& options, share::Slots& slots, Progress& progress,
             io::ManifestWriter& manifest);

}  // namespace vfm::columns
