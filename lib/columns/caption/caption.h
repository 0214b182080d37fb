// vfm-caption: writes a caption for every sample of a shard X.tar to the column X.caption.tar.
//
// KEY.txt is the caption. KEY.json is {"caption":…, "caption_source":…}. The sources are tried in
// order until a source has a caption:
//   existing          the five sources below, in this order
//   existing:member   the sample's txt member (shards of other programs)
//   existing:field    "caption" of KEY.json or of the shard's record: text, or a list with times
//   existing:txt      x.txt beside the source video x.mp4: the whole video's caption
//   existing:json     x.json: {"caption": "…"} or [{"start": s, "end": s, "caption": "…"}, …]
//   existing:srt      x.srt: the cues in the clip's span, joined
//   field:NAME        any other field of KEY.json or the record; "a.b.0" is a nested field
//   model:DIR         a model that sees the clip (columns/caption/model_caption.h). KEY.json gets
//                     "caption_model", and for several windows "caption_windows". If the text of a
//                     single window reached the token limit, KEY.json gets "caption_cut": true.
//   builtin:measure   a sentence of measurements (curate/measures/describe.h); always has a caption
// With --endpoint, the last source, "endpoint", is a model on a server
// (columns/caption/endpoint.h). With --refine, a language model rewrites captions, and
// "caption_draft" is the old caption (columns/caption/refine.h). With --also, the model or server
// that captions a clip answers further questions (columns/caption/questions.h). "caption_cut" in
// the shard's record is the number of texts cut at the model's token limit. A file beside a video
// is read only if the shard's record names the video, or if the file is in a folder of --sidecars.
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
#include "shard/part_output.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::columns {

struct RefineOptions {
  std::string folder;  ///< Folder of a language model, or empty for no rewriting.
  std::string prompt =
      "You rewrite captions of videos and pictures. Rewrite the caption that you are given as a "
      "fluent, detailed paragraph. Keep all that it says and the order of events, and add nothing "
      "that it does not say. Answer with the new caption alone.";
};

struct CaptionOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< Folder of the columns, or empty for the folder of each shard.
  bool force = false;
  const shard::PartTask* parts = nullptr;  ///< Parts of the work, or null.
  shard::ReadLimits limits;
  CaptionSources from;
  /// Folders in which files beside videos are read even if the shard's record does not name the
  /// video.
  std::vector<std::string> sidecars;
  std::size_t max_characters = 0;  ///< Largest number of characters, or 0 for no limit.
  /// If true, a sample may have an empty caption or no caption. If false, the next source is tried
  /// after an empty caption, and if no source has words, the caption is empty, and an error is
  /// recorded.
  bool keep_empty = false;
  ModelCaptionOptions model;  ///< Settings of the model of model:DIR.
  EndpointOptions endpoint;   ///< Settings of the server.
  RefineOptions refine;       ///< Settings for --refine; further settings are in `model`.
  std::string report;         ///< Path of an HTML report, or empty.
  /// Hardware decoder, or null for decoding in software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Writes the columns. Returns the number of errors recorded. Throws Error and Stopped.
long caption(const CaptionOptions& options, share::Slots& slots, Progress& progress,
             io::ManifestWriter& manifest);

}  // namespace vfm::columns
