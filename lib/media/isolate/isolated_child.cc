// Runs in the helper process of isolated.h, and in the children that the helper forks.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "base/input_limits.h"
#include "base/work_limit.h"
#include "media/container/far_bytes.h"
#include "media/decode/bounded.h"
#include "media/decode/picture_memory.h"
#include "media/isolate/confine.h"
#include "media/isolate/isolated.h"
#include "media/isolate/isolated_helper.h"
#include "media/isolate/isolated_pictures.h"
#include "media/isolate/isolated_wire.h"
#include "media/sound/sound_meter.h"
#include "media/sound/sound_samples.h"

namespace vfm::media {
namespace {

/// Decodes one source, as the parent asks.
class Service {
 public:
  explicit Service(int channel) : channel_(channel) {}

  /// Returns when the parent is gone, or sends an invalid message.
  void run() {
    std::vector<share::Descriptor> descriptors;
    Request request;
    std::string text;
    if (!share::receive_message(channel_, &request, sizeof request, text, descriptors)) return;
    if (request.ask != Ask::open || descriptors.size() != 2) return;
    name_ = text;
    if (!answer([&] { return open(request, descriptors); })) return;
    while (share::receive_message(channel_, &request, sizeof request, text, descriptors))
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
      said.reply.answer = ChildAnswer::error;
      said.reply.cause = error.cause();
    } catch (const std::bad_alloc&) {
      said.text = "cannot decode '" + name_ + "': it needs more memory than --isolate allows";
      said.reply.answer = ChildAnswer::error;
      said.reply.cause = Cause::memory;
    } catch (const std::exception& error) {
      said.text = error.what();
      said.reply.answer = ChildAnswer::error;
    }
    if (decoder_) said.reply.corrupt = decoder_->corrupt();
    if (decoder_) said.reply.seeks = decoder_->seeks();
    return share::send_message(channel_, &said.reply, sizeof said.reply, said.text);
  }

  Said open(const Request& request, std::vector<share::Descriptor>& descriptors) {
    far_ = request.far != 0;
    if (far_)
      read_far_through(std::move(descriptors[0]), {request.bytes, request.far_jumps});
    else
      bytes_ = share::MappedMemory(descriptors[0].get(), request.bytes, false);
    shared_ = share::MappedMemory(descriptors[1].get(), request.shared, true);
    descriptors.clear();
    front_ = picture_bytes(request.max_pixels);
    cells_ = request.use == FrameUse::cells;
    if (request.shared < shared_bytes(request.max_pixels)) fail("a child was given no memory");
    pictures_ = std::make_unique<PictureMemory>(room() + front_, room_bytes() - front_);
    InputLimits limits;
    limits.max_pixels = request.max_pixels;
    limits.timeout = 0;  // The parent checks the time.
    limits.pictures_a_byte = 0;
    set_input_limits(limits);
    set_work_limit({0, 0});
    beat_into(&head().beats);
    if (!confine(request.memory))
      fail("cannot decode '{}': the system does not confine the process that would", name_);
    return begin(request);
  }

  // No code before this has read the contents of the file.
  Said begin(const Request& request) {
    Said said;
    switch (request.want) {
      case Want::decoder: {
        DecodeOptions options;
        options.stream = request.stream;
        options.threads = request.threads;
        options.keyframes_only = request.keyframes_only != 0;
        options.deinterlace = request.deinterlace != 0;
        options.keep_hdr = request.keep_hdr != 0;
        // The few rows for cells are copied. If the parent held pictures instead, the codec would
        // take other pictures, whose memory is new to this process and to its caches.
        if (!cells_) options.memory = pictures_.get();
        open_source(decoder_, options);
        said.text = pack_info(decoder_->info());
        break;
      }
      case Want::audio:
        open_source(audio_, request.stream);
        break;
      case Want::sound:
        open_source(sound_, request.stream);
        break;
      case Want::samples:
        open_source(samples_, request.stream);
        break;
    }
    return said;
  }

  template <class Reader, class How>
  void open_source(std::optional<Reader>& reader, const How& how) const {
    const std::string_view bytes(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    if (far_)
      reader.emplace(name_, how);
    else
      reader.emplace(bytes, name_, how);
  }

  Said act(const Request& request) {
    for (std::uint32_t place = 0; place < kPicturePlaces; ++place)
      if (request.done >> place & 1) given_[place] = {};
    if (request.ask == Ask::next && decoder_) return next(std::min(request.most, kMostAhead));
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

  /// Publishes each picture at once, so that the parent gets it even if this process crashes later.
  Said next(std::uint32_t most) {
    Said said;
    for (bool more = true; more && most > 0; --most) {
      Frame frame;
      if (!decoder_->next(frame)) {
        said.reply.answer = ChildAnswer::end;
        break;
      }
      const std::uint64_t number = head().given;
      Given& given = head().ring[number % kMostAhead];
      more = put(std::move(frame), given);
      given.corrupt = decoder_->corrupt();
      given.seeks = decoder_->seeks();
      head().given = number + 1;
    }
    return said;
  }

  /// Returns false if no place or no memory is free. Then the picture must be the last one.
  bool put(Frame frame, Given& given) {
    given.facts = facts_of(frame);
    const auto free = std::ranges::find_if(given_, [](const Frame& f) { return !f.plane[0]; });
    const bool any = free != given_.end();
    if (!any || !is_shared(frame)) frame = copy_shared(frame, given.facts, any);
    for (int p = 0; p < plane_count(frame.layout); ++p) {
      given.plane[static_cast<std::size_t>(p)] =
          static_cast<std::uint64_t>(frame.plane[p] - room());
      given.stride[static_cast<std::size_t>(p)] = frame.stride[p];
    }
    const bool stays = frame.owner != nullptr;
    given.place = stays ? static_cast<std::uint32_t>(free - given_.begin()) : kNoPlace;
    if (stays) *free = std::move(frame);
    return stays;
  }

  bool is_shared(const Frame& frame) const {
    bool all = true;
    for (int p = 0; p < plane_count(frame.layout); ++p)
      all = all && frame.plane[p] >= room() && frame.plane[p] < room() + room_bytes();
    return all;
  }

  /// If no other memory is free, the copy is at the begin of room(), and has no owner.
  Frame copy_shared(const Frame& frame, const PictureFacts& facts, bool may_stay) const {
    const std::size_t bytes = place_picture(facts, nullptr, front_).bytes;
    const std::shared_ptr<std::uint8_t> memory = may_stay ? pictures_->take(bytes) : nullptr;
    Frame copy = place_picture(facts, memory ? memory.get() : room(), bytes).frame;
    copy_pixels(frame, copy, cells_);
    copy.owner = memory;
    return copy;
  }

  // Sound may take all of room(), because a child that reads sound decodes no pictures.
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
      said.reply.answer = ChildAnswer::end;
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
      said.reply.answer = ChildAnswer::end;
      return said;
    }
    said.reply.begin = heard->begin;
    said.reply.bytes = heard->samples.size() * sizeof(float);
    if (said.reply.bytes > room_bytes())
      fail_as(Cause::limit, "the sound of '{}' is too much for one look", name_);
    std::memcpy(room(), heard->samples.data(), said.reply.bytes);
    return said;
  }

  PicturesHead& head() const { return *reinterpret_cast<PicturesHead*>(shared_.data()); }
  std::uint8_t* room() const { return shared_.data() + kSharedHead; }
  std::size_t room_bytes() const { return shared_.size() - kSharedHead; }

  int channel_;
  std::string name_;
  share::MappedMemory bytes_, shared_;
  bool far_ = false, cells_ = false;
  std::size_t front_ = 0;  // Bytes of room() before the memory of pictures_.
  std::unique_ptr<PictureMemory> pictures_;
  std::optional<Decoder> decoder_;
  std::array<Frame, kPicturePlaces> given_;  // Without planes if the place is free.
  std::optional<AudioReader> audio_;
  std::optional<SoundMeter> sound_;
  std::optional<SoundSamples> samples_;
};

/// Codecs often take and free large blocks, above all when they are opened. glibc takes each from
/// the system until its thresholds have grown, so they begin at their maximum.
void keep_memory() {
  constexpr int kBlock = 32 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kBlock);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kBlock);
  ::mallopt(M_TOP_PAD, 1 << 20);
}

void be_child(int channel, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  keep_memory();
  if (::getppid() == parent) Service(channel).run();  // Otherwise the parent died before prctl().
}

/// Returns -1, which is not a status, on an error.
int wait_for(pid_t pid) {
  int status = 0;
  pid_t found = 0;
  do {
    found = ::waitpid(pid, &status, 0);
  } while (found < 0 && errno == EINTR);
  return found == pid ? status : -1;
}

int confine_status(void* memory) {
  return confine(*static_cast<const std::uint64_t*>(memory)) ? 0 : 1;
}

/// Returns confine_status() of a process that shares our memory while we wait, as with vfork(). A
/// copy of our many mappings would be slow. The rules and limits end with that process.
int try_confining(std::uint64_t memory) {
  constexpr std::size_t kStack = std::size_t{256} << 10;
  const auto stack = std::make_unique_for_overwrite<std::uint8_t[]>(kStack);  // Grows downwards.
  const pid_t pid =
      ::clone(confine_status, stack.get() + kStack, CLONE_VM | CLONE_VFORK | SIGCHLD, &memory);
  return pid < 0 ? 1 : wait_for(pid);
}

/// Returns nullopt in a new child, after all its work.
std::optional<HelperReply> obey(int channel, const HelperOrder& order,
                                std::vector<share::Descriptor>& descriptors) {
  HelperReply reply;
  if (order.act == HelperAct::end) {
    if (order.pid <= 0) return reply;
    ::kill(order.pid, SIGKILL);  // The pid is not reused before waitpid().
    reply.status = wait_for(order.pid);
    return reply;
  }
  if (order.act == HelperAct::try_out) {
    reply.status = try_confining(order.memory);
    return reply;
  }
  if (descriptors.size() != 1) return reply;
  const pid_t parent = ::getpid();
  reply.pid = ::fork();
  if (reply.pid != 0) return reply;
  ::close(channel);
  be_child(descriptors[0].get(), parent);
  return std::nullopt;
}

/// Closes descriptors that the program was started with, such as make's jobserver.
void keep_only(int channel) {
  for (int fd = 3; fd < channel; ++fd)
    ::close(fd);
  ::closefrom(channel + 1);
}

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
    std::vector<share::Descriptor> descriptors;
    if (!share::receive_message(channel, &order, sizeof order, text, descriptors)) return 0;
    const std::optional<HelperReply> reply = obey(channel, order, descriptors);
    descriptors.clear();
    if (!reply || !share::send_message(channel, &*reply, sizeof *reply, {})) return 0;
  }
}

}  // namespace vfm::media
