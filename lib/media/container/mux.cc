// SPDX-License-Identifier: Apache-2.0
#include "media/container/mux.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "media/colour/hdr_metadata.h"

namespace vfm::media {
namespace {

constexpr int kBuffer = 64 * 1024;

// A position in the file. The muxer writes through one cursor. To move the moov box to the front,
// it reads through a second one.
struct Cursor {
  std::string* file;
  std::size_t position = 0;
};

#if LIBAVFORMAT_VERSION_MAJOR >= 61  // FFmpeg 7.
using Written = const std::uint8_t;
#else
using Written = std::uint8_t;
#endif

int write_bytes(void* opaque, Written* data, int size) {
  auto* cursor = static_cast<Cursor*>(opaque);
  const std::size_t end = cursor->position + static_cast<std::size_t>(size);
  if (end > cursor->file->size()) {
    try {
      cursor->file->resize(end);
    } catch (const std::exception&) {
      return AVERROR(ENOMEM);
    }
  }
  std::memcpy(cursor->file->data() + cursor->position, data, static_cast<std::size_t>(size));
  cursor->position = end;
  return size;
}

int read_bytes(void* opaque, std::uint8_t* data, int size) {
  auto* cursor = static_cast<Cursor*>(opaque);
  if (cursor->position >= cursor->file->size()) return AVERROR_EOF;
  const std::size_t take =
      std::min(static_cast<std::size_t>(size), cursor->file->size() - cursor->position);
  std::memcpy(data, cursor->file->data() + cursor->position, take);
  cursor->position += take;
  return static_cast<int>(take);
}

std::int64_t seek_bytes(void* opaque, std::int64_t offset, int whence) {
  auto* cursor = static_cast<Cursor*>(opaque);
  const auto size = static_cast<std::int64_t>(cursor->file->size());
  switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:
      return size;
    case SEEK_SET:
      break;
    case SEEK_CUR:
      offset += static_cast<std::int64_t>(cursor->position);
      break;
    case SEEK_END:
      offset += size;
      break;
    default:
      return AVERROR(EINVAL);
  }
  if (offset < 0) return AVERROR(EINVAL);
  cursor->position = static_cast<std::size_t>(offset);
  return offset;
}

AVIOContext* open_cursor(std::string* file, bool write) {
  auto* cursor = new Cursor{file};
  auto* buffer = static_cast<unsigned char*>(av_malloc(kBuffer));
  AVIOContext* io = buffer ? avio_alloc_context(buffer, kBuffer, write, cursor, read_bytes,
                                                write_bytes, seek_bytes)
                           : nullptr;
  if (!io) {
    av_free(buffer);
    delete cursor;
  }
  return io;
}

void close_cursor(AVIOContext* io) {
  if (!io) return;
  avio_flush(io);
  delete static_cast<Cursor*>(io->opaque);
  av_freep(&io->buffer);
  avio_context_free(&io);
}

int on_open(AVFormatContext* context, AVIOContext** io, const char*, int flags, AVDictionary**) {
  *io = open_cursor(static_cast<std::string*>(context->opaque), (flags & AVIO_FLAG_WRITE) != 0);
  return *io ? 0 : AVERROR(ENOMEM);
}
int on_close(AVFormatContext*, AVIOContext* io) {
  close_cursor(io);
  return 0;
}

struct CloseMuxer {
  void operator()(AVFormatContext* context) const {
    close_cursor(context->pb);
    context->pb = nullptr;
    avformat_free_context(context);
  }
};
using Muxer = std::unique_ptr<AVFormatContext, CloseMuxer>;

void check(int result) {
  if (result < 0) fail("cannot write mp4: {}", libav_error_text(result));
}

AVStream* add_stream(AVFormatContext* muxer, const MuxStream& from) {
  AVStream* stream = not_null(avformat_new_stream(muxer, nullptr));
  check(avcodec_parameters_copy(stream->codecpar, from.parameters.get()));
  // mp4 has two tags for HEVC. Apple's players know only hvc1.
  stream->codecpar->codec_tag =
      from.parameters->codec_id == AV_CODEC_ID_HEVC ? MKTAG('h', 'v', 'c', '1') : 0;
  stream->time_base = from.time_base;
  stream->sample_aspect_ratio = stream->codecpar->sample_aspect_ratio = from.sample_aspect;
  stream->avg_frame_rate = from.frame_rate;
  if (from.rotation != 0) {
    constexpr std::size_t kBytes = 9 * sizeof(std::int32_t);
    auto* matrix = not_null(av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, kBytes));
    av_display_rotation_set(reinterpret_cast<std::int32_t*>(matrix), from.rotation);
  }
  set_hdr(*stream, from.hdr);
  return stream;
}

// At equal decoding times, the packet of the first stream comes first.
void write_packets(AVFormatContext* muxer, const std::vector<const MuxStream*>& streams) {
  PacketPtr copy(not_null(av_packet_alloc()));
  std::vector<std::size_t> next(streams.size());
  const auto is_earlier = [&](std::size_t a, std::size_t b) {
    return av_compare_ts(streams[a]->packets[next[a]]->dts, streams[a]->time_base,
                         streams[b]->packets[next[b]]->dts, streams[b]->time_base) < 0;
  };
  for (;;) {
    std::size_t first = streams.size();
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (next[i] == streams[i]->packets.size()) continue;
      if (first == streams.size() || is_earlier(i, first)) first = i;
    }
    if (first == streams.size()) return;
    const MuxStream& from = *streams[first];
    check(av_packet_ref(copy.get(), from.packets[next[first]++].get()));
    copy->stream_index = static_cast<int>(first);
    av_packet_rescale_ts(copy.get(), from.time_base, muxer->streams[first]->time_base);
    check(av_interleaved_write_frame(muxer, copy.get()));
  }
}

// The muxer's own rule for the timescale of a track.
std::int64_t track_clock(AVRational time_base) {
  std::int64_t clock = time_base.den;
  while (clock < 10000)
    clock *= 2;
  return clock;
}

std::string mux(const char* format, const std::vector<const MuxStream*>& streams) {
  init_libav();
  clear_libav_message();
  std::string file;
  AVFormatContext* raw = nullptr;
  check(avformat_alloc_output_context2(&raw, nullptr, format, nullptr));
  Muxer muxer(raw);
  raw->opaque = &file;
  raw->io_open = on_open;
  raw->io_close2 = on_close;
  raw->pb = not_null(open_cursor(&file, true));
  raw->flags |= AVFMT_FLAG_BITEXACT;
  raw->avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED;
  for (const MuxStream* stream : streams)
    add_stream(raw, *stream);

  AVDictionary* options = nullptr;
  av_dict_set(&options, "movflags", "+faststart+write_colr", 0);
  // Edit lists count in the movie timescale. The default of 1 ms would cut the last frame short.
  av_dict_set_int(&options, "movie_timescale", track_clock(streams[0]->time_base), 0);
  const int result = avformat_write_header(raw, &options);
  av_dict_free(&options);
  check(result);
  write_packets(raw, streams);
  check(av_write_trailer(raw));
  close_cursor(raw->pb);
  raw->pb = nullptr;
  return file;
}

}  // namespace

bool mp4_can_hold(AVCodecID codec) {
  const AVOutputFormat* mp4 = av_guess_format("mp4", nullptr, nullptr);
  // FFmpeg 7 allows PCM in mp4, but few readers expect it.
  const bool pcm = av_get_exact_bits_per_sample(codec) > 0;
  return mp4 && !pcm && avformat_query_codec(mp4, codec, FF_COMPLIANCE_NORMAL) == 1;
}

bool mp4_takes(const MuxStream& sound) {
  try {
    mux("mp4", {&sound});
    return true;
  } catch (const Error& error) {
    log_debug("{}: encoding it instead", error.what());
    return false;
  }
}

std::string mux_mp4(const MuxStream& video, const MuxStream* audio) {
  std::vector<const MuxStream*> streams{&video};
  if (audio) streams.push_back(audio);
  return mux(mp4_can_hold(video.parameters->codec_id) ? "mp4" : "mov", streams);
}

}  // namespace vfm::media
