// SPDX-License-Identifier: Apache-2.0
#include "media/decode/hardware.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "media/decode/cuda_device.h"
#include "media/decode/hardware_decoder.h"
#include "media/encode/encode_sessions.h"

namespace vfm::media {
namespace {

// For some codecs, NVDEC does not take smaller pictures. Software is fast for them.
constexpr int kSmallestSide = 144;
// Pictures beyond those that the codec needs: the frame that was given last, and the one that waits
// for its successor (DecodeOptions::on_gpu).
constexpr int kKeptPictures = 3;
// Decoders for each engine at once (hardware.h).
constexpr int kSessionsOfEngine = 4;

// For an odd height, FFmpeg fetches a row of chroma too few. Only VP9 has odd sizes.
template <class Picture>
bool is_even(const Picture& picture) {
  return picture.width % 2 == 0 && picture.height % 2 == 0;
}

// Returns true if the standard defines every bit of the pictures.
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

bool is_supported(const AVCodec* codec) {
  for (int i = 0; const AVCodecHWConfig* config = avcodec_get_hw_config(codec, i); ++i)
    if (config->device_type == AV_HWDEVICE_TYPE_CUDA &&
        (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX))
      return true;
  return false;
}

AvFramePtr transfer(const AVFrame& picture) {
  const AvFramePtr copy(not_null(av_frame_alloc()));
  if (av_hwframe_transfer_data(copy.get(), &picture, 0) < 0 ||
      av_frame_copy_props(copy.get(), &picture) < 0)
    return nullptr;
  return to_planar(*copy);
}

bool is_nv12(const AVFrame& picture) {
  if (!picture.hw_frames_ctx || !picture.data[0] || !picture.data[1]) return false;
  const auto* const frames =
      reinterpret_cast<const AVHWFramesContext*>(picture.hw_frames_ctx->data);
  return frames->sw_format == AV_PIX_FMT_NV12 && is_even(picture) && picture.crop_left % 2 == 0 &&
         picture.crop_top % 2 == 0 && picture.crop_left < static_cast<std::size_t>(picture.width) &&
         picture.crop_top < static_cast<std::size_t>(picture.height);
}

class NvdecPicture final : public GpuPicture {
 public:
  explicit NvdecPicture(AvFramePtr picture) : picture_(std::move(picture)) {
    const auto left = static_cast<std::ptrdiff_t>(picture_->crop_left);
    const auto top = static_cast<std::ptrdiff_t>(picture_->crop_top);
    luma_stride = picture_->linesize[0], chroma_stride = picture_->linesize[1];
    luma = picture_->data[0] + top * luma_stride + left;
    chroma = picture_->data[1] + top / 2 * chroma_stride + left;
  }
  Frame fetch(const Frame& frame) const override {
    AvFramePtr planar = transfer(*picture_);
    if (!planar) fail_as(Cause::decode, "the GPU does not give a picture that it decoded");
    Frame copy = FrameImporter().import(std::move(planar));
    copy_facts(frame, copy);
    return copy;
  }

 private:
  AvFramePtr picture_;
};

class Nvdec final : public HardwareDecoder {
 public:
  Nvdec(int first, share::EngineSessions* sessions) : first_(first), sessions_(sessions) {}

  share::EngineSessions* sessions() const override { return sessions_; }
  std::int64_t session_bytes(const AVCodecContext& codec) const override {
    return nvdec_decodes_exactly(codec) ? nvdec_session_bytes(codec) : 0;
  }

  bool attach(AVCodecContext& codec, int number) const override {
    if (!nvdec_decodes_exactly(codec)) return false;
    // FFmpeg's default get_format takes the hardware's format if there is a device. If the hardware
    // refuses the stream, it takes a software format, which fetch() notices.
    const CudaDevice& used = cuda_device(sessions_ ? number : first_);
    codec.hw_device_ctx = not_null(av_buffer_ref(used.device));
    codec.extra_hw_frames = kKeptPictures;
    // The engine does not use threads. Each thread would only hold another picture.
    codec.thread_count = 1;
    return true;
  }

  AvFramePtr fetch(AvFramePtr picture) const override {
    if (picture->format != AV_PIX_FMT_CUDA || picture->interlaced_frame || !is_even(*picture))
      return nullptr;
    return transfer(*picture);
  }

  std::shared_ptr<const GpuPicture> keep(AvFramePtr& picture) const override {
    if (picture->format != AV_PIX_FMT_CUDA || picture->interlaced_frame || !is_nv12(*picture))
      return nullptr;
    return std::make_shared<NvdecPicture>(std::move(picture));
  }

 private:
  int first_;
  share::EngineSessions* sessions_;
};

// P010 has its ten bits at the top.
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
    // Plane 1 of `from` interleaves U and V.
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
  // Rows and planes get the padding that Frame promises.
  if (av_frame_get_buffer(planar.get(), 64) < 0) throw std::bad_alloc();
  if (av_frame_copy_props(planar.get(), &picture) < 0) throw std::bad_alloc();
  planar->crop_left = planar->crop_top = 0;
  if (eight)
    copy_planes<std::uint8_t, 0>(picture, *planar, left, top);
  else
    copy_planes<std::uint16_t, 6>(picture, *planar, left, top);
  return planar;
}

std::shared_ptr<const GpuPicture> HardwareDecoder::keep(AvFramePtr&) const {
  return nullptr;
}

Frame in_system_memory(const Frame& frame) {
  return frame.gpu ? frame.gpu->fetch(frame) : frame;
}

namespace {

/// Returns the number of pictures that a stream of this size may need at once, by the levels of its
/// standard.
std::int64_t pictures_of(AVCodecID id, std::int64_t samples) {
  constexpr std::int64_t kMacroblocks = 696'320, kSamples = 35'651'584;  // Of the highest level.
  constexpr std::int64_t kMost = 16;
  if (id == AV_CODEC_ID_VP9) return 8;
  if (id == AV_CODEC_ID_H264)
    return 2 * std::clamp<std::int64_t>(kMacroblocks / (samples / 256), 1, kMost);
  const std::int64_t kept = samples <= kSamples / 4       ? kMost
                            : samples <= kSamples / 2     ? 12
                            : samples <= kSamples / 4 * 3 ? 8
                                                          : 6;
  return kept + 1;
}

}  // namespace

std::int64_t nvdec_session_bytes(const AVCodecContext& codec) {
  constexpr std::int64_t kDriver = std::int64_t{16} << 20;
  constexpr int kFfmpeg = 2;
  const std::int64_t samples = engine_samples(codec.width, codec.height);
  const std::int64_t bytes = samples * 3 / 2 * (codec.pix_fmt == AV_PIX_FMT_YUV420P10 ? 2 : 1);
  return (pictures_of(codec.codec_id, samples) + kFfmpeg + kKeptPictures) * bytes + kDriver;
}

std::string why_no_hardware(int number) {
  const std::string why = why_no_nvdec_library();
  return why.empty() ? cuda_device(number).why : why;
}

int decode_sessions_of(int number) {
  return kSessionsOfEngine * cuda_device(number).engines;
}

std::shared_ptr<const HardwareDecoder> choose_hardware(std::string_view name,
                                                       const std::vector<int>& gpus,
                                                       share::EngineSessions* sessions) {
  if (name == "none") return nullptr;
  if (name != "auto" && name != "cuda")
    fail_usage("--hwaccel: '{}' is none of none, auto and cuda", name);
  std::string why;
  for (const int number : gpus)
    if (why.empty()) why = why_no_hardware(number);
  if (why.empty()) {
    if (gpus.size() == 1)
      log_info("decoding video on the GPU where it decodes exactly");
    else
      log_info("decoding video on {} GPUs where they decode exactly", gpus.size());
    return std::make_shared<Nvdec>(gpus.front(), sessions);
  }
  if (name == "cuda")
    fail_usage("--hwaccel cuda: this machine cannot decode video on a GPU: {}; leave it out", why);
  log_info("decoding video in software: {}", why);
  return nullptr;
}

}  // namespace vfm::media
