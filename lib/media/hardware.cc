// SPDX-License-Identifier: Apache-2.0
#include "media/hardware.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

extern "C" {
#include <libavutil/hwcontext.h>
}

#include "base/error.h"
#include "base/log.h"
#include "media/hardware_decoder.h"

namespace vfm::media {
namespace {

// Below this NVDEC takes some codecs and not others; software is fast there.
constexpr int kSmallestSide = 144;

/// The GPU, or why there is none. Never closed: the driver takes everything back at the end.
struct Gpu {
  AVBufferRef* device = nullptr;
  std::string why;
};

Gpu open_gpu() {
  Gpu gpu;
  init_libav();
  clear_libav_message();
  // FFmpeg would load the second with the first video, and only then say that it is missing.
  if (!dlopen("libcuda.so.1", RTLD_NOW)) {
    gpu.why = "there is no NVIDIA driver (libcuda.so.1)";
    return gpu;
  }
  if (!dlopen("libnvcuvid.so.1", RTLD_NOW)) {
    gpu.why = "the NVIDIA driver lacks its part for video (libnvcuvid.so.1)";
    return gpu;
  }
  const int error = av_hwdevice_ctx_create(&gpu.device, AV_HWDEVICE_TYPE_CUDA, nullptr, nullptr, 0);
  if (error < 0) {
    gpu.device = nullptr;
    gpu.why = libav_error_text(error);
  }
  return gpu;
}

const Gpu& gpu() {
  static const Gpu instance = open_gpu();
  return instance;
}

// Whether the standard leaves a decoder no choice.
// Of an odd height FFmpeg fetches half the rows of chroma, rounded down, where one more is there.
// Only VP9 can have such.
template <class Picture>
bool is_even(const Picture& picture) {
  return picture.width % 2 == 0 && picture.height % 2 == 0;
}

bool is_exact(const AVCodecContext& codec) {
  const bool eight = codec.pix_fmt == AV_PIX_FMT_YUV420P || codec.pix_fmt == AV_PIX_FMT_YUVJ420P;
  const bool ten = codec.pix_fmt == AV_PIX_FMT_YUV420P10;
  const auto profile_is = [&](std::initializer_list<int> profiles) {
    return std::ranges::find(profiles, codec.profile) != profiles.end();
  };
  switch (codec.codec_id) {
    case AV_CODEC_ID_H264:
      return eight && profile_is({FF_PROFILE_H264_BASELINE, FF_PROFILE_H264_CONSTRAINED_BASELINE,
                                  FF_PROFILE_H264_MAIN, FF_PROFILE_H264_HIGH});
    case AV_CODEC_ID_HEVC:
      return (eight || ten) && profile_is({FF_PROFILE_HEVC_MAIN, FF_PROFILE_HEVC_MAIN_10});
    case AV_CODEC_ID_VP9:
      return (eight || ten) && profile_is({FF_PROFILE_VP9_0, FF_PROFILE_VP9_2});
    default:
      return false;
  }
}

// Whether this FFmpeg can hand the codec's work to CUDA.
bool is_supported(const AVCodec* codec) {
  for (int i = 0; const AVCodecHWConfig* config = avcodec_get_hw_config(codec, i); ++i)
    if (config->device_type == AV_HWDEVICE_TYPE_CUDA &&
        (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX))
      return true;
  return false;
}

class Nvdec final : public HardwareDecoder {
 public:
  bool attach(AVCodecContext& codec) const override {
    if (!nvdec_decodes_exactly(codec)) return false;
    // FFmpeg's default get_format takes the hardware's format if there is a device, and software's
    // when the hardware does not want the stream: fetch() sees it.
    codec.hw_device_ctx = not_null(av_buffer_ref(gpu().device));
    // The engine works on its own; every thread would only hold a picture of its own there.
    codec.thread_count = 1;
    return true;
  }

  AvFramePtr fetch(AvFramePtr picture) const override {
    if (picture->format != AV_PIX_FMT_CUDA || picture->interlaced_frame || !is_even(*picture))
      return nullptr;
    const AvFramePtr copy(not_null(av_frame_alloc()));
    if (av_hwframe_transfer_data(copy.get(), picture.get(), 0) < 0 ||
        av_frame_copy_props(copy.get(), picture.get()) < 0)
      return nullptr;
    return to_planar(*copy);
  }
};

// Copies `count` samples that stand `step` apart; P010 has its ten bits at the top.
template <class Sample, int kShift>
void copy_row(std::uint8_t* to, const std::uint8_t* from, int count, int step) {
  for (int x = 0; x < count; ++x) {
    Sample sample;
    std::memcpy(&sample, from + std::size_t(x) * step * sizeof sample, sizeof sample);
    sample = static_cast<Sample>(sample >> kShift);
    std::memcpy(to + std::size_t(x) * sizeof sample, &sample, sizeof sample);
  }
}

template <class Sample, int kShift>
void copy_planes(const AVFrame& from, AVFrame& to, int left, int top) {
  for (int p = 0; p < 3; ++p) {
    // Plane 1 of `from` has U and V by turns.
    const int half = p > 0 ? 1 : 0, step = 1 + half, source = half;
    const int width = (to.width + half) >> half, height = (to.height + half) >> half;
    const std::size_t first =
        (std::size_t(left >> half) * step + (p == 2 ? 1 : 0)) * sizeof(Sample);
    for (int y = 0; y < height; ++y)
      copy_row<Sample, kShift>(
          to.data[p] + std::ptrdiff_t{y} * to.linesize[p],
          from.data[source] + std::ptrdiff_t{(top >> half) + y} * from.linesize[source] + first,
          width, step);
  }
}

}  // namespace

bool nvdec_decodes_exactly(const AVCodecContext& codec) {
  const bool progressive =
      codec.field_order == AV_FIELD_PROGRESSIVE || codec.field_order == AV_FIELD_UNKNOWN;
  return progressive && std::min(codec.width, codec.height) >= kSmallestSide && is_even(codec) &&
         is_exact(codec) && is_supported(codec.codec);
}

AvFramePtr to_planar(const AVFrame& picture) {
  const bool eight = picture.format == AV_PIX_FMT_NV12;
  if (!eight && picture.format != AV_PIX_FMT_P010) return nullptr;
  const auto left = static_cast<int>(picture.crop_left), top = static_cast<int>(picture.crop_top);
  if (left % 2 != 0 || top % 2 != 0 || left >= picture.width || top >= picture.height)
    return nullptr;
  AvFramePtr planar(not_null(av_frame_alloc()));
  planar->format = eight ? AV_PIX_FMT_YUV420P : AV_PIX_FMT_YUV420P10;
  planar->width = picture.width - left;
  planar->height = picture.height - top;
  // Rows and planes with the room behind them that Frame promises.
  if (av_frame_get_buffer(planar.get(), 64) < 0) throw std::bad_alloc();
  if (av_frame_copy_props(planar.get(), &picture) < 0) throw std::bad_alloc();
  planar->crop_left = planar->crop_top = 0;
  if (eight)
    copy_planes<std::uint8_t, 0>(picture, *planar, left, top);
  else
    copy_planes<std::uint16_t, 6>(picture, *planar, left, top);
  return planar;
}

std::string why_no_hardware() {
  return gpu().why;
}

const HardwareDecoder* choose_hardware(std::string_view name) {
  static const Nvdec nvdec;
  if (name == "none") return nullptr;
  if (name != "auto" && name != "cuda")
    fail_usage("--hwaccel: '{}' is none of none, auto and cuda", name);
  const std::string why = why_no_hardware();
  if (why.empty()) {
    log_info("decoding video on the GPU where it decodes exactly");
    return &nvdec;
  }
  if (name == "cuda")
    fail_usage("--hwaccel cuda: this machine cannot decode video on a GPU: {}; leave it out", why);
  log_info("decoding video in software: {}", why);
  return nullptr;
}

}  // namespace vfm::media
