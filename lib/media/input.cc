// SPDX-License-Identifier: Apache-2.0
#include "media/input.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/stop.h"

namespace vfm::media {
namespace {

int on_interrupt(void*) {
  return stop_signal() != 0;
}
constexpr AVIOInterruptCB kInterrupt{on_interrupt, nullptr};

[[noreturn]] void fail_open(const std::string& name, int error) {
  check_stop();
  fail("cannot open '{}': {}", name, libav_error_text(error));
}

// FFmpeg plays any text file as a terminal recording; nobody means that.
bool is_text_art(const char* demuxer) {
  for (const char* name : {"tty", "bin", "xbin", "adf", "idf"})
    if (std::strcmp(demuxer, name) == 0) return true;
  return false;
}

}  // namespace

Input::Input(const Source& source) : source_(source) {
  init_libav();
  clear_libav_message();
  try {
    format_ = not_null(avformat_alloc_context());
    format_->interrupt_callback = kInterrupt;
    std::string url = source_.name;
    if (source_.bytes.data()) {
      open_memory();
    } else if (source_.name.find("://") == std::string::npos) {
      open_file();
      // Playlists resolve their entries against this; a bare name may look like a protocol.
      url = "file:" + url;
    }
    // Frees format_ and sets it to null when it fails.
    if (const int error = avformat_open_input(&format_, url.c_str(), nullptr, nullptr); error < 0)
      fail_open(source_.name, error);
    if (is_text_art(format_->iformat->name))
      fail("cannot open '{}': it is text, not a video", source_.name);
    if (const int error = avformat_find_stream_info(format_, nullptr); error < 0)
      fail_open(source_.name, error);
  } catch (...) {
    close();
    throw;
  }
}

Input::~Input() {
  close();
}

void Input::close() noexcept {
  avformat_close_input(&format_);
  if (!io_) return;
  if (source_.bytes.data()) {
    av_freep(&io_->buffer);
    avio_context_free(&io_);
  } else {
    avio_closep(&io_);
  }
}

void Input::open_file() {
  std::error_code error;
  const auto status = std::filesystem::status(source_.name, error);
  if (std::filesystem::is_directory(status)) fail("'{}' is a directory, not a video", source_.name);
  if (std::filesystem::is_regular_file(status) &&
      std::filesystem::file_size(source_.name, error) == 0 && !error)
    fail("'{}' is empty", source_.name);
  // Opened here rather than by avformat_open_input, which would take "shot%02d.jpg" as a pattern.
  const int result =
      avio_open2(&io_, ("file:" + source_.name).c_str(), AVIO_FLAG_READ, &kInterrupt, nullptr);
  if (result < 0) fail_open(source_.name, result);
  format_->pb = io_;
}

void Input::open_memory() {
  if (source_.bytes.empty()) fail("'{}' is empty", source_.name);
  constexpr int kBuffer = 32 * 1024;
  auto* buffer = not_null(static_cast<unsigned char*>(av_malloc(kBuffer)));
  io_ = avio_alloc_context(buffer, kBuffer, 0, this, read_memory, nullptr, seek_memory);
  if (!io_) av_free(buffer);
  format_->pb = not_null(io_);
}

int Input::read_memory(void* opaque, std::uint8_t* buffer, int size) {
  auto* self = static_cast<Input*>(opaque);
  const auto left = static_cast<std::int64_t>(self->source_.bytes.size()) - self->position_;
  if (left <= 0) return AVERROR_EOF;
  const auto take = static_cast<int>(std::min<std::int64_t>(left, size));
  std::memcpy(buffer, self->source_.bytes.data() + self->position_, static_cast<std::size_t>(take));
  self->position_ += take;
  return take;
}

std::int64_t Input::seek_memory(void* opaque, std::int64_t offset, int whence) {
  auto* self = static_cast<Input*>(opaque);
  const auto size = static_cast<std::int64_t>(self->source_.bytes.size());
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

bool Input::read(AVPacket* packet, std::int64_t& corrupt) {
  // Damaged data gives an error for each packet it touches. A demuxer that never gets past it must
  // not be asked for ever.
  constexpr int kGiveUp = 1000;
  for (int errors = 0; errors < kGiveUp;) {
    check_stop();
    clear_libav_message();
    const int result = av_read_frame(format_, packet);
    // A demuxer that steps over damage (Matroska looks for the next cluster) says so only in its
    // log.
    if (result >= 0 && (has_libav_message() || (packet->flags & AV_PKT_FLAG_CORRUPT))) ++corrupt;
    if (result >= 0) return true;
    if (result == AVERROR_EOF) {
      if (has_libav_message()) ++corrupt;  // the file ends before it should
      return false;
    }
    if (result == AVERROR(EAGAIN)) continue;
    if (result != AVERROR_INVALIDDATA) {
      check_stop();
      fail("cannot read '{}': {}", source_.name, libav_error_text(result));
    }
    ++errors;
    ++corrupt;
  }
  return false;
}

int Input::best_stream(AVMediaType type) const {
  const int best = av_find_best_stream(format_, type, -1, -1, nullptr, 0);
  constexpr int kPictures = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS;
  if (best >= 0 && !(format_->streams[best]->disposition & kPictures)) return best;
  // The best one is cover art: the default stream of the others, else the first.
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
