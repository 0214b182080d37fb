// The texts that a sample of a dataset has: embeddings, as members of it, and captions.
//
// A column of captions NAME is the members NAME.text.npy and NAME.txt, and the text NAME of the
// sample's json; that with the name "caption" the members text.npy and txt, and "caption".
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"

namespace vfm::shard {
struct Sample;
}

namespace vfm::data {

/// Nothing of it is set where a sample has no text.
struct SampleText {
  int tokens = 0, width = 0;
  std::string npy;            ///< '<f2', tokens x width
  std::vector<float> values;  ///< the same numbers
  HeldJson encoder;           ///< what made it; null without an embedding
  std::string caption;        ///< of which there is no embedding
};

/// {} of a sample without a member `json`. Throws Error unless that is an object.
Json sample_meta(const shard::Sample& sample);

/// The member `name`, rounded to halves where it is finer; `meta` is the sample's json, whose
/// "text_encoder" says what made it. Without the member, an empty array of 0 x 0. Throws Error for
/// one that is malformed, or not as wide as the encoder.
SampleText sample_text(const shard::Sample& sample, const Json& meta,
                       const std::string& name = "text.npy");

/// Columns of captions.
struct TextColumns {
  std::vector<std::string> names = {"caption"};
  bool captions = false;  ///< those without an embedding are taken, too
};
/// The members of a column: of its embeddings, and of its captions.
std::string embedding_member(const std::string& column);
std::string caption_member(const std::string& column);

/// A part of a clip, in seconds after its first frame. Of a picture begin and end are 0.
struct TextPart {
  double begin = 0, end = 0;
};
/// What captions of windows of a clip ("caption_windows" of its json, vfm-caption(1)) say of a part
/// of it: those of which half or more is in it, joined by blanks, else the one with the most of it.
/// "" where there are none. Throws Error for malformed ones.
std::string caption_of_part(const Json& meta, const TextPart& part);
/// Their embedding, of the sample's text.windows.npy (vfm-embed(1)): nothing where it has none, or
/// no caption of the part. `meta` is the sample's json. Throws Error for malformed ones.
std::optional<SampleText> text_of_part(const shard::Sample& sample, const Json& meta,
                                       const TextPart& part);

/// Of the columns that the sample has that at `place`, in [0, 1): the first ones for small numbers.
/// Where there are captions of windows, that of `part` takes the place of the clip's. Throws Error
/// as sample_text().
SampleText choose_text(const shard::Sample& sample, const Json& meta, const TextColumns& columns,
                       double place, const TextPart& part = {});

}  // namespace vfm::data
