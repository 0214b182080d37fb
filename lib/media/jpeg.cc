// SPDX-License-Identifier: Apache-2.0
#include "media/jpeg.h"

#include "base/error.h"
#include "media/libav.h"

namespace vfm::media {

std::string encode_jpeg(const RgbImage& image, int quality) {
  if (image.width <= 0 || image.height <= 0) fail("the picture to encode is empty");
  init_libav();
  clear_libav_message();
  const AVCodec* encoder = avcodec_find_encoder_by_name("mjpeg");
  if (!encoder) fail("this FFmpeg has no encoder 'mjpeg'");
  CodecPtr codec(not_null(avcodec_alloc_context3(encoder)));
  codec->width = image.width;
  codec->height = image.height;
  codec->pix_fmt = AV_PIX_FMT_YUVJ420P;
  codec->color_range = AVCOL_RANGE_JPEG;
  codec->colorspace = AVCOL_SPC_SMPTE170M;
  codec->time_base = {1, 25};
  codec->thread_count = 1;
  codec->flags |= AV_CODEC_FLAG_BITEXACT | AV_CODEC_FLAG_QSCALE;
  codec->global_quality = quality * FF_QP2LAMBDA;
  if (const int error = avcodec_open2(codec.get(), encoder, nullptr); error < 0)
    fail("cannot encode a picture of {}x{} as JPEG: {}", image.width, image.height,
         libav_error_text(error));
  Frame like;
  like.layout = PixelLayout::yuv420;
  like.width = image.width;
  like.height = image.height;
  like.full_range = true;
  like.color.matrix = AVCOL_SPC_SMPTE170M;
  FrameExporter exporter(like, AV_PIX_FMT_YUV420P, image.width, image.height, Siting::center);
  const AvFramePtr frame = exporter.fit(to_frame(image));
  frame->format = AV_PIX_FMT_YUVJ420P;
  frame->quality = codec->global_quality;
  const PacketPtr packet(not_null(av_packet_alloc()));
  if (avcodec_send_frame(codec.get(), frame.get()) < 0 ||
      avcodec_receive_packet(codec.get(), packet.get()) < 0)
    fail("cannot encode a picture of {}x{} as JPEG", image.width, image.height);
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

}  // namespace vfm::media
