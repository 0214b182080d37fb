// What a causal video autoencoder is made of, bf16, at the sizes that it has inside for video of
// 704 x 1,280 pixels in patches of 4: convolutions and attention in TFLOP/s, norms in GB/s (each
// array read and written once; the norm reads its input twice, which is not counted). And such a
// tokenizer of the published size, both ways, over 121 frames. Convolutions are cuDNN's where it
// has them; "own" are our kernels alone.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gpu.h"
#include "models/cosmos/autoencoder.h"
#include "ops/attention/video_attention.h"
#include "ops/conv/conv2d.h"
#include "ops/determinism.h"
#include "ops/norm/frame_norm.h"

using namespace vfm;

namespace {

void report(const std::string& what, double amount, const char* unit,
            const std::function<void()>& launch) {
  const bench::Name name{"video", what, ops::deterministic() ? "own" : "vfm"};
  if (bench::rehearsal()) launch();
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
  const Tensor y(dy.shape(), DType::bf16, bench::place());
  const Tensor dx(x.shape(), DType::bf16, bench::place());
  const Tensor dw = Tensor::zeros(w.shape(), DType::f32, bench::place());
  const Tensor dbias = Tensor::zeros(bias.shape(), DType::f32, bench::place());
  const double flops =
      2e-12 * static_cast<double>(dy.elements()) * static_cast<double>(taps * channels);
  report(name + " forward", flops, "TFLOP/s", [&] {
    ops::conv2d(bench::place(), c, DType::bf16, x.raw(), w.raw(), bias.data<float>(), nullptr,
                y.raw());
  });
  report(name + " dgrad", flops, "TFLOP/s", [&] {
    ops::conv2d_backward_data(bench::place(), c, DType::bf16, dy.raw(), w.raw(), dx.raw());
  });
  report(name + " wgrad", flops, "TFLOP/s", [&] {
    ops::conv2d_backward_weights(bench::place(), c, DType::bf16, x.raw(), dy.raw(),
                                 dw.data<float>(), dbias.data<float>());
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
    tape.watch(weight, Tensor::zeros(weight.shape(), DType::f32, bench::place()));
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

// NVIDIA's CV8x8x8, bf16, 121 frames of 704 x 1,280 pixels at once: seconds.
void time_tokenizer() {
  const auto seconds = [](const std::string& what, const std::function<void()>& run) {
    const bench::Name name{"video", what, ops::deterministic() ? "own" : "vfm"};
    if (bench::rehearsal()) run();
    bench::attempt(name, [&] { bench::print(name, bench::seconds_per_call(run), "s"); });
  };
  const models::CosmosAutoencoder model({}, 0, DType::bf16, bench::place(), false);
  if (!bench::rehearsal())
    for (const nn::Parameter* p : model.parameters()) {
      // As large as PyTorch begins with: activations neither grow nor vanish.
      const bool matrix = p->shape().size() > 1;
      const auto inputs = static_cast<float>(p->elements() / p->shape()[0]);
      const float scale = matrix ? 1 / std::sqrt(3 * inputs) : 1.f;
      p->write(bench::random_tensor(p->shape(), DType::f32, random_key(p->name), scale));
    }
  const Tensor pixels = bench::random_tensor({121, 704, 1280, 3}, DType::f32, 1, 0.3f);
  const Tensor latents = bench::random_tensor({16, 88, 160, 16}, DType::f32, 2);
  seconds("tokenizer encode", [&] { model.encode_stream().push(pixels, true); });
  seconds("tokenizer decode", [&] { model.decode_stream().push(latents, true); });
}

void time_convolutions() {
  time_conv("3x3, 128 channels", 8, 176, 320, 128, false);
  time_conv("3x3, 512 channels", 8, 88, 160, 512, false);
  time_conv("in time, 256 channels", 8, 176, 320, 256, true);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run([&] {
    if (argc > 1) fail_usage("there is no argument '{}'", argv[1]);
    time_convolutions();
    time_norm();
    time_attention();
    time_tokenizer();
    ops::set_deterministic(true);
    time_convolutions();
    time_tokenizer();
  });
}
