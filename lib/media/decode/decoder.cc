// SPDX-License-Identifier: Apache-2.0
#include "media/decode/decoder.h"

#include <algorithm>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/work_limit.h"
#include "media/decode/bounded.h"
#include "media/decode/decoder_state.h"
#include "media/decode/deinterlace.h"
#include "media/decode/orientation.h"

namespace vfm::media {

// Gives the codec the next packet, or the end. Returns false if the codec already has the end.
bool Decoder::State::feed() {
  if (draining) return false;
  while (input->read(packet.get(), corrupt)) {
    if (packet->stream_index != info.stream) {
      av_packet_unref(packet.get());
      continue;
    }
    if (!has_one_time(*input->format())) timeline.lead(*packet);
    irregular = irregular || timeline.restarted();
    if (info.image &&
        split_orientation(exif_orientation({reinterpret_cast<const char*>(packet->data),
                                            static_cast<std::size_t>(packet->size)}),
                          info.rotation, info.mirror))
      log_debug("'{}' is turned as its EXIF data say", source.name);
    if (packet->dts != AV_NOPTS_VALUE) last_dts = packet->dts;
    const int result = avcodec_send_packet(codec.get(), packet.get());
    pictures.packet(*packet, result < 0);
    av_packet_unref(packet.get());
    check_memory(result);
    note_damage(result < 0);
    if (result >= 0) return true;
  }
  draining = true;
  avcodec_send_packet(codec.get(), nullptr);
  // An mp4 lists its samples. Samples after the last one read are beyond the end of the file.
  for (int i = is_mp4() ? avformat_index_get_entries_count(stream) : 0; i-- > 0;) {
    if (avformat_index_get_entry(stream, i)->timestamp <= last_dts) break;
    ++corrupt;
  }
  return true;
}

// Counts a failed call, or a call in which the codec logged an error. A picture that is too large
// is not damage, but ends decoding.
void Decoder::State::note_damage(bool failed) {
  if (watch.errors.exchange(0) > 0 || failed) ++corrupt;
  if (const std::uint64_t size = watch.oversize)
    check_pixels(source.name, static_cast<std::int64_t>(size >> 32),
                 static_cast<std::int64_t>(size & 0xffffffff));
}

// Only for a source of which nothing was decoded. In the middle, such a size is damage.
void Decoder::State::check_possible() const {
  const std::uint64_t said = watch.impossible;
  const PixelSize size = said == 0 ? input->impossible()
                                   : PixelSize{static_cast<std::int64_t>(said >> 32),
                                               static_cast<std::int64_t>(said & 0xffffffff)};
  if (size.width == 0 || size.height == 0) return;
  check_pixels(source.name, size.width, size.height);
  fail_as(Cause::limit, "'{}' has pictures of {}x{}, more pixels than FFmpeg decodes", source.name,
          size.width, size.height);
}

void Decoder::State::check_memory(int result) const {
  if (is_out_of_memory(result))
    fail_as(Cause::memory, "cannot decode '{}': there is not enough memory", source.name);
}

// The limits are computed again when they are reached, because a file may grow while it is read.
void Decoder::State::check_count(const AVFrame& picture) {
  pixels += static_cast<double>(picture.width) * picture.height;
  if (++decoded <= most_decoded && pixels <= most_pixels) return;
  const std::uint64_t bytes = input->bytes();
  most_decoded = most_pictures(bytes);
  most_pixels = most_work(bytes).pixels;
  check_pictures(source.name, decoded, bytes);
  check_work(source.name, {pixels, 0}, bytes);
}

// An mp4 has an index of all samples by decoding time.
bool Decoder::State::is_mp4() const {
  return !options.keyframes_only && info.container.find("mp4") != std::string::npos;
}

std::int64_t Decoder::State::nominal_duration() const {
  if (last_gap > 0) return last_gap;
  if (info.frame_rate.num <= 0) return 1;
  return std::max<std::int64_t>(
      1, av_rescale_q(1, av_inv_q(to_av(info.frame_rate)), stream->time_base));
}

// Returns the duration of the last frame. An mp4 that was read to its end has the end of the
// stream. FFmpeg's packet durations are guesses for some codecs (VP9).
std::int64_t Decoder::State::final_duration(const Frame& last) const {
  const int entries = avformat_index_get_entries_count(stream);
  if (is_mp4() && entries > 0 && stream->duration > 0 &&
      avformat_index_get_entry(stream, entries - 1)->timestamp <= last_dts) {
    const std::int64_t start = stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time;
    const std::int64_t left = start + stream->duration - last.pts;
    // The header of a fragmented file is written before its samples, often with a guess.
    if (info.frames == 0 && left > 10 * nominal_duration()) return nominal_duration();
    if (left > 0) return left;
  }
  return last.duration > 0 ? last.duration : nominal_duration();
}

void Decoder::State::stamp(Frame& frame) {
  const bool missing = frame.pts == AV_NOPTS_VALUE;
  if (missing && !last_pts) frame.pts = 0;
  if (last_pts && (missing || frame.pts <= *last_pts)) {
    frame.pts = *last_pts + nominal_duration();
    irregular = true;
  }
  irregular = irregular || missing;
  if (last_pts) last_gap = frame.pts - *last_pts;
  last_pts = frame.pts;
}

// Decodes the next frame in presentation order. FFmpeg repairs damaged pictures with what its
// threads, a decode before the last seek or the buffers have left, which differs from run to run.
// So after the first error, all frames from there on are decoded again from the start of the file,
// by one thread and into clean buffers. The pictures then depend on the file alone. (AV_EF_EXPLODE
// would report damage, but FFmpeg 5.1 then aborts in MPEG-4.)
bool Decoder::State::decode(Frame& frame) {
  const std::optional<std::int64_t> before = last_pts;
  bool more = decode_once(frame);
  if (on_hardware && (refused || corrupt > 0)) {
    // Software decodes everything unusual. The frames so far are the same.
    note_software();
    options.hardware = nullptr;
    more = decode_again(before, frame);
  }
  if (corrupt == 0 || (careful && from_start)) return more;
  if (!careful) log_debug("'{}' is damaged: decoding with care", source.name);
  careful = true;
  return decode_again(before, frame);
}

// Decodes from the start up to the first frame after `after`.
bool Decoder::State::decode_again(std::optional<std::int64_t> after, Frame& frame) {
  std::optional<Frame> waiting = std::move(pending);
  const std::int64_t place = index;
  open();
  bool more = decode_once(frame);
  while (more && after && frame.pts <= *after)
    more = decode_once(frame);
  pending = std::move(waiting);
  index = place;
  return more;
}

// Returns false if the hardware does not give the picture.
bool Decoder::State::take(AvFramePtr av, Frame& frame) {
  if (on_hardware) {
    // VP9 may change its size between key frames. The next NVDEC decoder then has no references,
    // and reports no error.
    if (hardware_width == 0) hardware_width = av->width, hardware_height = av->height;
    if (av->width != hardware_width || av->height != hardware_height) return false;
    if (options.on_gpu && is_plain_sdr(*av)) {
      frame = frame_on_gpu(*av);
      frame.gpu = options.hardware->keep(av);
      if (frame.gpu) return true;
    }
    av = options.hardware->fetch(std::move(av));
    if (!av) return false;
  }
  frame = importer.import(std::move(av));
  return true;
}

bool Decoder::State::decode_once(Frame& frame) {
  int errors = 0;
  while (!finished) {
    check_stop();
    if (is_left_behind()) throw Stopped();
    AvFramePtr av(not_null(av_frame_alloc()));
    const int result = avcodec_receive_frame(codec.get(), av.get());
    if (result == 0) {
      beat();
      check_pixels(source.name, av->width, av->height);
      check_count(*av);
      pictures.picture(*av);
      // In the careful pass, the damage was counted with the packet.
      const bool marked = av->decode_error_flags != 0 || (av->flags & AV_FRAME_FLAG_CORRUPT);
      note_damage(marked && !careful);
      const auto* side = av_frame_get_side_data(av.get(), AV_FRAME_DATA_DISPLAYMATRIX);
      if (info.image && side) read_matrix(side->data, side->size);
      if (!take(std::move(av), frame)) {
        refused = true;
        return false;
      }
      stamp(frame);
      // The picture needs the frame before, so a seek to it cannot give the same picture.
      irregular = irregular || (frame.interlaced && options.deinterlace);
      any_frame = true;
      return true;
    }
    check_memory(result);
    note_damage(result != AVERROR_EOF && result != AVERROR(EAGAIN));
    if (result == AVERROR_EOF) break;
    if (result == AVERROR(EAGAIN)) {
      if (!feed()) break;
      continue;
    }
    pictures.failure();
    // At the end of the stream, each error uses up a picture. A codec that gives errors for ever
    // must not hang us.
    if (draining && ++errors > 1000) break;
  }
  finished = true;
  return false;
}

// Known only at the end of the whole stream. Some decoders drop pictures without references: at the
// begin of a recording, and after a damaged key frame.
std::int64_t Decoder::State::lost() const {
  return finished && from_start && !options.keyframes_only && !info.image ? pictures.lost() : 0;
}

bool Decoder::State::fetch(Frame& frame) {
  if (!pending) {
    Frame first;
    if (!decode(first)) return false;
    pending = std::move(first);
  }
  Frame after;
  const bool more = decode(after);
  frame = std::move(*pending);
  frame.duration = more ? after.pts - frame.pts : final_duration(frame);
  if (frame.interlaced && options.deinterlace && !options.keyframes_only) {
    const Frame stored = frame;
    frame = deinterlace(earlier ? &*earlier : nullptr, stored, more ? &after : nullptr);
    earlier = stored;
  } else {
    earlier.reset();
  }
  pending.reset();
  if (more) pending = std::move(after);
  frame.index = index++;
  return true;
}

// Starts at the last key frame at or before `aim`, and decodes up to `target`. Returns false if
// this does not prove that the frames from `target` on are those of a decode from the start.
bool Decoder::State::try_seek(std::int64_t target, std::int64_t aim) {
  if (!input->seek(info.stream, aim)) return false;
  avcodec_flush_buffers(codec.get());
  draining = finished = from_start = false;
  last_pts.reset();
  last_gap = decoded = 0;
  pixels = 0;
  pending.reset();
  index = 0;
  // Frames shown before the first key frame may lack references (open GOP). Only a key frame at or
  // before the target makes all frames from the target on exact.
  Frame frame;
  bool proven = false;
  while (decode(frame)) {
    if (irregular || careful) return false;
    proven = proven || (frame.key && frame.pts <= target);
    if (frame.pts < target) continue;
    if (proven) pending = std::move(frame);
    return proven;
  }
  return proven;
}

bool Decoder::State::seeks() const {
  constexpr int kUnsafe = AVFMT_NOTIMESTAMPS | AVFMT_TS_DISCONT;
  return !info.image && !irregular && !careful && !(input->format()->iformat->flags & kUnsafe);
}

void Decoder::State::seek(std::int64_t target) {
  // For a target less than a second ahead, going on is cheaper than a seek.
  const auto second =
      std::max<std::int64_t>(1, av_rescale_q(1, AVRational{1, 1}, stream->time_base));
  const bool near = pending && pending->pts <= target && target - pending->pts < second;
  if (!near) {
    bool found = false, possible = seeks();
    const std::int64_t start = stream->start_time == AV_NOPTS_VALUE ? 0 : stream->start_time;
    for (std::int64_t back = 0; possible && !found; back = std::max(second, 4 * back)) {
      possible = target - back > start;
      found = possible && try_seek(target, target - back);
    }
    if (!found) rewind();
  }
  Frame frame;
  while (!pending || pending->pts < target) {
    earlier.reset();
    if (pending && pending->interlaced && options.deinterlace) earlier = *pending;
    pending.reset();
    if (!decode(frame)) break;
    pending = std::move(frame);
  }
  index = 0;
}

}  // namespace vfm::media
