// SPDX-License-Identifier: Apache-2.0
#include "media/encode/encoder_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "media/colour/hdr_metadata.h"
#include "media/container/coded_units.h"
#include "media/encode/encode_sessions.h"

namespace vfm::media {
namespace {

// In the order of default_encoder(). ffv1 is lossless and large, so it is used only by name.
constexpr EncoderKind kKinds[] = {
    // name, preset option, default, even, full range, any layout, own clock, unclosable
    {"libx264", "preset", "veryfast", true, true, false, false, false},
    {"libopenh264", nullptr, nullptr, true, false, false, false, false},
    {"h264_nvenc", "preset", "p5", true, true, false, false, false},
    {"libx265", "preset", "veryfast", true, true, false, false, false},
    {"libsvtav1", "preset", "8", true, true, false, false, true},
    {"libvpx-vp9", "cpu-used", "4", false, true, false, false, false},
    {"mpeg4", nullptr, nullptr, false, false, false, true, false},
    {"ffv1", nullptr, nullptr, false, false, true, false, false},
};

// The side of a picture that all encoders take.
constexpr int kTrialSide = 256;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

std::string list_available() {
  return listed(available_encoders());
}

bool takes_ten_bits(const AVCodec* encoder) {
  for (const AVPixelFormat* format = encoder ? encoder->pix_fmts : nullptr;
       format && *format != AV_PIX_FMT_NONE; ++format)
    if (*format == AV_PIX_FMT_YUV420P10) return true;
  return false;
}

// x264 and x265 report an unknown preset on stderr, so presets are checked here.
bool is_x26x_preset(const std::string& preset) {
  for (const char* name : {"ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow",
                           "slower", "veryslow", "placebo"})
    if (preset == name) return true;
  return false;
}

// Only this variable keeps SVT-AV1 from writing to stderr.
void silence_svt() {
  static std::once_flag once;
  std::call_once(once, [] { ::setenv("SVT_LOG", "1", 0); });
}

int scaled(int quality, double factor, int most) {
  return std::clamp(static_cast<int>(std::lround(quality * factor)), 0, most);
}

void add_parameter(AVDictionary** d, const char* list, const char* name, const std::string& value) {
  av_dict_set(d, list, fmt::format(":{}={}", name, value).c_str(), AV_DICT_APPEND);
}

void set_hdr_metadata(const EncoderKind& kind, const HdrMetadata& hdr, AVDictionary** d) {
  const auto is = [&](const char* name) { return std::strcmp(kind.name, name) == 0; };
  if (is("libx264")) {
    if (hdr.has_screen()) add_parameter(d, "x264-params", "mastering-display", screen_text(hdr));
    if (hdr.has_light()) add_parameter(d, "x264-params", "cll", light_text(hdr));
  } else if (is("libx265")) {
    if (hdr.has_screen()) add_parameter(d, "x265-params", "master-display", screen_text(hdr));
    if (hdr.has_light()) add_parameter(d, "x265-params", "max-cll", light_text(hdr));
  } else if (is("libsvtav1")) {
    if (hdr.has_screen())
      add_parameter(d, "svtav1-params", "mastering-display", screen_text_svt(hdr));
    if (hdr.has_light()) add_parameter(d, "svtav1-params", "content-light", light_text(hdr));
  }
}

void set_quality(const EncoderKind& kind, const EncodeOptions& o, AVCodecContext* codec,
                 AVDictionary** d) {
  const auto is = [&](const char* name) { return std::strcmp(kind.name, name) == 0; };
  if (is("libx264")) {
    av_dict_set_int(d, "crf", o.quality, 0);
    av_dict_set(d, "x264-params", "open-gop=0:cpu-independent=1", 0);
    if (o.splice) {
      add_parameter(d, "x264-params", "sps-id", std::to_string(kSpliceId));
      codec->profile = o.splice->profile, codec->level = o.splice->level;
    }
  } else if (is("h264_nvenc")) {
    av_dict_set(d, "rc", "vbr", 0);
    av_dict_set_int(d, "cq", std::max(1, o.quality), 0);  // 0 means automatic.
    av_dict_set(d, "tune", "hq", 0);
    av_dict_set(d, "strict_gop", "1", 0);
  } else if (is("libopenh264")) {
    av_dict_set(d, "rc_mode", "quality", 0);
    codec->qmin = codec->qmax = std::max(1, o.quality);
  } else if (is("libx265")) {
    av_dict_set_int(d, "crf", scaled(o.quality, 28.0 / 23, 51), 0);
    av_dict_set(d, "x265-params",
                fmt::format("log-level=none:open-gop=0:info=0:bframes=0:frame-threads=1:pools={}",
                            o.threads)
                    .c_str(),
                0);
  } else if (is("libsvtav1")) {
    silence_svt();
    av_dict_set_int(d, "crf", std::max(1, scaled(o.quality, 35.0 / 23, 63)), 0);
    av_dict_set(d, "svtav1-params", fmt::format("lp={}", o.threads).c_str(), 0);
  } else if (is("libvpx-vp9")) {
    av_dict_set_int(d, "crf", scaled(o.quality, 31.0 / 23, 63), 0);
    av_dict_set(d, "deadline", "good", 0);
  } else if (is("mpeg4")) {
    const double scale = std::clamp(std::exp2(1 + (o.quality - 18) / 6.0), 1.0, 31.0);
    codec->flags |= AV_CODEC_FLAG_QSCALE;
    codec->global_quality = static_cast<int>(std::lround(scale * FF_QP2LAMBDA));
  } else if (is("ffv1")) {
    av_dict_set(d, "level", "3", 0);
  }
}

}  // namespace

std::vector<std::string> available_encoders() {
  std::vector<std::string> names;
  for (const EncoderKind& kind : kKinds)
    if (avcodec_find_encoder_by_name(kind.name)) names.emplace_back(kind.name);
  return names;
}

const EncoderKind& encoder_kind(const std::string& name) {
  for (const EncoderKind& kind : kKinds) {
    if (name != kind.name) continue;
    if (!avcodec_find_encoder_by_name(kind.name))
      fail_usage("this FFmpeg has no encoder '{}' (it has: {})", name, list_available());
    return kind;
  }
  fail_usage("unknown encoder '{}' (available: {})", name, list_available());
}

CodecPtr open_encoder(const EncoderKind& kind, const EncodeOptions& o, int width, int height,
                      AVPixelFormat format, const Frame& like, int gpu, AVBufferRef* device) {
  init_libav();
  const AVCodec* encoder = avcodec_find_encoder_by_name(kind.name);
  CodecPtr codec(not_null(avcodec_alloc_context3(encoder)));
  codec->width = width;
  codec->height = height;
  codec->pix_fmt = format;
  codec->sample_aspect_ratio = to_av(o.sample_aspect);
  codec->time_base = kind.own_clock ? AVRational{1, 25} : to_av(o.time_base);
  const bool rate_known = o.frame_rate.num > 0;
  codec->framerate = rate_known && !kind.own_clock ? to_av(o.frame_rate) : AVRational{25, 1};
  const double rate = rate_known ? o.frame_rate.value() : 25;
  codec->gop_size =
      o.gop > 0 ? o.gop : std::clamp(static_cast<int>(std::lround(2 * rate)), 12, 250);
  codec->max_b_frames = 0;
  codec->thread_count = o.threads;
  codec->flags |= AV_CODEC_FLAG_BITEXACT | AV_CODEC_FLAG_GLOBAL_HEADER;
  // FFmpeg's mpeg4 refuses this flag beside scene detection. Its GOPs are closed without B-frames.
  if (!kind.own_clock) codec->flags |= AV_CODEC_FLAG_CLOSED_GOP;
  codec->color_range = like.full_range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  codec->color_primaries = static_cast<AVColorPrimaries>(like.color.primaries);
  codec->color_trc = static_cast<AVColorTransferCharacteristic>(like.color.transfer);
  codec->colorspace = static_cast<AVColorSpace>(like.color.matrix);
  codec->chroma_sample_location = static_cast<AVChromaLocation>(like.chroma_location);

  AVDictionary* dictionary = nullptr;
  set_quality(kind, o, codec.get(), &dictionary);
  set_hdr_metadata(kind, like.hdr, &dictionary);
  if (gpu >= 0) av_dict_set_int(&dictionary, "gpu", gpu, 0);
  if (device) codec->hw_device_ctx = not_null(av_buffer_ref(device));
  if (kind.preset_option)
    av_dict_set(&dictionary, kind.preset_option,
                o.preset.empty() ? kind.default_preset : o.preset.c_str(), 0);
  clear_libav_message();
  const int result = avcodec_open2(codec.get(), encoder, &dictionary);
  av_dict_free(&dictionary);
  if (result < 0)
    fail("cannot open encoder '{}' for {}x{}: {}", kind.name, width, height,
         libav_error_text(result));
  return codec;
}

std::string why_not_opened(const EncoderKind& kind, const std::string& preset, int bit_depth,
                           int gpu) {
  EncodeOptions options;
  options.preset = preset;
  options.time_base = {1, 25};
  try {
    open_encoder(kind, options, kTrialSide, kTrialSide,
                 bit_depth == 10 ? AV_PIX_FMT_YUV420P10 : AV_PIX_FMT_YUV420P, Frame(), gpu);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Returns why the encoder does not open with this preset, or "". May wait for a session. Sets
// `passes` if the encoder may open another time.
static std::string why_refused(const EncoderKind& kind, const std::string& preset, int bit_depth,
                               bool& passes) {
  if (!preset.empty() && !kind.preset_option)
    return fmt::format("encoder '{}' has no presets", kind.name);
  if (!preset.empty() && std::strncmp(kind.name, "libx26", 6) == 0 && !is_x26x_preset(preset))
    return fmt::format("encoder '{}' has no preset '{}' (ultrafast ... medium ... placebo)",
                       kind.name, preset);
  if (kind.unclosable) return {};
  try {
    const auto session = take_encode_session(kind, kTrialSide, kTrialSide);
    return why_not_opened(kind, preset, bit_depth, session ? session->gpu : -1);
  } catch (const Error& error) {
    passes = error.kind() != ErrorKind::device;
    return error.what();
  }
}

void check_encoder(const EncoderKind& kind, const std::string& preset, int bit_depth) {
  static std::mutex mutex;
  static std::map<std::string, std::string> answers;  // "" if the encoder opens.
  if (bit_depth == 10 && !takes_ten_bits(avcodec_find_encoder_by_name(kind.name)))
    fail_usage("encoder '{}' does not take the 10 bits of HDR (those that do: {})", kind.name,
               listed(ten_bit_encoders()));
  const std::string key = fmt::format("{}\n{}\n{}", kind.name, preset, bit_depth);
  std::optional<std::string> answer;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = answers.find(key); found != answers.end()) answer = found->second;
  }
  if (!answer) {
    // Without the mutex: this may wait for a session, and threads with a session may wait for the
    // mutex.
    bool passes = false;
    answer = why_refused(kind, preset, bit_depth, passes);
    const std::lock_guard lock(mutex);
    if (!passes) answers.emplace(key, *answer);
  }
  if (!answer->empty()) fail_usage("{} (encoders: {})", *answer, list_available());
}

static std::string first_that_opens(const std::vector<std::string>& names, int bit_depth) {
  for (const std::string& name : names) {
    const EncoderKind& kind = encoder_kind(name);
    if (kind.any_layout) continue;
    try {
      check_encoder(kind, "", bit_depth);
      return name;
    } catch (const Error& error) {
      static std::map<std::string, bool> logged;
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      if (!std::exchange(logged[name], true)) log_info("{}; trying the next one", error.what());
    }
  }
  fail_usage("this FFmpeg has no encoder{} that works here (known: {})",
             bit_depth == 10 ? " of 10 bits" : "", listed(names));
}

std::string default_encoder() {
  return first_that_opens(available_encoders(), 8);
}

std::vector<std::string> ten_bit_encoders() {
  std::vector<std::string> names;
  for (const char* name : {"libx265", "libx264", "libsvtav1", "libvpx-vp9", "ffv1"})
    if (takes_ten_bits(avcodec_find_encoder_by_name(name))) names.emplace_back(name);
  return names;
}

std::string default_ten_bit_encoder() {
  return first_that_opens(ten_bit_encoders(), 10);
}

}  // namespace vfm::media
