// Inside lib/media only: smart pointers, errors and conversions for FFmpeg's types.
// SPDX-License-Identifier: Apache-2.0
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/audio_fifo.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/rational.h"
#include "media/colour/tone_map.h"
#include "media/frame.h"

namespace vfm::media {

struct LibavDelete {
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(AVBSFContext* p) const { av_bsf_free(&p); }
  void operator()(AVCodecParameters* p) const { avcodec_parameters_free(&p); }
  void operator()(SwsContext* p) const { sws_freeContext(p); }
  void operator()(SwrContext* p) const { swr_free(&p); }
  void operator()(AVDictionary* p) const { av_dict_free(&p); }
};
using PacketPtr = std::unique_ptr<AVPacket, LibavDelete>;
using AvFramePtr = std::unique_ptr<AVFrame, LibavDelete>;
using CodecPtr = std::unique_ptr<AVCodecContext, LibavDelete>;
using BsfPtr = std::unique_ptr<AVBSFContext, LibavDelete>;
using ParametersPtr = std::unique_ptr<AVCodecParameters, LibavDelete>;
using SwsPtr = std::unique_ptr<SwsContext, LibavDelete>;
using SwrPtr = std::unique_ptr<SwrContext, LibavDelete>;

/// Sends FFmpeg's log to base/log.h at debug level. Must be called before FFmpeg opens anything.
void init_libav();
/// Returns FFmpeg's text for a negative return value. If FFmpeg logged an error on this thread
/// since clear_libav_message(), the text also has the last error in parentheses.
std::string libav_error_text(int error);
/// Returns true if `error` means out of memory. FFmpeg also returns this error for sizes that it
/// does not allow.
bool is_out_of_memory(int error);
void clear_libav_message();
bool has_libav_message();
/// Returns the indices of streams that were found on this thread since the last call, and whose
/// data lie in a file that FFmpeg did not open.
std::vector<int> take_outside_streams();
/// Returns the protocol that FFmpeg refused on this thread since the last call, or "".
std::string take_refused_protocol();
struct PixelSize {
  std::int64_t width = 0, height = 0;
};
/// Returns the size of the last picture above max_pixels that a codec refused on this thread since
/// the last call, or 0 x 0. Codecs with a CodecWatch (codec_watch.h) are not included.
PixelSize take_oversize();
/// Returns the size of the last picture that FFmpeg can never decode, and otherwise acts as
/// take_oversize().
PixelSize take_impossible();

/// Returns the value for AVCodecContext::max_pixels, above which codecs refuse pictures. The value
/// exceeds --max-pixels, so the caller must also call check_pixels() (base/input_limits.h).
std::int64_t codec_max_pixels();

template <class T>
T* not_null(T* pointer) {
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

/// Returns a new packet with a copy of `bytes` and without times.
PacketPtr new_packet(std::string_view bytes);
void set_extradata(AVCodecParameters& parameters, std::string_view bytes);

inline Rational from_av(AVRational r) {
  return {r.num, r.den == 0 ? 1 : r.den};
}
/// Throws Error if a number does not fit into 32 bits.
AVRational to_av(Rational r);
AVPixelFormat to_av(PixelLayout layout);
/// If the pixel format `format` is an 8-bit PixelLayout, sets `layout` and returns true.
bool lies_as_frame(int format, PixelLayout& layout);
/// The flags of swscale for results that have the same bits on every machine.
constexpr int kSwsExact = SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP;

/// Returns swscale's coefficient table (sws_getCoefficients) for an H.273 matrix.
const int* sws_matrix(int matrix);

/// A converter from AVFrames to Frames. Pictures whose format is a PixelLayout are not copied. HDR
/// and BT.2020 colours become SDR (tone_map.h), and transparent pixels are blended with black.
/// Frame::pts may be AV_NOPTS_VALUE. Frame::duration is the packet's duration.
class FrameImporter {
 public:
  /// Sets whether HDR frames stay HDR, in the layout yuv420p10.
  void keep_hdr(bool keep) { keep_hdr_ = keep; }
  /// Sets the HDR metadata for frames without HDR metadata.
  void set_hdr(const HdrMetadata& hdr) { hdr_ = hdr; }
  Frame import(AvFramePtr av);

 private:
  Frame refer(AvFramePtr av, PixelLayout layout, bool full_range);
  Frame convert(const AVFrame& av, PixelLayout layout, bool full_range);
  Frame deepen(AvFramePtr av);
  AvFramePtr rescale(const AVFrame& av, AVPixelFormat format, bool full_range);
  SwsPtr sws_;
  int width_ = 0, height_ = 0, format_ = -1, to_ = -1;
  bool full_range_ = false, keep_hdr_ = false;
  HdrMetadata hdr_;
  ToneMapper mapper_;
};

/// The horizontal position of subsampled chroma: on the left luma column, or between two columns.
enum class Siting { left, center };

/// A converter from Frames of any layout, range and size to AVFrames of one format, for encoders.
class FrameExporter {
 public:
  FrameExporter() = default;
  /// Results have the layout, size, range and colours of `like`. `format` is to_av(like.layout) or
  /// an RGB format. If `width` x `height` exceeds the size of `like`, the last column and row are
  /// repeated.
  FrameExporter(const Frame& like, AVPixelFormat format, int width, int height, Siting siting);
  AvFramePtr fit(const Frame& frame);

 private:
  void build(const Frame& frame);
  Frame like_;
  AVPixelFormat format_ = AV_PIX_FMT_NONE;
  int width_ = 0, height_ = 0;
  Siting siting_ = Siting::left;
  SwsPtr sws_;
  Frame built_for_;
};

}  // namespace vfm::media
