// vfm-caption: a caption for every sample of every shard, as the column X.caption.tar.
//
// KEY.txt is the caption, KEY.json {"caption":…, "caption_source":…}. Sources are asked in order,
// and the first that has a caption gives it:
//   existing          all of the following, in this order
//   existing:member   the sample's own txt member (foreign shards)
//   existing:field    "caption" of KEY.json or of the shard's record: text, or a list with times
//   existing:txt      x.txt beside the source video x.mp4: the whole video's caption
//   existing:json     x.json: {"caption": "…"} or [{"start": s, "end": s, "caption": "…"}, …]
//   existing:srt      x.srt: the cues that belong to the clip's span, joined
//   field:NAME        any other member of KEY.json or of the record, "a.b.0" one inside of others
//   model:DIR         the text of a model that sees the clip (columns/caption/model_caption.h),
//   with
//                     "caption_model" in KEY.json; of several windows "caption_windows",
//                     of one that reached its most tokens "caption_cut": true
//   builtin:measure   a sentence of measurements (curate/measures/describe.h); always has one
// The last source, "endpoint" in KEY.json, is a model on a server that sees frames
// (columns/caption/endpoint.h).
// With --refine a language model rewrites a caption (columns/caption/refine.h); the draft is kept
// as "caption_draft". With --also the model or server that captions a clip answers further
// questions (columns/caption/questions.h). "caption_cut" in the shard's record counts texts that
// were cut. A file beside a source is read only if the shard's record names the source, as
// vfm-clip's does, or if it lies below a folder that the user names: text in a tar alone opens no
// file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/progress.h"
#include "columns/caption/endpoint.h"
#include "columns/caption/model_caption.h"
#include "io/manifest.h"
#include "media/decode/hardware.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::columns {

/// How captions are rewritten.
struct RefineOptions {
  std::string folder;  ///< of a language model; empty: they are not
  std::string prompt =
      "You rewrite captions of videos and pictures. Rewrite the caption that you are given as a "
      "fluent, detailed paragraph. Keep all that it says and the order of events, and add nothing "
      "that it does not say. Answer with the new caption alone.";
};

struct CaptionOptions {
  std::vector<std::string> inputs;
  std::string directory;  ///< of the columns; empty: beside their shards
  bool force = false;
  shard::ReadLimits limits;
  std::vector<std::string> from = {"existing", "builtin:measure"};
  /// Folders below which files beside sources are read even if only the shard names the source.
  std::vector<std::string> sidecars;
  std::size_t max_characters = 0;  ///< longer captions are cut at a word; 0: never
  /// If set, an empty caption counts, and a sample may have none. Otherwise the next source is
  /// asked, and a sample without words from any source is an error (its caption is empty).
  bool keep_empty = false;
  ModelCaptionOptions model;  ///< how the model of model:DIR is asked
  EndpointOptions endpoint;   ///< its server is asked last; without an address: none is
  RefineOptions refine;       ///< its model computes and writes as `model` says
  std::string report;         ///< HTML file; empty: none
  /// Decodes clips to measure, with the same result; null: software.
  const media::HardwareDecoder* hardware = nullptr;
};

/// Throws Error{usage} for a source that does not exist, or a second model.
void check_caption_sources(const std::vector<std::string>& from);
/// The folder of the model among the sources, or "".
std::string caption_model_folder(const std::vector<std::string>& from);

/// Returns the number of errors recorded. Throws Error; Stopped.
long caption(const CaptionOptions& options, share::Slots& slots, Progress& progress,
             io::ManifestWriter& manifest);

}  // namespace vfm::columns
