// SPDX-License-Identifier: Apache-2.0
#include "media/decode/picture_memory.h"

#include <cstring>
#include <iterator>

namespace vfm::media {
namespace {

// Vector code reads and writes a little beyond the end of planes. FFmpeg's own planes have as much
// padding.
constexpr std::size_t kBehind = 16 + 2 * PictureMemory::kAlign;

struct Planes {
  std::ptrdiff_t stride[4] = {};
  std::size_t bytes[4] = {};  // 0 if there is none.
};

// Plans planes as FFmpeg does. All rows get longer together, because codecs expect chroma rows of
// half the length of luma rows.
bool plan_planes(AVCodecContext& codec, const AVFrame& picture, Planes& planes) {
  int width = picture.width, height = picture.height, align[AV_NUM_DATA_POINTERS];
  const auto format = static_cast<AVPixelFormat>(picture.format);
  avcodec_align_dimensions2(&codec, &width, &height, align);
  for (bool aligned = false; !aligned;) {
    int strides[4];
    if (av_image_fill_linesizes(strides, format, width) < 0) return false;
    aligned = true;
    for (int p = 0; p < 4; ++p) {
      planes.stride[p] = strides[p];
      aligned = aligned && strides[p] % align[p] == 0;
    }
    width += width & ~(width - 1);  // Adds the lowest set bit.
  }
  return av_image_fill_plane_sizes(planes.bytes, format, height, planes.stride) >= 0;
}

int get_buffer(AVCodecContext* codec, AVFrame* picture, int flags) {
  const auto& watch = *static_cast<const CodecWatch*>(codec->opaque);
  const bool placed = watch.memory && watch.memory->give(*codec, *picture);
  const int result = placed ? 0 : avcodec_default_get_buffer2(codec, picture, flags);
  if (!watch.clean || picture->hw_frames_ctx) return result;  // The latter is on a GPU.
  for (int p = 0; result >= 0 && p < AV_NUM_DATA_POINTERS && picture->buf[p]; ++p)
    std::memset(picture->buf[p]->data, p == 0 ? 16 : 128,
                static_cast<std::size_t>(picture->buf[p]->size));
  return result;
}

}  // namespace

PictureMemory::PictureMemory(std::uint8_t* memory, std::size_t size) : memory_(memory) {
  if (size / kAlign > 0) free_[0] = size / kAlign * kAlign;
}

/// Takes the first piece that is large enough, so that used memory is used again.
std::uint8_t* PictureMemory::find(std::size_t size) {
  const std::size_t whole = (size + kAlign - 1) / kAlign * kAlign;
  const std::lock_guard lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [place, room] = *it;
    if (room < whole || whole < size) continue;
    free_.erase(it);
    if (room > whole) free_[place + whole] = room - whole;
    taken_[place] = whole;
    return memory_ + place;
  }
  return nullptr;
}

void PictureMemory::put_back(const std::uint8_t* piece) {
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(static_cast<std::size_t>(piece - memory_));
  auto [place, size] = *taken;
  taken_.erase(taken);
  // Joins the piece with free neighbours.
  auto after = free_.lower_bound(place);
  if (after != free_.end() && after->first == place + size) {
    size += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin() && std::prev(after)->first + std::prev(after)->second == place)
    std::prev(after)->second += size;
  else
    free_[place] = size;
}

std::shared_ptr<std::uint8_t> PictureMemory::take(std::size_t size) {
  std::uint8_t* const piece = size > 0 ? find(size) : nullptr;
  if (!piece) return nullptr;
  return {piece, [this](const std::uint8_t* done) { put_back(done); }};
}

AVBufferRef* PictureMemory::make_buffer(std::size_t size) {
  std::uint8_t* const piece = find(size);
  if (!piece) return nullptr;
  const auto free = [](void* self, std::uint8_t* done) {
    static_cast<PictureMemory*>(self)->put_back(done);
  };
  AVBufferRef* const buffer = av_buffer_create(piece, size, free, this, 0);
  if (!buffer) put_back(piece);
  return buffer;
}

bool PictureMemory::give(AVCodecContext& codec, AVFrame& picture) {
  Planes planes;
  PixelLayout layout{};
  // A codec without this capability has memory of its own.
  if (!(codec.codec->capabilities & AV_CODEC_CAP_DR1) || codec.hw_frames_ctx ||
      !(lies_as_frame(picture.format, layout) || picture.format == AV_PIX_FMT_YUV420P10) ||
      !plan_planes(codec, picture, planes))
    return false;
  for (int p = 0; p < 4 && planes.bytes[p] > 0; ++p) {
    picture.buf[p] = make_buffer(planes.bytes[p] + kBehind);
    if (!picture.buf[p]) {
      for (int q = 0; q < p; ++q) {
        av_buffer_unref(&picture.buf[q]);
        picture.data[q] = nullptr;
        picture.linesize[q] = 0;
      }
      return false;
    }
    picture.data[p] = picture.buf[p]->data;
    picture.linesize[p] = static_cast<int>(planes.stride[p]);
  }
  picture.extended_data = picture.data;
  return true;
}

void place_pictures(AVCodecContext* codec) {
  codec->get_buffer2 = get_buffer;
#if FF_API_THREAD_SAFE_CALLBACKS
// FFmpeg 5 needs permission to call get_buffer() from its threads. Later versions do so anyway.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  codec->thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
}

}  // namespace vfm::media
