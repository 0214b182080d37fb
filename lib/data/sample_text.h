// The texts that a sample of a dataset has: embeddings, as members of the sample, and captions.
//
// The column NAME consists of the members NAME.text.npy and NAME.txt, and the text NAME of the
// sample's json. The column "caption" consists of the members text.npy and txt, and the text
// "caption". Thread-safety: pure.
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

/// Nothing in it is set if a sample has no text.
struct SampleText {
  int tokens = 0, width = 0;
  std::string npy;            ///< '<f2', tokens x width
  std::vector<float> values;  ///< the same numbers
  HeldJson encoder;           ///< identity of the encoder; null without an embedding
  std::string caption;        ///< caption; "" with an embedding
};

/// The parsed member `json`; {} if the sample has none. Throws Error unless it is an object.
Json sample_meta(const shard::Sample& sample);

/// The embedding in the member `name`, rounded to halves if it is finer. `meta` is the sample's
/// json; its "text_encoder" identifies the encoder. Without the member it is an empty array of 0 x
/// 0. Throws Error if it is malformed, or not as wide as the encoder.
SampleText sample_text(const shard::Sample& sample, const Json& meta,
                       const std::string& name = "text.npy");

/// Columns of captions.
struct TextColumns {
  std::vector<std::string> names = {"caption"};
  bool captions = false;  ///< captions without an embedding are taken, too
};
/// The members that hold a column's embedding and its caption.
std::string embedding_member(const std::string& column);
std::string caption_member(const std::string& column);

/// A part of a clip, in seconds after its first frame. For a picture begin and end are 0.
struct TextPart {
  double begin = 0, end = 0;
};
/// The caption of a part of a clip, from the captions of its windows ("caption_windows" of its
/// json, vfm-caption(1)). Joins by blanks the captions of windows that lie in the part by half or
/// more. If there are none, takes the window that shares most time with the part; "" if no window
/// does. Throws Error for malformed windows.
std::string caption_of_part(const Json& meta, const TextPart& part);
/// The embedding of the same captions, from the sample's text.windows.npy (vfm-embed(1)). Nothing
/// if the sample has none, or no caption of the part. `meta` is the sample's json. Throws Error if
/// they are malformed.
std::optional<SampleText> text_of_part(const shard::Sample& sample, const Json& meta,
                                       const TextPart& part);

/// The text of the column that `place`, in [0, 1), chooses among the columns that the sample has:
/// small numbers choose the first ones. If the clip has captions of windows, the caption of `part`
/// takes the place of the clip's. Throws Error as sample_text().
SampleText choose_text(const shard::Sample& sample, const Json& meta, const TextColumns& columns,
                       double place, const TextPart& part = {});

}  // namespace vfm::data
