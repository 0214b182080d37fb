// SPDX-License-Identifier: Apache-2.0
#include "media/png.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

std::string encode_still(const char* name, const RgbImage& image, const Frame& like,
                         AVPixelFormat format, double quantizer) {
  init_libav();
  clear_libav_message();
  const AVCodec* encoder = avcodec_find_encoder_by_name(name);
  if (!encoder) fail("this FFmpeg has no encoder '{}'", name);
  CodecPtr codec(not_null(avcodec_alloc_context3(encoder)));
  codec->width = image.width;
  codec->height = image.height;
  codec->pix_fmt = format;
  codec->color_range = AVCOL_RANGE_JPEG;
  codec->time_base = {1, 25};
  codec->thread_count = 1;
  codec->flags |= AV_CODEC_FLAG_BITEXACT;
  if (quantizer > 0) {
    codec->flags |= AV_CODEC_FLAG_QSCALE;
    codec->qmin = 1;
    codec->global_quality = static_cast<int>(std::lround(quantizer * FF_QP2LAMBDA));
  }
  if (const int error = avcodec_open2(codec.get(), encoder, nullptr); error < 0)
    fail("cannot encode a picture of {}x{} as {}: {}", image.width, image.height, name,
         libav_error_text(error));
  FrameExporter exporter(like, format, image.width, image.height, Siting::center);
  const AvFramePtr frame = exporter.fit(to_frame(image));
  frame->quality = codec->global_quality;
  const PacketPtr packet(not_null(av_packet_alloc()));
  if (avcodec_send_frame(codec.get(), frame.get()) < 0 ||
      avcodec_receive_packet(codec.get(), packet.get()) < 0)
    fail("cannot encode a picture of {}x{} as {}", image.width, image.height, name);
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

Frame shape_of(const RgbImage& image, PixelLayout layout) {
  if (image.width <= 0 || image.height <= 0) fail("the picture to encode is empty");
  Frame like;
  like.layout = layout;
  like.width = image.width;
  like.height = image.height;
  like.full_range = true;
  like.color.matrix = 5;  // JFIF's
  return like;
}

}  // namespace

std::string encode_png(const RgbImage& image) {
  return encode_still("png", image, shape_of(image, PixelLayout::rgb24), AV_PIX_FMT_RGB24, 0);
}

std::string encode_jpeg(const RgbImage& image, int quality) {
  // The IJG scale sets the tables to 50/q or 2 - q/50 of the standard's; FFmpeg's scale 8 is about
  // them.
  const double q = std::clamp(quality, 1, 100);
  const double scale = q < 50 ? 50 / q : 2 - q / 50;
  return encode_still("mjpeg", image, shape_of(image, PixelLayout::yuv420), AV_PIX_FMT_YUVJ420P,
                      std::clamp(8 * scale, 1.0, 31.0));
}

}  // namespace vfm::media
