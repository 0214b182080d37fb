// The pictures of clips, made by kernels where the frames are, as the emulation runs them: the
// bytes of the CPU, and the same latents.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "models/wavelet/wavelet.h"
#include "ops/picture/scale_picture.h"
#include "pack/gpu_canvas.h"
#include "support/gpu_decoder.h"
#include "support/gpu_sizes.h"
#include "tensor/device.h"

using namespace vfm;

namespace {

test::GpuBytes in_gpu_memory(const std::vector<std::uint8_t>& bytes) {
  const Tensor copy = upload(bytes);
  synchronize_gpu();
  return {copy.data<std::uint8_t>(), std::make_shared<Tensor>(copy)};
}

}  // namespace

TEST_CASE("pictures that kernels make are those of the scaler") {
  const test::GpuSize size = GENERATE(from_range(test::kGpuSizes));
  CAPTURE(size.width, size.height, size.to_width, size.to_height);
  pack::GpuScales scales(Device::cuda);
  test::check_gpu_size(scales, size, in_gpu_memory);
}

TEST_CASE("several threads make pictures at once, while another has the GPU") {
  pack::GpuScales scales(Device::cuda);
  for (const test::GpuSize& size : test::kGpuSizes)
    test::check_gpu_size(scales, size, in_gpu_memory);  // finds the numbers, which takes a turn
  const media::Frame frame = test::busy_frame(test::kGpuSizes[0]);
  media::Frame on_gpu = frame;
  on_gpu.gpu = std::make_shared<test::PlayedPicture>(frame, in_gpu_memory);
  const media::ScaleOptions to{.width = test::kGpuSizes[0].to_width,
                               .height = test::kGpuSizes[0].to_height};
  std::vector<Tensor> made(3);
  const auto turn = take_turn(Device::cuda);
  std::vector<std::thread> threads;
  for (Tensor& one : made)
    threads.emplace_back([&] {
      pack::GpuCanvas canvas(scales);
      canvas.begin(4, to.height, to.width);
      for (int n = 0; n < 4; ++n)
        canvas.draw(on_gpu, to, false, n);
      one = canvas.pictures();
    });
  for (std::thread& thread : threads)
    thread.join();
  media::RgbImage expected;
  media::Scaler().to_rgb(frame, to, expected);
  for (const Tensor& one : made) {
    const Tensor host = one.to(Device::cpu);
    for (std::size_t n = 0; n < 4; ++n)
      CHECK(std::memcmp(host.data<std::uint8_t>() + n * expected.pixels.size(),
                        expected.pixels.data(), expected.pixels.size()) == 0);
  }
}

TEST_CASE("latents of bytes on the GPU are those of the CPU's pixels") {
  const models::WaveletTokenizer cpu(24, 8, 8), gpu(24, 8, 8, Device::cuda);
  const int frames = 9, height = 32, width = 48;
  Tensor bytes({frames, height, width, 3}, DType::u8);
  for (std::int64_t i = 0; i < bytes.elements(); ++i)
    bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * i * 31 + i);
  const std::vector<float> expected = cpu.encode_bytes(bytes);
  const Tensor room = ops::picture_room(bytes.shape(), Device::cuda);
  ops::put_pictures(bytes, room);
  CHECK(gpu.encode_bytes(room) == expected);
  const Tensor pixels = ops::picture_pixels(room).to(Device::cpu);
  CHECK(std::memcmp(pixels.raw(), ops::picture_pixels(bytes).raw(), pixels.bytes()) == 0);
}
