// The wavelet tokenizer on a GPU: a batch of latent frames at a time, all of its planes together.
// Shape letters: T H W pixels, t h w latent, F time factor, C channels, P planes of a latent frame.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "base/stop.h"
#include "kernels/wavelet.h"
#include "models/wavelet/wavelet.h"
#include "tensor/device.h"

namespace vfm::models {
namespace {

/// Runs `work` when it is this thread's turn. Whatever fails there, memory too, is the GPU's fault.
template <class Work>
std::vector<float> on_gpu(Work work) {
  const auto turn = take_turn(Device::cuda);
  try {
    return work();
  } catch (const Error& error) {
    throw GpuError(error.what());
  }
}

/// Copies T frames of a colour at a time between (3, all, area) and (3, count, area).
void copy_frames(float* to, Device to_device, std::int64_t to_frames, const float* from,
                 Device from_device, std::int64_t from_frames, std::int64_t count,
                 std::int64_t area) {
  for (int colour = 0; colour < 3; ++colour)
    copy_bytes(to + colour * to_frames * area, to_device, from + colour * from_frames * area,
               from_device, static_cast<std::size_t>(count * area) * sizeof(float));
}

}  // namespace

/// What a tokenizer needs for one size of picture.
struct WaveletTokenizer::Gpu {
  /// `frames`, `latent_height` and `latent_width` are of the latent.
  Gpu(const WaveletTokenizer& t, int frames, int latent_height, int latent_width,
      const std::vector<float>& matrix)
      : height(latent_height * t.space_),
        width(latent_width * t.space_),
        room(t, frames, latent_height, latent_width, Device::cuda) {
    std::vector<int> plane_of(t.row_used_.size());
    for (std::size_t i = 0; i < t.row_used_.size(); ++i) {
      plane_of[i] = planes;
      if (!t.row_used_[i]) continue;
      batch.rows |= std::uint64_t{1} << i;
      ++planes;
    }
    details.assign(static_cast<std::size_t>(t.levels_) + 1, false);
    std::vector<kernels::WaveletBand> list;
    for (const Band& band : t.bands_) {
      const auto [top, left, step] = t.place_of(band, height, width);
      list.push_back({std::int64_t{top} * width + left, plane_of[band.colour * t.time_ + band.time],
                      band.level, step});
      if (band.high_x || band.high_y) details[band.level] = true;
    }
    bands = upload(list);
    channels.bands = reinterpret_cast<const kernels::WaveletBand*>(bands.raw());
    channels.channels = t.channels();
    channels.planes = planes;
    channels.levels = t.levels_;
    channels.all = frames;
    channels.height = batch.height = height;
    channels.width = batch.width = width;
    batch.time = t.time_;
    std::copy(matrix.begin(), matrix.end(), batch.matrix);
  }

  std::int64_t area() const { return std::int64_t{height} * width; }
  /// The array of a batch's planes (kernels/wavelet.h) after `level` levels.
  float* planes_of(int level) const {
    return (level % 2 == 0 ? room.even : room.odd).data<float>();
  }
  /// Latent frames `first` and following.
  void choose(std::int64_t first) {
    channels.first = first;
    channels.frames = batch.frames = std::min(room.batch, channels.all - first);
    batch.single = first == 0;
  }
  /// Frames of the batch, and the first of them in the video.
  std::int64_t frames() const {
    return batch.frames * batch.time - (batch.single ? batch.time - 1 : 0);
  }
  std::int64_t first_frame() const {
    return channels.first == 0 ? 0 : 1 + (channels.first - 1) * batch.time;
  }
  kernels::WaveletLevel level(int which) const {
    return {batch.frames * planes, height, width, which, details[static_cast<std::size_t>(which)]};
  }

  int height, width;
  GpuRoom room;
  int planes = 0;             ///< P
  std::vector<bool> details;  ///< of level i: whether any channel holds some
  Tensor bands;               ///< what channels.bands points to
  kernels::WaveletBatch batch;
  kernels::WaveletChannels channels;
};

std::vector<float> WaveletTokenizer::cuda::encode(const WaveletTokenizer& t,
                                                  std::span<const float> pixels, int frames,
                                                  int height, int width) {
  return on_gpu([&] {
    Gpu gpu(t, 1 + (frames - 1) / t.time_, height / t.space_, width / t.space_, t.time_analysis_);
    const std::int64_t area = gpu.area();
    const Tensor &video = gpu.room.video, &latents = gpu.room.latents;
    for (std::int64_t k = 0; k < gpu.channels.all; k += gpu.room.batch) {
      check_stop();
      gpu.choose(k);
      copy_frames(video.data<float>(), Device::cuda, gpu.frames(),
                  pixels.data() + gpu.first_frame() * area, Device::cpu, frames, gpu.frames(),
                  area);
      check_gpu(kernels::wavelet_split(gpu.batch, video.data<float>(), gpu.planes_of(0),
                                       compute_stream()),
                "split frames");
      for (int level = 1; level <= t.levels_; ++level)
        check_gpu(kernels::wavelet_analyse(gpu.level(level), gpu.planes_of(level - 1),
                                           gpu.planes_of(level), compute_stream()),
                  "run the wavelet");
      check_gpu(kernels::wavelet_gather(gpu.channels, gpu.planes_of(0), gpu.planes_of(1),
                                        latents.data<float>(), compute_stream()),
                "gather latents");
    }
    std::vector<float> result(static_cast<std::size_t>(latents.elements()));
    copy_bytes(result.data(), Device::cpu, latents.raw(), Device::cuda, latents.bytes());
    return result;
  });
}

std::vector<float> WaveletTokenizer::cuda::decode(const WaveletTokenizer& t,
                                                  std::span<const float> latents, int frames,
                                                  int height, int width) {
  return on_gpu([&] {
    Gpu gpu(t, frames, height, width, t.time_synthesis_);
    const std::int64_t area = gpu.area(), full_frames = 1 + std::int64_t{frames - 1} * t.time_;
    const Tensor &video = gpu.room.video, &source = gpu.room.latents;
    copy_bytes(source.raw(), Device::cuda, latents.data(), Device::cpu, latents.size_bytes());
    std::vector<float> pixels(static_cast<std::size_t>(3 * full_frames * area));
    for (std::int64_t k = 0; k < frames; k += gpu.room.batch) {
      check_stop();
      gpu.choose(k);
      // Coefficients that no channel holds are 0.
      for (const Tensor& planes : {gpu.room.even, gpu.room.odd})
        zero_bytes(planes.raw(), Device::cuda, planes.bytes());
      check_gpu(kernels::wavelet_scatter(gpu.channels, source.data<float>(), gpu.planes_of(0),
                                         gpu.planes_of(1), compute_stream()),
                "scatter latents");
      for (int level = t.levels_; level >= 1; --level)
        check_gpu(kernels::wavelet_synthesise(gpu.level(level), gpu.planes_of(level),
                                              gpu.planes_of(level - 1), compute_stream()),
                  "undo the wavelet");
      check_gpu(kernels::wavelet_merge(gpu.batch, gpu.planes_of(0), video.data<float>(),
                                       compute_stream()),
                "merge frames");
      copy_frames(pixels.data() + gpu.first_frame() * area, Device::cpu, full_frames,
                  video.data<float>(), Device::cuda, gpu.frames(), gpu.frames(), area);
    }
    return pixels;
  });
}

}  // namespace vfm::models
