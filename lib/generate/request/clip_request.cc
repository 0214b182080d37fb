// SPDX-License-Identifier: Apache-2.0
#include "generate/request/clip_request.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"

namespace vfm::generate {
namespace {

// Refuses requests whose sizes overflow long before memory runs out.
constexpr int kMostFrames = 100000;
constexpr std::int64_t kMostTokens = 1 << 28;  // latent pixels of a clip

int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

using models::GivenFramesBy;

void ModelShape::take(const models::NetworkConfig& network, const ModelFacts& facts) {
  autoregressive = false;
  given = models::given_by(network);
  if (given == GivenFramesBy::clean_time && !facts.clean_time) given = GivenFramesBy::none;
  continues_only = given == GivenFramesBy::mask_and_latent;
  in_channels = network.in_channels;
  out_channels = network.out_channels;
  patch = network.patch_size;
  text_width = network.text_embed_dim;
}

void ModelShape::take(const models::DecoderConfig& decoder) {
  autoregressive = true;
  codes = decoder.vocabulary;
  continues_only = !decoder.start_token;
  text_width = decoder.text_embed_dim;
}

Extents ModelShape::latent_of(const ClipRequest& request) const {
  const int t = 1 + (request.frames - 1 + time_factor - 1) / time_factor;
  return {round_up(t, patch[0]), round_up(request.height, space_factor * patch[1]) / space_factor,
          round_up(request.width, space_factor * patch[2]) / space_factor};
}

Extents ModelShape::pixels_of(const Extents& latent) const {
  return {1 + (latent.frames - 1) * time_factor, latent.height * space_factor,
          latent.width * space_factor};
}

bool ModelShape::takes_picture() const {
  return given == GivenFramesBy::clean_time || given == GivenFramesBy::mask_and_latent;
}

int ModelShape::channels_in() const {
  if (given == GivenFramesBy::mark) return channels + 1;
  // A pixel frame of a latent frame has a channel of the mask.
  return given == GivenFramesBy::mask_and_latent ? 2 * channels + time_factor : channels;
}

void ModelShape::check_parts(const ModelFacts& facts, const std::string& folder) const {
  if (autoregressive && codes != vocabulary)
    fail("'{}' does not fit together: tokenizer and model have {} and {} codes", folder, vocabulary,
         codes);
  if (!autoregressive) {
    const std::size_t scaled = facts.scale ? facts.scale->channels() : 0;
    if (scaled != static_cast<std::size_t>(channels) || in_channels != channels_in() ||
        out_channels != channels)
      fail(
          "'{}' does not fit together: tokenizer, statistics and model have {}, {} and {} channels",
          folder, channels, scaled, in_channels);
  }
  if (reads_text() && encoder_width != text_width)
    fail("'{}' does not fit together: text encoder and model have widths {} and {}", folder,
         encoder_width, text_width);
}

void ModelShape::check_size(const ClipRequest& request) const {
  if (request.frames < 1 || request.frames > kMostFrames || request.height < 1 ||
      request.width < 1 || std::max(request.height, request.width) > kLargestSide)
    fail_usage(
        "a clip of {} of {}x{} is not possible: it must have 1 to {} frames, and sides of 1 to {} "
        "pixels",
        counted(request.frames, "frame"), request.width, request.height, kMostFrames, kLargestSide);
  if (!(request.fps > 0 && std::isfinite(request.fps)))
    fail_usage("{} frames a second: must be positive", request.fps);
  const Extents latent = latent_of(request);
  if (std::int64_t{latent.frames} * latent.height * latent.width > kMostTokens)
    fail_usage(
        "a clip of {} of {}x{} is {} x {} x {} latents, more than {}: make it smaller or shorter",
        counted(request.frames, "frame"), request.width, request.height, latent.frames,
        latent.height, latent.width, kMostTokens);
}

void ModelShape::check(const ClipRequest& request) const {
  check_size(request);
  const bool negative = !request.negative.empty() || request.negative_embedding;
  if (autoregressive && (request.noise || negative))
    fail_usage("{} for diffusion models, and this one is autoregressive",
               request.noise ? "a first noise is" : "negative prompts are");
  if (continues_only && !request.given)
    fail_usage(
        "the model only continues videos: give the frames that the clip begins with (--condition)");
  check_text(request);
  const Extents size = latent_of(request);
  const std::size_t values = static_cast<std::size_t>(channels) * size.frames * size.height *
                             static_cast<std::size_t>(size.width);
  if (request.noise && request.noise->size() != values)
    fail_usage("the noise has {} values, the clip's latent is {} x {} x {} x {}",
               request.noise->size(), channels, size.frames, size.height, size.width);
  if (request.given) check_given(request);
}

void ModelShape::check_takes_embeddings() const {
  if (!reads_text()) fail_usage("the model was trained without text and takes no embeddings");
}

void ModelShape::check_text(const ClipRequest& request) const {
  if (!reads_text() && !(request.prompt.empty() && request.negative.empty()))
    fail_usage("the model was trained without text: its prompts must be empty");
  for (const auto& embedding : {request.embedding, request.negative_embedding}) {
    if (!embedding) continue;
    check_takes_embeddings();
    if (embedding->dim != text_width)
      fail_usage("the embedding is {} wide, and the model's text {}", embedding->dim, text_width);
  }
  if (!foreign_text) return;
  const bool negative = !request.negative_embedding && !request.negative.empty();
  if (negative || (!request.embedding && !request.prompt.empty()))
    fail_usage(
        "the model was trained on text embeddings that vfm-embed did not make: it cannot read a{} "
        "prompt; give the embedding of the text as '{}' of a JSON line",
        negative ? " negative" : "", negative ? "negative_embedding" : "embedding");
}

void ModelShape::check_takes_frames() const {
  if (!video_to_world())
    fail_usage(
        "the model takes no condition: it is not a video-to-world model, which is trained with "
        "diffusion.condition_frames");
}

void ModelShape::check_given(const ClipRequest& request) const {
  check_takes_frames();
  const int frames = request.given->frames;
  if (frames >= request.frames)
    fail_usage("{} of the condition leave nothing to make: the clip has {}",
               counted(frames, "frame"), counted(request.frames, "frame"));
  if (takes_picture() && frames > 1)
    fail_usage("{} of the condition cannot be used: the model begins with 1",
               counted(frames, "frame"));
  if (frames < 1 || (frames - 1) % time_factor != 0)
    fail_usage("{} of the condition cannot be used: give 1, {}, {}, ...", counted(frames, "frame"),
               1 + time_factor, 1 + 2 * time_factor);
  const std::size_t expected =
      std::size_t{3} * static_cast<std::size_t>(frames) * request.height * request.width;
  if (request.given->pixels.size() != expected)
    fail_usage("{} values of condition frames, {} were expected", request.given->pixels.size(),
               expected);
}

}  // namespace vfm::generate
