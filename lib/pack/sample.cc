// SPDX-License-Identifier: Apache-2.0
#include "pack/sample.h"

#include <utility>

#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/rounding.h"
#include "data/sample_text.h"
#include "io/npy.h"
#include "shard/media_members.h"

namespace vfm::pack {
namespace {

void copy_facts(const Json& meta, const shard::Sample& sample, Json& json) {
  const std::string* caption = sample.find("txt");
  if (meta.contains("caption"))
    json["caption"] = meta["caption"];
  else if (caption != nullptr)
    json["caption"] = *caption;
  for (const char* name :
       {"caption_source", "original_key", "source", "source_hash", "stream", "bin", "split"})
    if (meta.contains(name)) json[name] = meta[name];
}

void add_times(const Json& meta, const data::ClipPixels& window, Json& json) {
  json["window"] = window.window;
  json["windows"] = window.windows;
  json["clip_begin"] = six_digits(window.begin);
  json["clip_end"] = six_digits(window.end);
  if (const auto begin = get_number(meta, "begin")) {
    json["begin"] = six_digits(*begin + window.begin);
    json["end"] = six_digits(*begin + window.end);
  }
}

/// Returns the member with the latent or the codes. Sets `sums` if it is a latent.
shard::Member member_of(const EncodedWindow& made, const std::vector<std::int64_t>& thw,
                        const models::VideoTokenizer& tokenizer, ChannelSums& sums) {
  const auto places = static_cast<std::size_t>(thw[0] * thw[1] * thw[2]);
  const bool discrete = tokenizer.vocabulary() > 0;
  const auto channels = static_cast<std::size_t>(tokenizer.channels());
  if (discrete ? made.codes.size() != places : made.latent.size() != channels * places)
    fail("its latent has another size than {} x {} x {}", thw[0], thw[1], thw[2]);
  if (discrete) {
    const std::vector<std::int32_t>& codes = made.codes;
    if (tokenizer.vocabulary() > 1 << 16)
      return {"codes.npy", io::make_npy("<i4", thw, codes.data(), codes.size() * 4)};
    const std::vector<std::uint16_t> small(codes.begin(), codes.end());
    return {"codes.npy", io::make_npy("<u2", thw, small.data(), small.size() * 2)};
  }
  io::check_halves(made.latent, "its latent");
  const std::string latent =
      io::make_npy_half({tokenizer.channels(), thw[0], thw[1], thw[2]}, made.latent);
  // The sums are of the stored halves, not of the computed floats.
  sums = ChannelSums::of(io::npy_floats(latent, "the latent"), tokenizer.channels());
  return {"latent.npy", latent};
}

/// Returns what `read` returns. If `read` throws an Error with no cause, the cause becomes
/// `format`.
template <class Read>
auto of_members(Read read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::runtime || error.cause() != Cause::other) throw;
    throw Error(error.what(), Cause::format);
  }
}

}  // namespace

std::size_t held_bytes(const LatentOutput& output) {
  std::size_t bytes = vfm::held_bytes(output.text_encoder);
  for (const shard::Member& member : output.sample.members)
    bytes += member.data.size();
  return bytes;
}

namespace {

/// `whole` is the clip's text, for windows without a text of their own.
LatentOutput make_window(const shard::Sample& sample, const Json& meta,
                         const data::SampleText& whole, const EncodedWindow& made,
                         const models::VideoTokenizer& tokenizer) {
  LatentOutput out;
  const data::ClipPixels& clip = made.clip;
  const data::TextPart part{clip.begin, clip.end};
  const auto own = of_members([&] { return data::text_of_part(sample, meta, part); });
  const std::string caption = of_members([&] { return data::caption_of_part(meta, part); });
  const data::SampleText& text = own ? *own : whole;
  const int time = tokenizer.time_factor(), space = tokenizer.space_factor();
  const int t = 1 + (clip.frames - 1) / time, h = clip.height / space, w = clip.width / space;
  const shard::Member latent = member_of(made, {t, h, w}, tokenizer, out.sums);
  out.text_encoder = text.encoder;
  out.entry.text_tokens = text.tokens;
  out.entry.key = data::window_key(sample.key, clip.window, clip.windows);
  out.entry.frames = t, out.entry.height = h, out.entry.width = w;
  out.entry.fps = clip.fps;
  Json json = {{"key", out.entry.key},
               {"clip", sample.key},
               {"media", clip.frames == 1 ? "image" : "video"},
               {"frames", t},
               {"height", h},
               {"width", w},
               {"fps", clip.fps},
               {"text_tokens", out.entry.text_tokens},
               {"pixels", {clip.frames, clip.height, clip.width}},
               {"crop", clip.crop},
               {"first_frame", clip.first_frame}};
  if (clip.end > 0) add_times(meta, clip, json);
  copy_facts(meta, sample, json);
  if (!caption.empty()) json[own ? "caption" : "window_caption"] = caption;
  out.sample = {out.entry.key, {latent, {"text.npy", text.npy}, {"json", dump_json(json)}}};
  out.entry.xxh3 = shard::hash_sample(out.sample);
  return out;
}

}  // namespace

ClipLatents make_latents(const shard::Sample& sample, const models::VideoTokenizer& tokenizer,
                         const LatentEncoder& encoder) {
  const shard::Member* media = shard::media_member(sample);
  if (media == nullptr) fail_as(Cause::missing, "{}", shard::no_media(sample));
  const Json meta = of_members([&] { return data::sample_meta(sample); });
  const data::SampleText text = of_members([&] { return data::sample_text(sample, meta); });
  EncodedClip made = encoder.encode(media->data, sample.key + "." + media->extension, sample.key);
  ClipLatents out;
  out.frames = made.frames;
  for (EncodedWindow& window : made.windows) {
    out.windows.push_back(make_window(sample, meta, text, window, tokenizer));
    window = {};  // frees the floats, twice the size of the stored halves
  }
  return out;
}

}  // namespace vfm::pack
