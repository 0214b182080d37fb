// SPDX-License-Identifier: Apache-2.0
#include "pack/sample.h"

#include "base/error.h"
#include "io/npy.h"
#include "shard/media_members.h"

namespace vfm::pack {
namespace {

Json meta_of(const shard::Sample& sample) {
  const std::string* json = sample.find("json");
  if (json == nullptr) return Json::object();
  Json meta = parse_json(*json, "its 'json'");
  if (!meta.is_object()) fail("its 'json' is not an object");
  return meta;
}

ChannelSums sums_of(const std::vector<float>& latent, int channels) {
  ChannelSums sums;
  const std::size_t n = latent.size() / static_cast<std::size_t>(channels);
  sums.count = static_cast<double>(n);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double v = latent[c * n + i];
      sum += v;
      squares += v * v;
    }
    sums.sum.push_back(sum);
    sums.squares.push_back(squares);
  }
  return sums;
}

/// The text member and what encoded it. Without one, or with one of no tokens, an empty array.
std::string take_text(const shard::Sample& sample, const Json& meta, LatentOutput& out) {
  const std::string* text = sample.find("text.npy");
  if (text == nullptr) return io::make_npy_half({0, 0}, {});
  const io::NpyHeader header = io::parse_npy(*text, "its 'text.npy'");
  if (header.shape.size() != 2 || header.shape[0] > 1'000'000)
    fail("its 'text.npy' is not tokens x width");
  const std::vector<float> values = io::npy_floats(*text, "its 'text.npy'");
  io::check_halves(values, "its 'text.npy'");
  out.entry.text_tokens = static_cast<int>(header.shape[0]);
  const auto encoder = meta.find("text_encoder");
  out.text_encoder = encoder != meta.end() && encoder->is_object()
                         ? *encoder
                         : Json{{"name", "unknown"}, {"dim", header.shape[1]}};
  if (get_integer(out.text_encoder, "dim") != header.shape[1])
    fail("its 'text.npy' is {} wide, its text encoder {}", header.shape[1],
         out.text_encoder.value("dim", Json()).dump());
  return header.dtype == "<f2" ? *text : io::make_npy_half(header.shape, values);
}

/// Facts of the clip that stay with the latent.
void copy_facts(const Json& meta, const shard::Sample& sample, Json& json) {
  const std::string* caption = sample.find("txt");
  if (meta.contains("caption"))
    json["caption"] = meta["caption"];
  else if (caption != nullptr)
    json["caption"] = *caption;
  for (const char* name : {"caption_source", "original_key", "source", "source_hash", "stream",
                           "time_base", "pts_begin", "pts_end", "bin", "split"})
    if (meta.contains(name)) json[name] = meta[name];
}

/// The member that holds the latent, or the codes that stand for it.
shard::Member encoded(const data::ClipPixels& clip, const std::vector<std::int64_t>& thw,
                      const models::VideoTokenizer& tokenizer, ChannelSums& sums) {
  if (tokenizer.vocabulary() > 0) {
    const std::vector<std::int32_t> codes =
        tokenizer.encode_codes(clip.pixels, clip.frames, clip.height, clip.width);
    if (tokenizer.vocabulary() > 1 << 16)
      return {"codes.npy", io::make_npy("<i4", thw, codes.data(), codes.size() * 4)};
    const std::vector<std::uint16_t> small(codes.begin(), codes.end());
    return {"codes.npy", io::make_npy("<u2", thw, small.data(), small.size() * 2)};
  }
  const std::vector<float> values =
      tokenizer.encode(clip.pixels, clip.frames, clip.height, clip.width);
  io::check_halves(values, "its latent");
  const std::string latent =
      io::make_npy_half({tokenizer.channels(), thw[0], thw[1], thw[2]}, values);
  // What was stored counts, not what was computed.
  sums = sums_of(io::npy_floats(latent, "the latent"), tokenizer.channels());
  return {"latent.npy", latent};
}

}  // namespace

void ChannelSums::add(const ChannelSums& other) {
  sum.resize(other.sum.size());
  squares.resize(other.squares.size());
  for (std::size_t c = 0; c < sum.size(); ++c) {
    sum[c] += other.sum[c];
    squares[c] += other.squares[c];
  }
  count += other.count;
}

Json ChannelSums::to_json() const {
  return {{"count", count}, {"sum", sum}, {"squares", squares}};
}

ChannelSums ChannelSums::from_json(const Json& json, int channels) {
  ChannelSums sums;
  sums.count = json.at("count").get<double>();
  sums.sum = json.at("sum").get<std::vector<double>>();
  sums.squares = json.at("squares").get<std::vector<double>>();
  const auto n = static_cast<std::size_t>(channels);
  if (sums.count > 0 && (sums.sum.size() != n || sums.squares.size() != n))
    fail("the sums are of {} channels", sums.sum.size());
  return sums;
}

LatentOutput make_latent(const shard::Sample& sample, const models::VideoTokenizer& tokenizer,
                         const data::ClipOptions& options) {
  const shard::Member* media = shard::media_member(sample);
  if (media == nullptr) fail("{}", shard::no_media(sample));
  const Json meta = meta_of(sample);
  LatentOutput out;
  const std::string text = take_text(sample, meta, out);
  const data::ClipPixels clip = data::clip_pixels(
      media->data, fmt::format("'{}.{}'", sample.key, media->extension), sample.key, options);
  const int time = tokenizer.time_factor(), space = tokenizer.space_factor();
  const int t = 1 + (clip.frames - 1) / time, h = clip.height / space, w = clip.width / space;
  const shard::Member latent = encoded(clip, {t, h, w}, tokenizer, out.sums);
  out.entry.key = sample.key;
  out.entry.frames = t, out.entry.height = h, out.entry.width = w;
  out.entry.fps = clip.fps;
  Json json = {{"key", sample.key},
               {"media", clip.frames == 1 ? "image" : "video"},
               {"frames", t},
               {"height", h},
               {"width", w},
               {"fps", clip.fps},
               {"text_tokens", out.entry.text_tokens},
               {"pixels", {clip.frames, clip.height, clip.width}},
               {"crop", clip.crop},
               {"first_frame", clip.first_frame}};
  copy_facts(meta, sample, json);
  out.sample = {sample.key, {latent, {"text.npy", text}, {"json", dump_json(json)}}};
  out.entry.xxh3 = shard::hash_sample(out.sample);
  return out;
}

}  // namespace vfm::pack
