// What a process that decodes says to its parent (media/isolate/isolated.h), when a file has taken
// it over.
//
// There is a helper as ever, but what it starts obeys the "file": the first byte says what the
// parent wants, the rest is what the child answers, request after request: messages, pictures and
// sound as they lie in memory. Where the file ends, the child is gone. The parent does with it what
// tools do: it looks at pictures, brings them to the size of the first one, and writes sound into
// an mp4.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <type_traits>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/work_limit.h"
#include "fuzz.h"
#include "media/colour/scaler.h"
#include "media/container/mux.h"
#include "media/decode/decoder.h"
#include "media/isolate/confine.h"
#include "media/isolate/isolated.h"
#include "media/isolate/isolated_helper.h"
#include "media/isolate/isolated_pictures.h"
#include "media/isolate/isolated_wire.h"
#include "media/libav.h"
#include "media/sound/audio.h"
#include "media/sound/sound_meter.h"
#include "media/sound/sound_samples.h"
#include "share/channel.h"

namespace {

using namespace vfm;
using namespace vfm::media;

constexpr std::uint64_t kMostPixels = 128 * 128;
constexpr std::size_t kMostText = 4096;

/// The file, as it is used up.
class Script {
 public:
  explicit Script(std::string_view bytes) : left_(bytes) {}
  bool ended() const { return left_.empty(); }
  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::string_view found = block(sizeof value);
    std::memcpy(&value, found.data(), found.size());
    return value;
  }
  std::string_view block(std::size_t size) {
    const std::string_view found = left_.substr(0, size);
    left_.remove_prefix(found.size());
    return found;
  }
  std::string_view text() { return block(take<std::uint16_t>() % kMostText); }

 private:
  std::string_view left_;
};

/// A child that says whatever the file does.
void say_all(int channel) {
  const share::Descriptor mine(channel);
  std::vector<share::Descriptor> descriptors;
  Request request;
  std::string name;
  if (!share::receive_message(channel, &request, sizeof request, name, descriptors)) return;
  const share::MappedMemory file(descriptors.at(0).get(), request.bytes, false),
      shared(descriptors.at(1).get(), request.shared, true);
  Script script({reinterpret_cast<const char*>(file.data()), file.size()});
  script.take<std::uint8_t>();
  auto& head = *reinterpret_cast<PicturesHead*>(shared.data());
  std::uint8_t* const room = shared.data() + kSharedHead;
  do {
    for (auto pictures = script.take<std::uint8_t>() % (kMostAhead + 2); pictures > 0; --pictures) {
      std::memset(room, script.take<std::uint8_t>(), kMostPixels);
      Given& given = head.ring[head.given++ % kMostAhead];
      const std::string_view said = script.block(sizeof(Given));
      std::memcpy(static_cast<void*>(&given), said.data(), said.size());
    }
    const std::string_view sound = script.text();
    std::memcpy(room, sound.data(), sound.size());
    const auto reply = script.take<Reply>();
    if (!share::send_message(channel, &reply, sizeof reply, script.text())) return;
  } while (!script.ended() &&
           share::receive_message(channel, &request, sizeof request, name, descriptors));
}

/// The helper: its children are threads, as a process for each file takes too long.
[[noreturn]] void serve_hostile(int channel) {
  for (;;) {
    HelperOrder order;
    HelperReply reply;
    std::string text;
    std::vector<share::Descriptor> descriptors;
    if (!share::receive_message(channel, &order, sizeof order, text, descriptors)) ::_exit(0);
    if (order.act == HelperAct::fork && descriptors.size() == 1) {
      reply.pid = ::getpid();
      std::thread(say_all, descriptors[0].release()).detach();
    }
    if (!share::send_message(channel, &reply, sizeof reply, {})) ::_exit(0);
  }
}

/// False where no process can be confined: then there is no --isolate.
bool isolate() {
  InputLimits limits;
  limits.isolate = true;
  limits.max_pixels = kMostPixels;
  limits.timeout = 10;
  set_input_limits(limits);
  set_work_limit({0, 0});
  if (const int channel = fork_isolation(true); channel >= 0) serve_hostile(channel);
  if (can_confine()) begin_isolation();
  return is_isolating();
}

void look_at(const Frame& frame, unsigned& sum) {
  constexpr int kBehind = 64;
  for (int p = 0; p < plane_count(frame.layout); ++p)
    for (int y = 0; y < plane_rows(frame, p); ++y) {
      const std::uint8_t* const row = frame.plane[p] + std::ptrdiff_t{y} * frame.stride[p];
      sum += row[0] + row[plane_row_bytes(frame, p) - 1 + kBehind];
    }
}

void decode(std::string_view bytes, unsigned how) {
  DecodeOptions options;
  options.keep_hdr = (how & 1) != 0;
  options.use = (how & 2) != 0 ? FrameUse::glance : FrameUse::any;
  Decoder decoder(bytes, "input", options);
  std::optional<FrameExporter> exporter;
  Scaler scaler;
  RgbImage image;
  std::vector<Frame> kept;
  unsigned sum = 0;
  Frame frame;
  for (int i = 0; i < 40 && decoder.next(frame); ++i) {
    look_at(frame, sum);
    if (!exporter)
      exporter.emplace(frame, to_av(frame.layout), frame.width, frame.height, Siting::left);
    exporter->fit(frame);
    if (frame.layout != PixelLayout::yuv420p10)
      scaler.to_rgb(frame, {.width = 16, .height = 16}, image);
    kept.push_back(frame);
    if (kept.size() > 3) kept.erase(kept.begin());
    if (i % 11 == 10) decoder.seek(frame.pts / 2);
  }
  for (const Frame& last : kept)
    look_at(last, sum);
}

/// One picture, for a clip to which sound is added.
const MuxStream& picture() {
  static const MuxStream one = [] {
    MuxStream video;
    video.parameters.reset(not_null(avcodec_parameters_alloc()));
    video.parameters->codec_type = AVMEDIA_TYPE_VIDEO;
    video.parameters->codec_id = AV_CODEC_ID_MJPEG;
    video.parameters->width = video.parameters->height = 16;
    video.time_base = {1, 25};
    video.packets.push_back(new_packet("a picture"));
    video.packets[0]->pts = video.packets[0]->dts = 0;
    video.packets[0]->duration = 25;
    return video;
  }();
  return one;
}

constexpr Span kSpan{0, 1000, {1, 1000}};

void listen(std::string_view bytes, unsigned want) {
  if (want == 1) {
    SoundMeter(bytes, "input", 0).measure(kSpan);
  } else if (want == 2) {
    SoundSamples(bytes, "input", 0).read(kSpan);
  } else {
    AudioReader reader(bytes, "input", 0);
    const AudioTrack track = reader.read(kSpan, AudioMode::copy);
    if (!track.empty()) mux_mp4(picture(), track.data());
  }
}

template <class T>
std::string as_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string as_text(const std::string& text) {
  return as_bytes(static_cast<std::uint16_t>(text.size())) + text;
}
/// An answer without pictures.
std::string answer(const std::string& sound, const Reply& reply, const std::string& text) {
  return '\0' + as_text(sound) + as_bytes(reply) + as_text(text);
}

std::string stream() {
  StreamInfo info;
  info.stream = 0;
  info.codec = "h264";
  info.width = info.height = 64;
  info.time_base = {1, 25};
  return answer("", {}, pack_info(info));
}

/// Pictures of these sizes and layouts, two of each, one after the other.
std::string pictures(const std::vector<std::pair<int, PixelLayout>>& kinds) {
  std::string all;
  std::int64_t time = 0;
  for (const auto& [size, layout] : kinds)
    for (int i = 0; i < 2; ++i) {
      Frame frame;
      frame.layout = layout;
      frame.width = frame.height = size;
      frame.pts = frame.index = time++;
      frame.duration = 1;
      Given given;
      given.facts = facts_of(frame);
      const bool wide = layout == PixelLayout::yuv420p10;
      given.stride.fill(layout == PixelLayout::rgb24 ? 3 * size : wide ? 2 * size : size);
      for (std::size_t p = 0; p < 3; ++p)
        given.plane[p] = p * kMostPixels;
      given.place = static_cast<std::uint32_t>(time % kPicturePlaces);
      all += std::string(1, '\1') + '\x50' + as_bytes(given) + as_text("") + as_bytes(Reply()) +
             as_text("");
    }
  Reply end;
  end.answer = ChildAnswer::end;
  return all + answer("", end, "");
}

/// A quarter of a second of sound, as a child gives it.
std::string track() {
  std::string wav = "RIFF\xff\xff\xff\x7fWAVEfmt ";
  wav += as_bytes(std::uint32_t{16}) + as_bytes(std::uint16_t{1}) + as_bytes(std::uint16_t{1}) +
         as_bytes(std::uint32_t{8000}) + as_bytes(std::uint32_t{16000}) +
         as_bytes(std::uint16_t{2}) + as_bytes(std::uint16_t{16}) + "data" +
         as_bytes(std::uint32_t{4000}) + std::string(4000, '\x11');
  return pack_track(AudioReader(wav, "seed.wav", -1).read({0, 250, {1, 1000}}, AudioMode::aac));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool isolated = isolate();
  if (!isolated || size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (data[0] % 8 < 4)
      decode(bytes, data[0] % 4U);
    else
      listen(bytes, data[0] % 4U);
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  // Without a thread of its own, as the helper is forked later.
  InputLimits limits;
  limits.timeout = 0;
  set_input_limits(limits);
  using enum PixelLayout;
  Reply heard;
  heard.bytes = 800;
  const std::string sound = track();
  Reply read;
  read.bytes = sound.size();
  Reply measured;
  measured.has_loudness = 1;
  return {'\0' + stream() + pictures({{32, yuv420}, {64, yuv420}, {32, yuv420}, {96, yuv444}}),
          '\1' + stream() + pictures({{32, yuv420p10}, {64, yuv420}, {48, gray}, {64, yuv420p10}}),
          '\2' + stream() + pictures({{16, rgb24}, {64, yuv422}, {16, yuv420}, {100, yuv420}}),
          '\4' + answer("", {}, "") + answer(sound, read, ""),
          '\5' + answer("", {}, "") + answer("", measured, ""),
          '\6' + answer("", {}, "") + answer(std::string(800, '\x11'), heard, "")};
}
