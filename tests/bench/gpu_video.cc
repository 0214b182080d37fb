// What a causal video autoencoder is made of, bf16, at the sizes that it has inside for video of
// 704 x 1,280 pixels in patches of 4: convolutions and attention in TFLOP/s, norms in GB/s (each
// array read and written once; the norm reads its input twice, which is not counted).
// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"
#include "ops/attention/frame_attention.h"
#include "ops/conv/conv2d.h"
#include "ops/norm/frame_norm.h"

using namespace vfm;

namespace {

void report(const std::string& what, double amount, const char* unit,
            const std::function<void()>& launch) {
  const bench::Name name{"video", what};
  bench::attempt(name, [&] { bench::print(name, amount / bench::seconds_per_call(launch), unit); });
}

// (1,3,3), or (3,1,1) as images of three rows.
void time_conv(const std::string& name, std::int64_t frames, std::int64_t height,
               std::int64_t width, std::int64_t channels, bool in_time) {
  ops::Conv2d c;
  c.in = c.out = channels;
  c.kernel_height = 3;
  if (in_time) {
    c.height = frames + 2, c.width = height * width;
  } else {
    c.images = frames, c.height = height, c.width = width, c.kernel_width = 3;
    c.pad_top = c.pad_bottom = c.pad_left = c.pad_right = 1;
  }
  c.x_step = c.height * c.width * channels;
  const Tensor x = bench::random_tensor({c.images, c.height, c.width, channels}, DType::bf16, 1);
  const Tensor dy = bench::random_tensor({frames, height, width, channels}, DType::bf16, 2);
  const std::int64_t taps = c.kernel_height * c.kernel_width;
  const Tensor w = bench::random_tensor({channels, channels, taps}, DType::bf16, 3, 0.02f);
  const Tensor bias = bench::random_tensor({channels}, DType::f32, 4);
  const Tensor y(dy.shape(), DType::bf16, Device::cuda), dx(x.shape(), DType::bf16, Device::cuda);
  const Tensor dw = Tensor::zeros(w.shape(), DType::f32, Device::cuda);
  const Tensor dbias = Tensor::zeros(bias.shape(), DType::f32, Device::cuda);
  const double flops =
      2e-12 * static_cast<double>(dy.elements()) * static_cast<double>(taps * channels);
  report(name + " forward", flops, "TFLOP/s", [&] {
    ops::conv2d(Device::cuda, c, DType::bf16, x.raw(), w.raw(), bias.data<float>(), nullptr,
                y.raw());
  });
  report(name + " dgrad", flops, "TFLOP/s", [&] {
    ops::conv2d_backward_data(Device::cuda, c, DType::bf16, dy.raw(), w.raw(), dx.raw());
  });
  report(name + " wgrad", flops, "TFLOP/s", [&] {
    ops::conv2d_backward_weights(Device::cuda, c, DType::bf16, x.raw(), dy.raw(), dw.data<float>(),
                                 dbias.data<float>());
  });
}

void time_norm() {
  const Tensor x = bench::random_tensor({8, 176, 320, 128}, DType::bf16, 1);
  const Tensor dy = bench::random_tensor(x.shape(), DType::bf16, 2);
  const Tensor weight = bench::random_tensor({128}, DType::f32, 3);
  const Tensor bias = bench::random_tensor({128}, DType::f32, 4);
  const double bytes = 2e-9 * static_cast<double>(x.elements());
  ops::Tape silent(false);
  report("norm and silu forward", 2 * bytes, "GB/s",
         [&] { ops::frame_norm(silent, x, weight, bias, 1e-6f, true); });
  report("norm and silu, forward and backward", 5 * bytes, "GB/s", [&] {
    ops::Tape tape;
    tape.watch(weight, Tensor::zeros(weight.shape(), DType::f32, Device::cuda));
    tape.backward(ops::frame_norm(tape, x, weight, bias, 1e-6f, true), dy);
  });
}

void time_attention() {
  const Tensor q = bench::random_tensor({2, 88, 160, 512}, DType::bf16, 1);
  const Tensor k = bench::random_tensor(q.shape(), DType::bf16, 2);
  const Tensor v = bench::random_tensor(q.shape(), DType::bf16, 3);
  ops::Tape silent(false);
  const double keys = 88 * 160;
  report("attention in a frame forward", 4e-12 * 2 * keys * keys * 512, "TFLOP/s",
         [&] { ops::frame_attention(silent, q, k, v); });
}

}  // namespace

int main() {
  return bench::run([] {
    time_conv("3x3, 128 channels", 8, 176, 320, 128, false);
    time_conv("3x3, 512 channels", 8, 88, 160, 512, false);
    time_conv("in time, 256 channels", 8, 176, 320, 256, true);
    time_norm();
    time_attention();
  });
}
