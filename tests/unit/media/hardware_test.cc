// Who decodes must not show. Without a GPU, hardware is played by software that hands its pictures
// over as hardware does, and fails where the test wants.
// SPDX-License-Identifier: Apache-2.0
#include "media/decode/hardware.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "frame_hash.h"
#include "media/decode/cuda_device.h"
#include "media/decode/decoder.h"
#include "media/decode/hardware_decoder.h"
#include "media/encode/encode_sessions.h"
#include "media_files.h"
#include "share/engine_sessions.h"

namespace {

using namespace vfm::media;
using media_files::path;
using vfm::share::EngineSessions;
using vfm::share::GpuKind;
using vfm::share::kOwnSessions;
using vfm::share::kSessionBytes;
using vfm::share::SharedGpu;

// A picture of random samples; yuv420p or yuv420p10.
AvFramePtr random_picture(AVPixelFormat format, int width, int height) {
  AvFramePtr picture(not_null(av_frame_alloc()));
  picture->format = format;
  picture->width = width;
  picture->height = height;
  REQUIRE(av_frame_get_buffer(picture.get(), 64) == 0);
  unsigned state = 1;
  const bool deep = format == AV_PIX_FMT_YUV420P10;
  for (int p = 0; p < 3; ++p)
    for (int y = 0; y < (p == 0 ? height : (height + 1) / 2); ++y)
      for (int x = 0; x < (p == 0 ? width : (width + 1) / 2); ++x) {
        state = state * 1664525 + 1013904223;
        std::uint8_t* const row = picture->data[p] + std::ptrdiff_t{y} * picture->linesize[p];
        const auto sample = static_cast<std::uint16_t>(state >> 22);
        if (deep)
          std::memcpy(row + 2 * x, &sample, 2);
        else
          row[x] = static_cast<std::uint8_t>(sample);
      }
  return picture;
}

// As NVDEC has it: V after each U, ten bits at the top of 16, `left` and `top` more columns and
// rows before the picture, which nobody has cut off.
AvFramePtr to_hardware(const AVFrame& picture, int left = 0, int top = 0) {
  const bool deep = picture.format == AV_PIX_FMT_YUV420P10;
  const int bytes = deep ? 2 : 1;
  AvFramePtr out(not_null(av_frame_alloc()));
  out->format = deep ? AV_PIX_FMT_P010 : AV_PIX_FMT_NV12;
  out->width = picture.width + left;
  out->height = picture.height + top;
  REQUIRE(av_frame_get_buffer(out.get(), 0) == 0);
  REQUIRE(av_frame_copy_props(out.get(), &picture) == 0);
  out->crop_left = static_cast<std::size_t>(left);
  out->crop_top = static_cast<std::size_t>(top);
  for (int p = 0; p < 2; ++p)
    std::memset(out->data[p], 0x77,
                static_cast<std::size_t>(out->linesize[p]) *
                    static_cast<std::size_t>(p == 0 ? out->height : (out->height + 1) / 2));
  for (int p = 0; p < 3; ++p) {
    const bool chroma = p > 0;
    const int width = chroma ? (picture.width + 1) / 2 : picture.width;
    const int height = chroma ? (picture.height + 1) / 2 : picture.height;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        unsigned sample = 0;
        std::memcpy(&sample, picture.data[p] + std::ptrdiff_t{y} * picture.linesize[p] + bytes * x,
                    static_cast<std::size_t>(bytes));
        if (deep) sample <<= 6;
        const int column = chroma ? 2 * (left / 2 + x) + (p - 1) : left + x;
        const int row = chroma ? top / 2 + y : top + y;
        std::memcpy(
            out->data[chroma] + std::ptrdiff_t{row} * out->linesize[chroma] + bytes * column,
            &sample, static_cast<std::size_t>(bytes));
      }
  }
  return out;
}

bool same_samples(const AVFrame& a, const AVFrame& b) {
  if (a.format != b.format || a.width != b.width || a.height != b.height) return false;
  const int bytes = a.format == AV_PIX_FMT_YUV420P10 ? 2 : 1;
  for (int p = 0; p < 3; ++p)
    for (int y = 0; y < (p == 0 ? a.height : (a.height + 1) / 2); ++y)
      if (std::memcmp(a.data[p] + std::ptrdiff_t{y} * a.linesize[p],
                      b.data[p] + std::ptrdiff_t{y} * b.linesize[p],
                      static_cast<std::size_t>(bytes * (p == 0 ? a.width : (a.width + 1) / 2))) !=
          0)
        return false;
  return true;
}

// Software in the place of hardware: its pictures go to NV12 or P010 and back. Gives no picture
// after `pictures` of them.
class Actor : public HardwareDecoder {
 public:
  explicit Actor(int pictures = 1 << 30) : left(pictures) {}
  bool attach(AVCodecContext& codec, int) const override {
    if (codec.pix_fmt != AV_PIX_FMT_YUV420P && codec.pix_fmt != AV_PIX_FMT_YUV420P10) return false;
    ++attached;
    return true;
  }
  AvFramePtr fetch(AvFramePtr picture) const override {
    if (left-- <= 0) return nullptr;
    ++fetched;
    return to_planar(*to_hardware(*picture));
  }

  mutable int left, attached = 0, fetched = 0;
};

// The same with sessions, of GPUs that are made up.
class Sharer : public Actor {
 public:
  explicit Sharer(share::EngineSessions& sessions, std::int64_t bytes = 1)
      : sessions_(sessions), bytes_(bytes) {}
  share::EngineSessions* sessions() const override { return &sessions_; }
  std::int64_t session_bytes(const AVCodecContext& codec) const override {
    return codec.pix_fmt == AV_PIX_FMT_YUV420P ? bytes_ : 0;
  }
  bool attach(AVCodecContext& codec, int gpu) const override {
    const bool attaches = Actor::attach(codec, gpu);
    if (attaches) gpus.push_back(gpu);
    return attaches;
  }

  mutable std::vector<int> gpus;

 private:
  share::EngineSessions& sessions_;
  std::int64_t bytes_;
};

std::vector<share::SharedGpu> gpus_with(const std::vector<int>& sessions) {
  std::vector<share::SharedGpu> gpus;
  for (const int some : sessions) {
    const int i = static_cast<int>(gpus.size());
    gpus.push_back({i, "GPU " + std::to_string(i), std::int64_t{16} << 30, some});
  }
  return gpus;
}

// Hardware itself, and how many pictures it gave.
class Counter : public HardwareDecoder {
 public:
  explicit Counter(const HardwareDecoder& hardware) : hardware_(hardware) {}
  bool attach(AVCodecContext& codec, int gpu) const override {
    return hardware_.attach(codec, gpu);
  }
  AvFramePtr fetch(AvFramePtr picture) const override {
    AvFramePtr fetched = hardware_.fetch(std::move(picture));
    pictures += fetched != nullptr;
    return fetched;
  }

  mutable int pictures = 0;

 private:
  const HardwareDecoder& hardware_;
};

// Only looks.
class Onlooker : public HardwareDecoder {
 public:
  bool attach(AVCodecContext& codec, int) const override {
    exact = nvdec_decodes_exactly(codec);
    return false;
  }
  AvFramePtr fetch(AvFramePtr) const override { return nullptr; }

  mutable bool exact = false;
};

struct Decoded {
  std::vector<std::string> hashes;
  std::vector<std::int64_t> times, durations, indices;
  std::vector<bool> keys;
  std::int64_t corrupt = 0;
  bool operator==(const Decoded&) const = default;
};

void add(Decoded& decoded, const Frame& frame) {
  decoded.hashes.push_back(frame_hash(frame));
  decoded.times.push_back(frame.pts);
  decoded.durations.push_back(frame.duration);
  decoded.indices.push_back(frame.index);
  decoded.keys.push_back(frame.key);
}

Decoded all_of(Decoder decoder) {
  Decoded decoded;
  for (Frame frame; decoder.next(frame);)
    add(decoded, frame);
  decoded.corrupt = decoder.corrupt();
  return decoded;
}

Decoded decode(const std::string& file, const HardwareDecoder* hardware, int threads = 1) {
  return all_of(Decoder(file, {.threads = threads, .hardware = hardware}));
}

}  // namespace

TEST_CASE("the planes of hardware's pictures are those of software's") {
  const auto format = GENERATE(AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV420P10);
  const auto [width, height, left, top] = GENERATE(table<int, int, int, int>(
      {{64, 48, 0, 0}, {97, 63, 0, 0}, {31, 5, 4, 2}, {16, 16, 0, 8}, {1, 1, 2, 0}}));
  CAPTURE(width, height, left, top);
  const AvFramePtr picture = random_picture(format, width, height);
  picture->pts = 77;
  picture->color_range = AVCOL_RANGE_JPEG;
  const AvFramePtr back = to_planar(*to_hardware(*picture, left, top));
  REQUIRE(back);
  CHECK(same_samples(*back, *picture));
  CHECK(back->pts == 77);
  CHECK(back->color_range == AVCOL_RANGE_JPEG);
  CHECK(back->crop_left + back->crop_top == 0);
}

TEST_CASE("the planes of hardware's pictures are those that swscale makes") {
  const auto from = GENERATE(AV_PIX_FMT_NV12, AV_PIX_FMT_P010);
  const auto to = from == AV_PIX_FMT_NV12 ? AV_PIX_FMT_YUV420P : AV_PIX_FMT_YUV420P10;
  const AvFramePtr semi = to_hardware(*random_picture(to, 64, 34));
  const AvFramePtr scaled = random_picture(to, 64, 34), planar = to_planar(*semi);
  const SwsPtr sws(
      sws_getContext(64, 34, from, 64, 34, to, SWS_BICUBIC | kSwsExact, nullptr, nullptr, nullptr));
  REQUIRE(sws);
  sws_scale(sws.get(), semi->data, semi->linesize, 0, 34, scaled->data, scaled->linesize);
  CHECK(same_samples(*planar, *scaled));
}

TEST_CASE("pictures that cannot be taken exactly are refused") {
  const AvFramePtr picture = random_picture(AV_PIX_FMT_YUV420P, 16, 16);
  CHECK_FALSE(to_planar(*picture));
  const AvFramePtr odd = to_hardware(*picture, 2, 0);
  odd->crop_left = 1;
  CHECK_FALSE(to_planar(*odd));
  odd->crop_left = 18;
  CHECK_FALSE(to_planar(*odd));
}

TEST_CASE("hardware changes nothing, wherever it fails") {
  NEED_FFMPEG();
  const auto name = GENERATE("plain.mp4", "open_gop.mkv", "vp9.webm", "ten_bit.mp4", "vfr.mp4",
                             "edited.mp4", "one.mp4", "missing_pts.avi", "rotated.mp4");
  CAPTURE(name);
  const Decoded software = decode(path(name), nullptr);
  const int frames = static_cast<int>(software.hashes.size());
  const Actor whole;
  CHECK(decode(path(name), &whole) == software);
  CHECK(whole.attached == 1);
  CHECK(whole.fetched == frames);
  for (const int pictures : {0, 1, 2, 17, frames - 1}) {
    CAPTURE(pictures);
    const Actor actor(pictures);
    CHECK(decode(path(name), &actor, 2) == software);
    CHECK(actor.attached == 1);
  }
}

TEST_CASE("what hardware does not take is software's") {
  NEED_FFMPEG();
  const auto name = GENERATE("odd422.mkv", "gray.mkv", "still.png", "jpeg.avi");
  const Actor actor;
  CHECK(decode(path(name), &actor) == decode(path(name), nullptr));
  CHECK(actor.attached == 0);
  // Nor what no hardware does.
  const Decoded keys = all_of(Decoder(path("plain.mp4"), {.keyframes_only = true}));
  CHECK(all_of(Decoder(path("plain.mp4"), {.keyframes_only = true, .hardware = &actor})) == keys);
  CHECK(actor.attached == 0);
}

TEST_CASE("NVDEC gets what it decodes exactly") {
  NEED_FFMPEG();
  const auto [name, encoder, exact] = GENERATE(table<const char*, const char*, bool>(
      {{"exact.mp4", "libx264 -preset ultrafast -pix_fmt yuv420p", true},
       {"exact.ts", "libx264 -preset ultrafast -bf 2 -pix_fmt yuv420p", true},
       {"full_range.mkv", "libx264 -preset ultrafast -pix_fmt yuvj420p", true},
       {"hevc_ten.mkv", "libx265 -preset ultrafast -x265-params log-level=none -pix_fmt yuv420p10",
        true},
       {"vp9_eight.webm", "libvpx-vp9 -deadline realtime -cpu-used 8 -pix_fmt yuv420p", true},
       {"vp9_odd.webm", "libvpx-vp9 -vf crop=175:143:exact=1 -deadline realtime -pix_fmt yuv420p",
        false},
       {"small.mp4", "libx264 -vf scale=176:128 -pix_fmt yuv420p", false},
       {"fields.mkv", "libx264 -vf interlace -flags +ilme+ildct -pix_fmt yuv420p", false},
       {"h264_ten.mp4", "libx264 -preset ultrafast -pix_fmt yuv420p10", false},
       {"h264_422.mp4", "libx264 -preset ultrafast -pix_fmt yuv422p", false},
       {"mpeg2.ts", "mpeg2video -pix_fmt yuv420p", false},
       {"mpeg4.mp4", "mpeg4 -pix_fmt yuv420p", false}}));
  CAPTURE(name);
  media_files::run(
      std::string("ffmpeg -v error -nostdin -y -f lavfi -i testsrc2=s=176x144:r=25:d=0.2 -c:v ") +
      encoder + " " + path(name));
  const Onlooker onlooker;
  decode(path(name), &onlooker);
  CHECK(onlooker.exact == exact);
}

TEST_CASE("with hardware, seek gives the frames of a decode from the start") {
  NEED_FFMPEG();
  const auto name =
      GENERATE("plain.mp4", "open_gop.mkv", "vp9.webm", "long_gop.mp4", "ten_bit.mp4");
  const int pictures = GENERATE(1 << 30, 0, 5, 40, 90);
  CAPTURE(name, pictures);
  const Decoded all = decode(path(name), nullptr);
  const Actor actor(pictures);
  Decoder decoder(path(name), {.hardware = &actor});
  for (std::size_t k = 0; k < all.times.size(); k += 7) {
    const std::size_t i = k * 17 % all.times.size();
    decoder.seek(all.times[i]);
    for (std::size_t j = i; j < std::min(i + 3, all.times.size()); ++j) {
      Frame frame;
      REQUIRE(decoder.next(frame));
      CHECK(frame.pts == all.times[j]);
      CHECK(frame.index == static_cast<std::int64_t>(j - i));
      CHECK(frame_hash(frame) == all.hashes[j]);
    }
  }
  CHECK(decoder.corrupt() == 0);
}

TEST_CASE("with hardware, pictures of another size than the first are software's") {
  NEED_FFMPEG();
  std::string bytes;
  for (const char* size : {"176x144", "192x160"}) {
    media_files::run(std::string("ffmpeg -v error -nostdin -y -f lavfi -i testsrc2=r=25:d=0.4:s=") +
                     size + " -c:v libx264 -bf 0 -pix_fmt yuv420p " + path("part.h264"));
    bytes += media_files::read(path("part.h264"));
  }
  const Decoded software = all_of(Decoder(bytes, "sizes"));
  REQUIRE(software.hashes.size() == 20);
  const Actor actor;
  CHECK(all_of(Decoder(bytes, "sizes", {.hardware = &actor})) == software);
  CHECK(actor.fetched == 10);
}

TEST_CASE("with hardware, damage is counted and repaired as in software") {
  NEED_FFMPEG();
  const auto name = GENERATE("faststart.mp4", "vp9.webm", "open_gop.mkv", "ten_bit.mp4");
  CAPTURE(name);
  std::string bytes = media_files::read(path(name));
  for (std::size_t i = 0; i < 900; ++i)
    bytes[bytes.size() / 2 + i] = static_cast<char>(i * 37 + i / 7);
  const Decoded software = all_of(Decoder(bytes, "damaged"));
  CHECK(software.corrupt > 0);
  const Actor actor;
  CHECK(all_of(Decoder(bytes, "damaged", {.hardware = &actor})) == software);
  CHECK(actor.attached == 1);
  const std::string cut = bytes.substr(0, bytes.size() / 3);
  if (std::string(name) != "ten_bit.mp4")  // whose index stands at the end
    CHECK(all_of(Decoder(cut, "cut", {.hardware = &actor})) == all_of(Decoder(cut, "cut")));
}

TEST_CASE("a decoder takes a session with its first picture, and gives it back at its end") {
  NEED_FFMPEG();
  const std::string file = path("plain.mp4");
  const Decoded software = decode(file, nullptr);
  share::EngineSessions sessions("", gpus_with({1, 2}), "test", share::GpuKind::decode,
                                 share::EngineSessions::Wait::no);
  const Sharer hardware(sessions);
  {
    const Decoder asked_only(file, {.hardware = &hardware});
    CHECK(asked_only.info().width > 0);
  }
  CHECK(hardware.gpus.empty());
  std::vector<Decoder> decoders;
  Frame frame;
  for (int i = 0; i < 4; ++i) {
    decoders.emplace_back(file, DecodeOptions{.hardware = &hardware});
    REQUIRE(decoders.back().next(frame));
  }
  // The GPU with most free first; the fourth goes on in software.
  CHECK(hardware.gpus.size() == 3);
  CHECK(std::ranges::count(hardware.gpus, 1) == 2);
  CHECK(hardware.gpus.front() == 1);
  for (Decoder& decoder : decoders) {
    decoder.seek(software.times.front());  // which keeps its session
    CHECK(all_of(std::move(decoder)) == software);
  }
  decoders.clear();
  CHECK(decode(file, &hardware) == software);
  CHECK(hardware.gpus.back() == 1);
}

TEST_CASE("a decoder without a session decodes in software, or waits where it is asked for") {
  NEED_FFMPEG();
  const std::string file = path("plain.mp4");
  const Decoded software = decode(file, nullptr);
  const auto wait = GENERATE(share::EngineSessions::Wait::no, share::EngineSessions::Wait::yes);
  const bool waits = wait == share::EngineSessions::Wait::yes;
  share::EngineSessions sessions("", gpus_with({1}), "test", share::GpuKind::decode, wait);
  const Sharer hardware(sessions);
  auto held = sessions.take(1);
  std::atomic<bool> given = false, early = false;
  Decoded decoded;
  std::thread decodes([&] {
    decoded = decode(file, &hardware);
    early = !given;
  });
  if (!waits) decodes.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(waits ? 200 : 0));
  given = true;
  held.reset();
  if (waits) decodes.join();
  CHECK(early == !waits);
  CHECK(decoded == software);
  CHECK((hardware.fetched > 0) == waits);
  // What no GPU has sessions for is software's, whoever would wait.
  const Sharer large(sessions, 2 * share::kSessionBytes);
  CHECK(decode(file, &large) == software);
  CHECK(large.attached == 0);
}

TEST_CASE("a file that the hardware gives up leaves its session to others") {
  NEED_FFMPEG();
  const std::string file = path("plain.mp4");
  const Decoded software = decode(file, nullptr);
  share::EngineSessions sessions("", gpus_with({1}), "test", share::GpuKind::decode,
                                 share::EngineSessions::Wait::no);
  const Sharer hardware(sessions);
  hardware.left = 3;
  Decoder decoder(file, {.hardware = &hardware});
  Frame frame;
  for (int i = 0; i < 6; ++i)
    REQUIRE(decoder.next(frame));
  CHECK(hardware.fetched == 3);
  CHECK(sessions.take(1));
}

TEST_CASE("sessions have memory for pictures of 1920x1080, and large ones take more") {
  const auto bytes = [](AVCodecID id, AVPixelFormat format, int width, int height) {
    AVCodecContext codec = {};
    codec.codec_id = id;
    codec.pix_fmt = format;
    codec.width = width, codec.height = height;
    return nvdec_session_bytes(codec);
  };
  const auto eight = AV_PIX_FMT_YUV420P, ten = AV_PIX_FMT_YUV420P10;
  CHECK(bytes(AV_CODEC_ID_H264, eight, 1920, 1080) ==
        (2 * 16 + 5) * (1920 * 1088 * 3 / 2) + (16 << 20));
  CHECK(bytes(AV_CODEC_ID_HEVC, ten, 1920, 1080) == 22 * (1920 * 1088 * 3) + (16 << 20));
  CHECK(bytes(AV_CODEC_ID_VP9, eight, 640, 360) == 13 * (640 * 384 * 3 / 2) + (16 << 20));
  for (const AVCodecID id : {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_VP9}) {
    const auto deepest = id == AV_CODEC_ID_H264 ? eight : ten;
    CHECK(bytes(id, deepest, 1920, 1080) <= share::kSessionBytes);
    CHECK(bytes(id, eight, 3840, 2160) > share::kSessionBytes);
    CHECK(2 * bytes(id, deepest, 3840, 2160) <= share::kOwnSessions * share::kSessionBytes);
    CHECK(bytes(id, deepest, 8192, 4320) <= 16 * share::kSessionBytes);
  }
  CHECK(nvenc_session_bytes(1920, 1080) <= share::kSessionBytes);
  CHECK(nvenc_session_bytes(3840, 2160) > 2 * share::kSessionBytes);
}

TEST_CASE(
    "a GPU that is not there has no device and says why, and one that is there is opened once") {
  const CudaDevice& none = cuda_device(900);
  CHECK(!none.device);
  CHECK(!none.why.empty());
  CHECK(why_no_hardware(900) != "");
  const CudaDevice& first = cuda_device(0);
  CHECK((first.device == nullptr) == !first.why.empty());
  CHECK(first.engines >= 1);
  CHECK(&cuda_device(0) == &first);
}

TEST_CASE("hardware is chosen by name, and only where it is") {
  CHECK(choose_hardware("none") == nullptr);
  CHECK_THROWS_WITH(choose_hardware("vaapi"), Catch::Contains("'vaapi' is none of"));
  if (why_no_hardware().empty()) {
    CHECK(choose_hardware("auto") != nullptr);
    CHECK(choose_hardware("cuda") != nullptr);
    return;
  }
  CHECK(choose_hardware("auto") == nullptr);
  try {
    choose_hardware("cuda");
    FAIL("hardware that is not there was chosen");
  } catch (const vfm::Error& error) {
    CHECK(error.kind() == vfm::ErrorKind::usage);
    CHECK_THAT(error.what(), Catch::Contains(why_no_hardware()));
  }
}

TEST_CASE("NVDEC's frames are software's") {
  NEED_FFMPEG();
  if (!why_no_hardware().empty()) {
    WARN("skipped: " << why_no_hardware());
    return;
  }
  const auto [name, codec] = GENERATE(table<const char*, const char*>(
      {{"nvdec.mp4", "libx264 -preset medium -bf 3 -g 30 -pix_fmt yuv420p"},
       {"nvdec_odd.mp4", "libx264 -vf crop=398:222:6:4 -g 12 -pix_fmt yuvj420p"},
       {"nvdec_hevc.mp4", "libx265 -x265-params log-level=none -pix_fmt yuv420p"},
       {"nvdec_ten.mp4", "libx265 -x265-params log-level=none -pix_fmt yuv420p10le"},
       {"nvdec.webm", "libvpx-vp9 -vf crop=396:220 -deadline realtime -pix_fmt yuv420p"},
       {"nvdec_ten.webm", "libvpx-vp9 -deadline realtime -pix_fmt yuv420p10le"},
       {"nvdec_lace.mkv", "libx264 -flags +ilme+ildct -pix_fmt yuv420p"}}));
  CAPTURE(name);
  media_files::run(
      std::string("ffmpeg -v error -nostdin -y -f lavfi -i testsrc2=s=416x240:r=25:d=3 ") +
      "-c:v " + codec + " " + path(name));
  const auto hardware = choose_hardware("cuda");
  const Counter counter(*hardware);
  CHECK(decode(path(name), &counter) == decode(path(name), nullptr));
  // Interlaced pictures are software's; all else must really have come from NVDEC.
  CHECK((counter.pictures > 0) == (std::string(name) != "nvdec_lace.mkv"));
}
