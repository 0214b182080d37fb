// SPDX-License-Identifier: Apache-2.0
#include "media/container/picture_file.h"

#include <cstdint>

#include "base/error.h"
#include "media/libav.h"

namespace vfm::media {
namespace {

struct PictureFormat {
  const char *encoder, *name;
  /// The encoder's format, and the format for FrameExporter, which has no JPEG formats.
  AVPixelFormat taken, made;
  PixelLayout layout;
  AVColorSpace matrix;
  int quality;  ///< qscale; 0: lossless
};

std::string encode_picture(const RgbImage& image, const PictureFormat& format) {
  if (image.width <= 0 || image.height <= 0) fail("the picture to encode is empty");
  init_libav();
  clear_libav_message();
  const AVCodec* encoder = avcodec_find_encoder_by_name(format.encoder);
  if (!encoder) fail("this FFmpeg has no encoder '{}'", format.encoder);
  CodecPtr codec(not_null(avcodec_alloc_context3(encoder)));
  codec->width = image.width;
  codec->height = image.height;
  codec->pix_fmt = format.taken;
  codec->color_range = AVCOL_RANGE_JPEG;
  codec->colorspace = format.matrix;
  codec->time_base = {1, 25};
  codec->thread_count = 1;
  codec->flags |= AV_CODEC_FLAG_BITEXACT;
  if (format.quality > 0) {
    codec->flags |= AV_CODEC_FLAG_QSCALE;
    codec->global_quality = format.quality * FF_QP2LAMBDA;
  }
  if (const int error = avcodec_open2(codec.get(), encoder, nullptr); error < 0)
    fail("cannot encode a picture of {}x{} as {}: {}", image.width, image.height, format.name,
         libav_error_text(error));
  Frame like;
  like.layout = format.layout;
  like.width = image.width;
  like.height = image.height;
  like.full_range = true;
  like.color.matrix = static_cast<std::uint8_t>(format.matrix);
  FrameExporter exporter(like, format.made, image.width, image.height, Siting::center);
  const AvFramePtr frame = exporter.fit(to_frame(image));
  frame->format = format.taken;
  if (format.quality > 0) frame->quality = codec->global_quality;
  const PacketPtr packet(not_null(av_packet_alloc()));
  if (avcodec_send_frame(codec.get(), frame.get()) < 0 ||
      avcodec_receive_packet(codec.get(), packet.get()) < 0)
    fail("cannot encode a picture of {}x{} as {}", image.width, image.height, format.name);
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

}  // namespace

std::string encode_png(const RgbImage& image) {
  return encode_picture(image, {"png", "PNG", AV_PIX_FMT_RGB24, AV_PIX_FMT_RGB24,
                                PixelLayout::rgb24, AVCOL_SPC_UNSPECIFIED, 0});
}

std::string encode_jpeg(const RgbImage& image, int quality) {
  return encode_picture(image, {"mjpeg", "JPEG", AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P,
                                PixelLayout::yuv420, AVCOL_SPC_SMPTE170M, quality});
}

}  // namespace vfm::media
