// The files that a clip may be made from: its first frames, its first noise, and embeddings of its
// text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "generate/request/clip_request.h"

namespace vfm::generate {

struct GivenFile {
  std::string path;  ///< empty: no file
  /// Hash of the contents; none: not known, and any contents are accepted.
  std::optional<std::string> xxh3;
};

struct GivenFiles {
  GivenFile condition;                  ///< image or video that the clip begins with
  std::optional<int> condition_frames;  ///< the last N frames of a video; none: 9 or 1
  GivenFile noise;                      ///< the first noise; none: drawn from the seed
  /// Embeddings of the prompt and the negative prompt; none: the text is encoded.
  GivenFile embedding, negative_embedding;
};

/// Reads the files into `request`, whose size is known, and their hashes into `files`.
/// Condition: an image, or the last condition_frames frames of a video. Without condition_frames,
/// as many as give one latent frame more than an image, but at most those available, so that at
/// least one frame is left to make; 1 for a model that begins with a picture. The number is always
/// one plus whole groups of the tokenizer's time factor. Frames are resized to the clip's size,
/// without keeping their aspect ratio, as diffusers does, to the bits of Pillow's Lanczos. Noise: a
/// .npy file, or the only tensor of a .safetensors file. Embeddings: the same formats, shape
/// (tokens, text width of the model), with or without a leading 1. Throws Error for an unreadable
/// file, too few frames, values that are not finite, a wrong hash, or a condition or embedding for
/// a model that takes none.
void read_given_files(GivenFiles& files, const ModelShape& shape, ClipRequest& request);

}  // namespace vfm::generate
