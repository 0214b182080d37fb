// The helper, and the children that it forks: everything that runs on the other side.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>

#include "base/input_limits.h"
#include "media/bounded.h"
#include "media/confine.h"
#include "media/isolated.h"
#include "media/isolated_helper.h"
#include "media/isolated_wire.h"
#include "media/sound_samples.h"

namespace vfm::media {
namespace {

/// What a child does: one source, decoded as it is asked.
class Service {
 public:
  explicit Service(int channel) : channel_(channel) {}

  /// Until the parent is gone, or what it says makes no sense.
  void run() {
    std::vector<Descriptor> descriptors;
    Request request;
    std::string text;
    if (!receive_message(channel_, &request, sizeof request, text, descriptors)) return;
    if (request.ask != Ask::open || descriptors.size() != 2) return;
    name_ = text;
    if (!answer([&] { return open(request, descriptors); })) return;
    while (receive_message(channel_, &request, sizeof request, text, descriptors))
      if (!answer([&] { return act(request); })) return;
  }

 private:
  struct Said {
    Reply reply;
    std::string text;
  };

  template <class Act>
  bool answer(Act act) {
    Said said;
    try {
      said = act();
    } catch (const Error& error) {
      said.text = error.what();
      said.reply.answer = Answer::error;
      said.reply.cause = error.cause();
    } catch (const std::bad_alloc&) {
      said.text =
          "cannot decode '" + name_ + "': it needs more memory than --isolate-memory allows";
      said.reply.answer = Answer::error;
      said.reply.cause = Cause::memory;
    } catch (const std::exception& error) {
      said.text = error.what();
      said.reply.answer = Answer::error;
    }
    if (decoder_) said.reply.corrupt = decoder_->corrupt();
    if (decoder_) said.reply.seeks = decoder_->seeks();
    return send_message(channel_, &said.reply, sizeof said.reply, said.text);
  }

  Said open(const Request& request, std::vector<Descriptor>& descriptors) {
    bytes_ = Mapping(descriptors[0].get(), request.bytes, false);
    shared_ = Mapping(descriptors[1].get(), request.shared, true);
    if (request.shared < kSharedHead) fail("a child was given no memory");
    descriptors.clear();
    InputLimits limits;
    limits.max_pixels = request.max_pixels;
    limits.timeout = 0;  // the parent waits
    set_input_limits(limits);
    beat_into(&reinterpret_cast<SharedHead*>(shared_.data())->beats);
    if (!confine(request.memory))
      fail("cannot decode '{}': the system does not confine the process that would", name_);
    return begin(request);
  }

  // Nothing before this has seen what is in the file.
  Said begin(const Request& request) {
    const std::string_view bytes(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    Said said;
    switch (request.want) {
      case Want::decoder: {
        DecodeOptions options;
        options.stream = request.stream;
        options.threads = request.threads;
        options.keyframes_only = request.keyframes_only != 0;
        options.deinterlace = request.deinterlace != 0;
        options.keep_hdr = request.keep_hdr != 0;
        options.skip_loop_filter = request.skip_loop_filter != 0;
        decoder_.emplace(bytes, name_, options);
        said.text = pack_info(decoder_->info());
        break;
      }
      case Want::audio:
        audio_.emplace(bytes, name_, request.stream);
        break;
      case Want::sound:
        sound_.emplace(bytes, name_, request.stream);
        break;
      case Want::samples:
        samples_.emplace(bytes, name_, request.stream);
        break;
      case Want::nothing:
        break;
    }
    return said;
  }

  Said act(const Request& request) {
    if (request.ask == Ask::next && decoder_) return next();
    if (request.ask == Ask::seek && decoder_) {
      decoder_->seek(request.pts);
      return {};
    }
    const Span span{request.begin, request.end, {request.base_num, request.base_den}};
    if (request.ask == Ask::read && audio_) return read(span, request.mode);
    if (request.ask == Ask::measure && sound_) return measure(span);
    if (request.ask == Ask::hear && samples_) return hear(span);
    fail("a child was asked for what it does not do");
  }

  Said next() {
    Frame frame;
    Said said;
    if (!decoder_->next(frame)) {
      said.reply.answer = Answer::end;
      return said;
    }
    said.reply.picture = facts_of(frame);
    const Placed placed = place_picture(said.reply.picture, room(), room_bytes());
    for (int p = 0; p < plane_count(frame.layout); ++p) {
      auto* out = const_cast<std::uint8_t*>(placed.frame.plane[p]);
      const auto row = static_cast<std::size_t>(plane_row_bytes(frame, p));
      for (int y = 0; y < plane_rows(frame, p); ++y)
        std::memcpy(out + static_cast<std::ptrdiff_t>(y) * placed.frame.stride[p],
                    frame.plane[p] + static_cast<std::ptrdiff_t>(y) * frame.stride[p], row);
    }
    return said;
  }

  Said read(const Span& span, AudioMode mode) {
    const std::string track = pack_track(audio_->read(span, mode));
    if (track.size() > room_bytes())
      fail_as(Cause::limit, "the sound of '{}' is too much for one clip", name_);
    std::memcpy(room(), track.data(), track.size());
    Said said;
    said.reply.bytes = track.size();
    return said;
  }

  Said measure(const Span& span) {
    Said said;
    const std::optional<SoundMeasures> found = sound_->measure(span);
    if (!found) {
      said.reply.answer = Answer::end;
      return said;
    }
    said.reply.silence = found->silence;
    said.reply.has_loudness = found->loudness.has_value();
    said.reply.loudness = found->loudness.value_or(0);
    said.reply.has_speech = found->speech.has_value();
    said.reply.speech = found->speech.value_or(0);
    return said;
  }

  Said hear(const Span& span) {
    Said said;
    const std::optional<SoundSamples::Heard> heard = samples_->read(span);
    if (!heard) {
      said.reply.answer = Answer::end;
      return said;
    }
    said.reply.begin = heard->begin;
    said.reply.bytes = heard->samples.size() * sizeof(float);
    if (said.reply.bytes > room_bytes())
      fail_as(Cause::limit, "the sound of '{}' is too much for --max-pixels", name_);
    std::memcpy(room(), heard->samples.data(), said.reply.bytes);
    return said;
  }

  std::uint8_t* room() const { return shared_.data() + kSharedHead; }
  std::size_t room_bytes() const { return shared_.size() - kSharedHead; }

  int channel_;
  std::string name_;
  Mapping bytes_, shared_;
  std::optional<Decoder> decoder_;
  std::optional<AudioReader> audio_;
  std::optional<SoundMeter> sound_;
  std::optional<SoundSamples> samples_;
};

void be_child(int channel) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Service(channel).run();
}

/// Nothing in a new child, when that has done all.
std::optional<HelperReply> obey(int channel, const HelperOrder& order,
                                std::vector<Descriptor>& descriptors) {
  HelperReply reply;
  if (order.act == HelperAct::reap) {
    int status = 0;
    pid_t found = 0;
    do {
      found = ::waitpid(order.pid, &status, 0);
    } while (found < 0 && errno == EINTR);
    reply.status = found == order.pid ? status : 0;
    return reply;
  }
  if (descriptors.size() != 1) return reply;
  reply.pid = ::fork();
  if (reply.pid != 0) return reply;
  ::close(channel);
  be_child(descriptors[0].get());
  return std::nullopt;
}

/// What the program was started with, as make's jobserver, is not a child's to read or write.
void keep_only(int channel) {
  for (int fd = 3; fd < channel; ++fd)
    ::close(fd);
  ::closefrom(channel + 1);
}

/// Nothing is read or said.
void be_quiet() {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2 && nothing >= 0; ++fd)
    ::dup2(nothing, fd);
  if (nothing > 2) ::close(nothing);
}

}  // namespace

int serve_isolated(int channel) {
  if (channel <= 2) return 2;
  keep_only(channel);
  be_quiet();
  for (;;) {
    HelperOrder order;
    std::string text;
    std::vector<Descriptor> descriptors;
    if (!receive_message(channel, &order, sizeof order, text, descriptors)) return 0;
    const std::optional<HelperReply> reply = obey(channel, order, descriptors);
    descriptors.clear();
    if (!reply || !send_message(channel, &*reply, sizeof *reply, {})) return 0;
  }
}

}  // namespace vfm::media
