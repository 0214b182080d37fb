// The files that a clip may be made from: its beginning, its first noise, and embeddings of its
// text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "generate/request/clip_request.h"

namespace vfm::generate {

struct GivenFile {
  std::string path;                 ///< empty: there is none
  std::optional<std::string> xxh3;  ///< of its contents; nothing: not known, and any will do
};

struct GivenFiles {
  GivenFile condition;                  ///< image or video that the clip begins with
  std::optional<int> condition_frames;  ///< of a video: its last N frames; nothing: 9 or 1
  GivenFile noise;                      ///< the first noise; none: by the seed
  /// Embeddings of the prompt and the negative prompt; none: the text is encoded.
  GivenFile embedding, negative_embedding;
};

/// Reads the files into `request`, whose size is known, and their hashes into `files`.
/// Condition: an image, or the last frames of a video: as many as asked for; else enough for one
/// latent frame more than an image, but at most those available, and leaving the clip a frame to
/// make; always one frame plus whole groups of the tokenizer's. Resized to the clip's size,
/// whatever their shape, as diffusers does: to the bits of Pillow's Lanczos. Noise: a .npy file, or
/// the only tensor of a .safetensors file. Embeddings: the same, (tokens, width of the model's
/// text), with a leading 1 or without.
/// Throws Error for an unreadable file, too few frames, values that are not finite, a wrong hash,
/// or a condition or embedding for a model that takes none.
void read_given_files(GivenFiles& files, const ModelShape& shape, ClipRequest& request);

}  // namespace vfm::generate
