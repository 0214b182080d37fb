// The files that a clip may be made from: what it begins with, its first noise, and embeddings of
// its text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generate/clip_request.h"
#include "generate/prompts.h"

namespace vfm::generate {

/// Reads the files that the order names into its request, whose size is known, and their hashes
/// into the order.
/// Condition: an image, or the last frames of a video: as many as asked for, else as one more
/// latent frame than an image has, or as there are, or as leave the clip a frame to make; always a
/// frame and whole groups of the tokenizer's. Resized to the clip's size, whatever their shape.
/// Noise: a .npy file, or the only tensor of a .safetensors file.
/// Embeddings: the same, (tokens, width of the model's text), with a leading 1 or without.
/// Throws Error: a file that cannot be read, too few frames, values that are not finite, contents
/// that are not those that the order says, or a condition or an embedding for a model that takes
/// none.
void read_given_files(ClipOrder& order, const generate::ModelShape& shape);

}  // namespace vfm::generate
