// SPDX-License-Identifier: Apache-2.0
#include "media/container/input.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/address.h"
#include "base/error.h"
#include "base/input_limits.h"
#include "base/lfs_pointer.h"
#include "base/stop.h"
#include "base/units.h"
#include "base/work_limit.h"
#include "io/remote/address.h"
#include "media/container/container.h"
#include "media/container/far_bytes.h"
#include "media/decode/bounded.h"

namespace vfm::media {
namespace {

// FFmpeg opens these addresses itself, so there are no bytes to probe.
bool is_session(const std::string& scheme) {
  return scheme == "rtsp" || scheme == "rtp" || scheme == "sap";
}

// In a tile grid, each stream is a tile, not a whole picture.
bool has_picture(const AVFormatContext& format) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(61, 1, 100)
  for (unsigned i = 0; i < format.nb_stream_groups; ++i)
    if (format.stream_groups[i]->type == AV_STREAM_GROUP_PARAMS_TILE_GRID) return false;
#endif
  return format.nb_streams > 0;
}

// FLV and MPEG program streams announce a stream by its first packet. MPEG transport streams have a
// table of streams.
bool meets_streams_late(const AVFormatContext& format) {
  return (format.ctx_flags & AVFMTCTX_NOHEADER) != 0 &&
         std::strcmp(format.iformat->name, "mpegts") != 0;
}

// Returns whether the server answered that it does not give the file. It will say so again.
bool is_rejected(int error) {
  return error == AVERROR_HTTP_BAD_REQUEST || error == AVERROR_HTTP_UNAUTHORIZED ||
         error == AVERROR_HTTP_FORBIDDEN || error == AVERROR_HTTP_NOT_FOUND;
}

// Returns the name without the query of an address ("?key=1"), so that it ends with the extension.
// Keys of buckets have no query.
std::string hint_of(const std::string& name, const std::string& scheme) {
  return scheme.empty() || io::is_bucket(name) ? name : name.substr(0, name.find_first_of("?#"));
}

}  // namespace

Input::Input(const Source& source) : source_(source) {
  init_libav();
  clear_libav_message();
  try {
    open();
    if ((!remote_ || (far_ && far_->jumps())) && meets_streams_late(*format_)) {
      // FFmpeg would decode streams that appear with the first packets without our limits. So a
      // first pass finds the streams, and a second pass begins again.
      meet_streams();
      find_streams();
      close();
      open();
    }
    find_streams();
  } catch (...) {
    close();
    throw;
  }
}

void Input::open() {
  format_ = not_null(avformat_alloc_context());
  const std::string scheme = source_.bytes.data() ? "" : url_scheme(source_.name);
  format_->interrupt_callback = {on_interrupt, this};
  // Timeline handles times that restart. FFmpeg would take them for a wraparound of a 33-bit clock,
  // and shift them by a day.
  format_->correct_ts_overflow = 0;
  format_->protocol_whitelist = not_null(av_strdup(allowed_protocols(scheme).c_str()));
  format_->format_whitelist = not_null(av_strdup(allowed_formats().c_str()));
  // Playlists resolve their entries against this URL. A bare name may look like a protocol.
  std::string url = source_.name;
  if (source_.bytes.data()) {
    open_memory();
    url = "memory";
  } else if (scheme.empty() || scheme == "file") {
    const std::string path = scheme.empty() ? url : url.substr(std::strlen("file://"));
    open_file(path);
    // QuickTime references are resolved against the URL, so it needs a folder.
    url = (path.find('/') == std::string::npos ? "file:./" : "file:") + path;
  } else if (io::is_remote(source_.name)) {
    open_far();
  } else {
    open_url(scheme);
  }
  const AVInputFormat* known = nullptr;
  std::string head;
  if (io_) {
    format_->flags |= AVFMT_FLAG_CUSTOM_IO;  // close() closes `io_`.
    head = read_head(io_);
    check_disk();
    if (timed_out_) fail_input("read", AVERROR_EXIT);
    refuse_lfs_pointer(source_.name, head);
    const int unread =
        recognise_container(io_, head, source_.name, hint_of(source_.name, scheme), &known);
    check_disk();
    if (unread < 0) fail_input("open", unread);
  }
  AVDictionary* options = nullptr;
  if (input_limits().allows("dref")) av_dict_set(&options, "enable_drefs", "1", 0);
  take_outside_streams();
  take_refused_protocol();
  start_clock();
  // If avformat_open_input() fails, it frees format_ and sets it to null.
  const int error = avformat_open_input(&format_, url.c_str(), known, &options);
  av_dict_free(&options);
  check_disk();
  if (is_heif(head) && (error == AVERROR_INVALIDDATA || (error >= 0 && !has_picture(*format_))))
    fail_as(
        Cause::format,
        "'{}' is a picture (HEIC or AVIF) of a kind that this FFmpeg does not read; make a JPEG or "
        "PNG of it",
        source_.name);
  if (error < 0) {
    refuse_protocol();
    fail_input("open", error);
  }
  outside_ = take_outside_streams();
}

void Input::meet_streams() {
  constexpr int kPackets = 100;
  const PacketPtr packet(not_null(av_packet_alloc()));
  for (int i = 0; i < kPackets && av_read_frame(format_, packet.get()) >= 0; ++i)
    av_packet_unref(packet.get());
  // find_streams() then decodes these packets. If both seeks fail, it decodes only later ones.
  if (avformat_seek_file(format_, -1, INT64_MIN, 0, INT64_MAX, AVSEEK_FLAG_BYTE) < 0)
    av_seek_frame(format_, -1, 0, AVSEEK_FLAG_BACKWARD);
}

// FFmpeg decodes some frames to learn about a stream, so the same limits apply.
void Input::find_streams() {
  std::vector<AVDictionary*> options(std::max(1U, format_->nb_streams), nullptr);
  for (AVDictionary*& stream : options)
    av_dict_set_int(&stream, "max_pixels", codec_max_pixels(), 0);
  start_clock();
  take_oversize();
  take_impossible();
  const int error = avformat_find_stream_info(format_, options.data());
  for (AVDictionary*& stream : options)
    av_dict_free(&stream);
  check_disk();
  if (const PixelSize size = take_oversize(); size.width > 0)
    check_pixels(source_.name, size.width, size.height);
  impossible_ = take_impossible();
  if (error < 0) fail_input("open", error);
}

Input::~Input() {
  close();
}

void Input::close() noexcept {
  avformat_close_input(&format_);
  if (own_io_ && io_) {
    av_freep(&io_->buffer);
    avio_context_free(&io_);
  } else {
    avio_closep(&io_);
  }
  position_ = 0;
}

void Input::open_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status))
    fail_as(Cause::open, "'{}' is a directory, not a video", path);
  if (std::filesystem::is_regular_file(status) && std::filesystem::file_size(path, error) == 0 &&
      !error)
    fail_as(Cause::format, "'{}' is empty", path);
  // avformat_open_input() would take "shot%02d.jpg" as a pattern.
  const AVIOInterruptCB interrupt{on_interrupt, this};
  const int result =
      avio_open2(&io_, ("file:" + path).c_str(), AVIO_FLAG_READ, &interrupt, nullptr);
  if (result < 0) fail_input("open", result);
  format_->pb = io_;
}

void Input::open_url(const std::string& scheme) {
  remote_ = true;
  if (const std::string refused = no_video_message(source_.name, input_limits().protocols);
      !refused.empty())
    fail_as(Cause::refused, "{}", refused);
  if (is_session(scheme)) return;
  AVDictionary* options = nullptr;
  av_dict_set(&options, "protocol_whitelist", format_->protocol_whitelist, 0);
  start_clock();
  const AVIOInterruptCB interrupt{on_interrupt, this};
  const int result = avio_open2(&io_, source_.name.c_str(), AVIO_FLAG_READ, &interrupt, &options);
  av_dict_free(&options);
  if (result < 0) fail_input("open", result);
  format_->pb = io_;
}

void Input::start_clock() {
  silent_since_ = clock_began_ = Clock::now();
  timed_out_ = false;
}

// A demuxer that reads the same bytes again and again makes no progress.
void Input::note_place(std::int64_t place) {
  if (place <= farthest_) return;
  farthest_ = place;
  beat();
}

// FFmpeg calls this every tenth of a second while it waits.
int Input::on_interrupt(void* opaque) {
  auto* self = static_cast<Input*>(opaque);
  if (stop_requested() || is_left_behind()) return 1;
  if (self->io_) self->note_place(self->io_->pos);
  const double limit = input_limits().timeout;
  if (!self->remote_ || limit <= 0) return 0;
  const std::int64_t heard = self->io_ ? self->io_->bytes_read : 0;
  if (heard != std::exchange(self->heard_, heard)) {
    self->silent_since_ = Clock::now();
    beat();
  }
  const std::chrono::duration<double> silence = Clock::now() - self->silent_since_;
  const std::chrono::duration<double> all = Clock::now() - self->clock_began_;
  if (silence.count() > limit || all.count() > kPatience * limit) self->timed_out_ = true;
  return self->timed_out_;
}

/// Throws Error if a read of a file or an object failed. Demuxers take that for the end of the
/// file, or for damage.
void Input::check_disk() const {
  if (far_failure_) std::rethrow_exception(far_failure_);
  if (remote_ || !io_ || io_->error >= 0) return;
  const Cause cause = errno_cause(AVUNERROR(io_->error));
  if (may_pass(cause))
    fail_as(cause, "cannot read '{}': {}", source_.name, libav_error_text(io_->error));
}

void Input::fail_input(const char* verb, int error) {
  check_stop();
  if (timed_out_) {
    const double limit = input_limits().timeout;
    const bool silent = Clock::now() - silent_since_ > std::chrono::duration<double>(limit);
    fail_as(Cause::timeout, "cannot {} '{}': {} came for {}; --timeout waits longer", verb,
            source_.name, silent ? "nothing" : "bytes, but no picture or sound,",
            format_seconds(silent ? limit : kPatience * limit));
  }
  const Cause cause = error == AVERROR(ENOMEM)       ? Cause::memory
                      : error == AVERROR_INVALIDDATA ? Cause::format
                      : is_rejected(error)           ? Cause::rejected
                                                     : Cause::open;
  fail_as(cause, "cannot {} '{}': {}", verb, source_.name, libav_error_text(error));
}

void Input::refuse_protocol() const {
  const std::string protocol = take_refused_protocol();
  if (protocol.empty()) return;
  std::string allowed;
  for (const std::string& one : input_limits().protocols)
    allowed += one + ",";
  fail_as(Cause::refused,
          "cannot open '{}': it names an address of the protocol '{}', which is not allowed; allow "
          "it with --protocols {}{}",
          source_.name, protocol, allowed, protocol);
}

void Input::check_inside(int stream) const {
  if (std::find(outside_.begin(), outside_.end(), stream) != outside_.end())
    fail_as(
        Cause::refused,
        "cannot read '{}': the data of stream {} lies in another file, which is not opened; make "
        "one file of both, or allow it with --protocols dref,file",
        source_.name, stream);
}

void Input::open_memory() {
  if (source_.bytes.empty()) fail_as(Cause::format, "'{}' is empty", source_.name);
  make_io(32 * 1024, read_memory, true);
}

void Input::open_far() {
  remote_ = true;
  if (!far_) far_ = FarBytes::open(source_.name);
  start_clock();
  if (far_->size() == 0) fail_as(Cause::format, "'{}' is empty", source_.name);
  make_io(64 * 1024, read_far, far_->jumps());
}

void Input::make_io(int size, ReadBytes* read_bytes, bool seeks) {
  auto* buffer = not_null(static_cast<unsigned char*>(av_malloc(static_cast<std::size_t>(size))));
  io_ =
      avio_alloc_context(buffer, size, 0, this, read_bytes, nullptr, seeks ? seek_bytes : nullptr);
  if (!io_) av_free(buffer);
  own_io_ = true;
  format_->pb = not_null(io_);
}

int Input::read_far(void* opaque, std::uint8_t* buffer, int size) {
  auto* self = static_cast<Input*>(opaque);
  if (on_interrupt(opaque) != 0 || self->far_failure_) return AVERROR_EXIT;
  try {
    const std::size_t got = self->far_->read_at(static_cast<std::uint64_t>(self->position_), buffer,
                                                static_cast<std::size_t>(size));
    if (got == 0) return AVERROR_EOF;
    self->position_ += static_cast<std::int64_t>(got);
    self->note_place(self->position_);
    return static_cast<int>(got);
  } catch (...) {  // No exception may pass through FFmpeg. check_disk() throws it.
    self->far_failure_ = std::current_exception();
    return AVERROR_EXIT;
  }
}

std::int64_t Input::own_size() const {
  return static_cast<std::int64_t>(far_ ? far_->size() : source_.bytes.size());
}

int Input::read_memory(void* opaque, std::uint8_t* buffer, int size) {
  auto* self = static_cast<Input*>(opaque);
  const auto left = static_cast<std::int64_t>(self->source_.bytes.size()) - self->position_;
  if (left <= 0) return AVERROR_EOF;
  const auto take = static_cast<int>(std::min<std::int64_t>(left, size));
  const auto read = [&] {
    std::memcpy(buffer, self->source_.bytes.data() + self->position_,
                static_cast<std::size_t>(take));
  };
  if (!self->source_.loan)
    read();
  else if (!self->source_.loan->use(read))
    return AVERROR_EXIT;
  self->position_ += take;
  self->note_place(self->position_);
  return take;
}

std::int64_t Input::seek_bytes(void* opaque, std::int64_t offset, int whence) {
  auto* self = static_cast<Input*>(opaque);
  const std::int64_t size = self->own_size();
  switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:
      return size;
    case SEEK_SET:
      break;
    case SEEK_CUR:
      offset += self->position_;
      break;
    case SEEK_END:
      offset += size;
      break;
    default:
      return AVERROR(EINVAL);
  }
  if (offset < 0) return AVERROR(EINVAL);
  self->position_ = offset;
  return offset;
}

// The limit is computed again when it is reached, because a file may grow while it is read.
void Input::check_seconds() {
  const double spent = spent_seconds();
  if (spent <= most_seconds_) return;
  const std::uint64_t size = bytes();
  most_seconds_ = most_work(size).seconds;
  check_work(source_.name, {0, spent}, size);
}

bool Input::read(AVPacket* packet, std::int64_t& corrupt) {
  // Each damaged packet gives an error. A demuxer may never get past the damage.
  constexpr int kGiveUp = 1000;
  for (int errors = 0; errors < kGiveUp;) {
    check_stop();
    check_seconds();
    clear_libav_message();
    start_clock();
    const int result = av_read_frame(format_, packet);
    if (is_left_behind()) throw Stopped();
    check_disk();
    if (result >= 0) beat();
    // A demuxer that skips damage (Matroska looks for the next cluster) reports it only in the log.
    if (result >= 0 && (has_libav_message() || (packet->flags & AV_PKT_FLAG_CORRUPT))) ++corrupt;
    if (result >= 0) return true;
    if (timed_out_) fail_input("read", result);
    if (result == AVERROR_EOF) {
      if (has_libav_message()) ++corrupt;  // The file is cut off.
      return false;
    }
    if (result == AVERROR(EAGAIN)) continue;
    if (result != AVERROR_INVALIDDATA) fail_input("read", result);
    ++errors;
    ++corrupt;
  }
  return false;
}

bool Input::seek(int stream, std::int64_t time) {
  // The server is asked for other bytes. Time since its last answer does not count.
  start_clock();
  const int result = av_seek_frame(format_, stream, time, AVSEEK_FLAG_BACKWARD);
  check_disk();
  if (result < 0 && timed_out_) fail_input("read", result);
  return result >= 0;
}

std::uint64_t Input::bytes() const {
  if (!input_limits().protocols.empty() || !io_) return 0;
  if (far_) return far_->size();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, avio_size(io_)));
}

bool Input::endless() const {
  return remote_ && !far_;
}

int Input::best_stream(AVMediaType type) const {
  const int best = av_find_best_stream(format_, type, -1, -1, nullptr, 0);
  constexpr int kPictures = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS;
  if (best >= 0 && !(format_->streams[best]->disposition & kPictures)) return best;
  // The best stream is cover art. Takes the default stream of the others, else the first.
  int found = -1;
  for (int i = 0; i < static_cast<int>(format_->nb_streams); ++i) {
    const AVStream* stream = format_->streams[i];
    if (stream->codecpar->codec_type != type || (stream->disposition & kPictures)) continue;
    if (!avcodec_find_decoder(stream->codecpar->codec_id)) continue;
    if (found < 0 || ((stream->disposition & AV_DISPOSITION_DEFAULT) &&
                      !(format_->streams[found]->disposition & AV_DISPOSITION_DEFAULT)))
      found = i;
  }
  return found;
}

std::string Input::describe_streams() const {
  std::string text;
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    const AVStream* stream = format_->streams[i];
    const char* type = av_get_media_type_string(stream->codecpar->codec_type);
    if (i > 0) text += ", ";
    text += fmt::format("{} {} {}", i, type ? type : "unknown",
                        avcodec_get_name(stream->codecpar->codec_id));
    if (stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO)
      text += fmt::format(" {}x{}", stream->codecpar->width, stream->codecpar->height);
    if (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) text += " (cover art)";
  }
  return text.empty() ? "none" : text;
}

}  // namespace vfm::media
