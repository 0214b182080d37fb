// The ops of a causal video autoencoder, and those between the products of a transformer, on the
// GPU against the CPU: results and every gradient, f32 and bf16, odd sizes and such as tensor cores
// take. Built twice: with the library for a real GPU, and for the emulation.
// SPDX-License-Identifier: Apache-2.0
#include <exception>

#include "kernel_test.h"
#include "ops/attention/video_attention.h"
#include "ops/conv/conv.h"
#include "ops/conv/haar.h"
#include "ops/conv/resample.h"
#include "ops/norm/frame_norm.h"
#include "ops/norm/heads_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/pointwise/cast.h"
#include "ops/pointwise/join.h"
#include "ops/position/qk_norm_rope.h"
#include "tensor/device.h"
#include "tensors.h"

using namespace vfm;
using namespace vfm::ops;
using test::apart;
using test::Checker;

namespace {

using Op = std::function<Tensor(Tape&, const std::vector<Tensor>&)>;

// An input: vectors (weights of norms, biases) are f32 always.
Tensor placed(const Tensor& input, DType dtype, Device device) {
  return input.to(device).to(input.dims() == 1 ? DType::f32 : dtype);
}

// The result, and the gradients of the inputs.
std::vector<Tensor> run(Device device, DType dtype, const std::vector<Tensor>& inputs,
                        const Op& op) {
  Tape tape;
  std::vector<Tensor> leaves, outcome(1);
  for (const Tensor& input : inputs) {
    leaves.push_back(placed(input, dtype, device));
    outcome.push_back(Tensor::zeros(input.shape(), DType::f32, device));
    tape.watch(leaves.back(), outcome.back());
  }
  const Tensor result = op(tape, leaves);
  outcome[0] = result.clone();
  tape.backward(result, noise_tensor(result.shape(), 99).to(device).to(result.dtype()));
  return outcome;
}

void compare(Checker& checker, const std::string& name, const std::vector<Tensor>& inputs,
             const Op& op, double tolerance = 2e-5) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto cpu = run(Device::cpu, dtype, inputs, op),
               gpu = run(Device::cuda, dtype, inputs, op);
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      checker.apart(name + (dtype == DType::f32 ? " f32" : " bf16") +
                        (i == 0 ? "" : ", gradient " + std::to_string(i)),
                    apart(gpu[i], cpu[i]), dtype == DType::f32 ? tolerance : 1.6e-2);
    }
  }
}

struct Sizes {
  std::int64_t frames, height, width, in, out;
};

std::string text(const Sizes& s) {
  return std::to_string(s.frames) + "x" + std::to_string(s.height) + "x" + std::to_string(s.width) +
         " " + std::to_string(s.in) + " -> " + std::to_string(s.out);
}

void test_space(Checker& checker) {
  for (const Sizes& s : {Sizes{2, 5, 7, 3, 5}, Sizes{1, 6, 4, 8, 200}, Sizes{3, 7, 11, 72, 64},
                         Sizes{2, 9, 3, 24, 72}, Sizes{1, 1, 1, 16, 8}}) {
    const std::vector<Tensor> in{noise_tensor({s.frames, s.height, s.width, s.in}, 1),
                                 noise_tensor({s.out, s.in, 1, 3, 3}, 2), noise_tensor({s.out}, 3),
                                 noise_tensor({s.frames, s.height, s.width, s.out}, 4)};
    compare(checker, "space " + text(s), in, [](Tape& t, const std::vector<Tensor>& i) {
      SpaceConv how;
      how.residual = i[3];
      how.lead.frames = 2;
      return conv_space(t, i[0], i[1], i[2], how);
    });
  }
  for (const Sizes& s : {Sizes{2, 4, 6, 3, 5}, Sizes{3, 10, 6, 16, 24}, Sizes{1, 2, 2, 8, 8}}) {
    const std::vector<Tensor> in{noise_tensor({s.frames, s.height, s.width, s.in}, 1),
                                 noise_tensor({s.out, s.in, 1, 3, 3}, 2), noise_tensor({s.out}, 3)};
    compare(checker, "space, halved " + text(s), in, [](Tape& t, const std::vector<Tensor>& i) {
      SpaceConv how;
      how.stride = 2;
      return conv_space(t, i[0], i[1], i[2], how);
    });
    compare(checker, "space, a strip " + text(s), in, [](Tape& t, const std::vector<Tensor>& i) {
      SpaceConv how;
      how.halo_above = i[0].size(1) > 2, how.halo_below = true;
      return conv_space(t, i[0], i[1], i[2], how);
    });
  }
}

void test_time_and_point(Checker& checker) {
  for (const Sizes& s : {Sizes{5, 3, 5, 3, 3}, Sizes{7, 9, 15, 24, 24}, Sizes{3, 1, 1, 8, 8}}) {
    const std::vector<Tensor> in{noise_tensor({s.frames, s.height, s.width, s.in}, 1),
                                 noise_tensor({s.out, s.in, 3, 1, 1}, 2), noise_tensor({s.out}, 3)};
    compare(checker, "time " + text(s), in, [](Tape& t, const std::vector<Tensor>& i) {
      TimeConv how;
      how.add_last = true;
      return conv_time(t, i[0], i[1], i[2], how);
    });
    compare(checker, "time, halved " + text(s), in, [](Tape& t, const std::vector<Tensor>& i) {
      TimeConv how;
      how.stride = 2;
      return conv_time(t, i[0], i[1], i[2], how);
    });
  }
  for (const Sizes& s : {Sizes{2, 3, 5, 5, 7}, Sizes{1, 13, 11, 136, 16}}) {
    const std::vector<Tensor> in{noise_tensor({s.frames, s.height, s.width, s.in}, 1),
                                 noise_tensor({s.out, s.in, 1, 1, 1}, 2), noise_tensor({s.out}, 3),
                                 noise_tensor({s.frames, s.height, s.width, s.out}, 4)};
    compare(checker, "point " + text(s), in, [](Tape& t, const std::vector<Tensor>& i) {
      return conv_point(t, i[0], i[1], i[2], i[3]);
    });
  }
}

void test_video(Checker& checker) {
  for (const Sizes& s : {Sizes{4, 5, 7, 3, 5}, Sizes{3, 6, 4, 8, 72}, Sizes{1, 7, 11, 72, 64}}) {
    const std::vector<Tensor> in{noise_tensor({s.frames, s.height, s.width, s.in}, 1),
                                 noise_tensor({s.out, s.in, 3, 3, 3}, 2), noise_tensor({s.out}, 3)};
    const Tensor earlier = noise_tensor({2, s.height, s.width, s.in}, 4);
    compare(checker, "video " + text(s), in, [](Tape& t, const std::vector<Tensor>& i) {
      return conv_video(t, i[0], i[1], i[2], padded_before(i[1]));
    });
    compare(checker, "video, halved " + text(s), in, [](Tape& t, const std::vector<Tensor>& i) {
      VideoConv how = padded_before(i[1]);
      how.stride = {2, 2, 2};
      return conv_video(t, i[0], i[1], i[2], how);
    });
    compare(checker, "video, later " + text(s), in, [&](Tape& t, const std::vector<Tensor>& i) {
      const Tensor history = placed(earlier, i[0].dtype(), i[0].device());
      return conv_video(t, i[0], i[1], i[2], padded_before(i[1], history));
    });
  }
}

void test_norm(Checker& checker) {
  for (const Shape& shape : {Shape{3, 5, 7, 19}, Shape{2, 9, 13, 24}, Shape{1, 1, 1, 40},
                             Shape{1, 3, 1, 520}, Shape{2, 2, 1, 2100}}) {
    const Tensor x = noise_tensor(shape, 1);
    for (float& v : x.floats())
      v = 2 * v + 7;
    const Tensor first = x.rows(0, 1);
    for (float& v : first.floats())
      v = 20 * v + 300;  // a frame that would drown the others
    const std::vector<Tensor> in{x, noise_tensor({shape[3]}, 2), noise_tensor({shape[3]}, 3)};
    for (const bool silu : {false, true})
      compare(
          checker, "norm " + to_string(shape) + (silu ? " and silu" : ""), in,
          [silu](Tape& t, const std::vector<Tensor>& i) {
            return frame_norm(t, i[0], i[1], i[2], 1e-6f, silu);
          },
          2e-4);  // far from zero, where its moments have few bits
    checker.check("moments of " + to_string(shape),
                  apart(frame_moments(x.to(Device::cuda)), frame_moments(x)) < 1e-6);
  }
}

void test_attention(Checker& checker) {
  for (const std::int64_t channels : {24, 21, 264}) {
    const std::vector<Tensor> in{noise_tensor({2, 3, 5, channels}, 1),
                                 noise_tensor({2, 7, 5, channels}, 2),
                                 noise_tensor({2, 7, 5, channels}, 3)};
    compare(
        checker, "frame attention " + std::to_string(channels), in,
        [](Tape& t, const std::vector<Tensor>& i) { return frame_attention(t, i[0], i[1], i[2]); });
    const Shape shape{5, 3, 3, channels};
    const std::vector<Tensor> one{noise_tensor(shape, 1), noise_tensor(shape, 2),
                                  noise_tensor(shape, 3)};
    compare(checker, "time attention " + std::to_string(channels), one,
            [](Tape& t, const std::vector<Tensor>& i) {
              return time_attention(t, i[0], {{i[1]}, {i[2]}});
            });
    Tape silent(false);
    const Tensor q = one[0].to(Device::cuda), k = one[1].to(Device::cuda),
                 v = one[2].to(Device::cuda);
    const Tensor later = time_attention(
        silent, q.rows(3, 5), {{k.rows(0, 2), k.rows(2, 5)}, {v.rows(0, 4), v.rows(4, 5)}});
    checker.check("keys in pieces give the same bits",
                  apart(later, time_attention(silent, q, {{k}, {v}}).rows(3, 5)) == 0);
  }
}

void test_haar(Checker& checker) {
  for (const int patch : {2, 4, 8})
    for (const bool start : {false, true}) {
      const std::int64_t t = start ? 1 + patch : 2 * patch;
      const std::string name = std::to_string(patch) + (start ? " from the start" : "");
      const Tensor x = noise_tensor({t, 2 * patch, 3 * patch, 3}, 1);
      const Op split = [=](Tape& tape, const std::vector<Tensor>& i) {
        return haar_analysis(tape, i[0].to(DType::f32), patch, start, i[0].dtype());
      };
      // Pixels are f32: with bf16 there is no gradient through the conversion, and none is asked.
      Tape silent(false);
      const Tensor pixels = x.to(Device::cuda);
      const Tensor bands = haar_analysis(silent, pixels, patch, start, DType::f32);
      checker.check("Haar bands in patches of " + name,
                    apart(bands, haar_analysis(silent, x, patch, start, DType::f32)) == 0);
      checker.check("Haar bands in bf16, " + name,
                    apart(haar_analysis(silent, pixels, patch, start, DType::bf16),
                          haar_analysis(silent, x, patch, start, DType::bf16)) == 0);
      const auto cpu = run(Device::cpu, DType::f32, {x}, split),
                 gpu = run(Device::cuda, DType::f32, {x}, split);
      checker.check("the gradient of Haar bands, " + name, apart(gpu[1], cpu[1]) == 0);
      compare(
          checker, "pixels of Haar bands, " + name, {noise_tensor(bands.shape(), 2)},
          [=](Tape& tape, const std::vector<Tensor>& i) {
            return haar_synthesis(tape, i[0], patch, start);
          },
          1e-30);
    }
}

void test_resample(Checker& checker) {
  for (const std::int64_t channels : {17, 24}) {
    const std::vector<Tensor> in{noise_tensor({5, 4, 6, channels}, 1)};
    const std::string name = " of " + std::to_string(channels);
    const auto with = [&](const std::string& what, const auto& op) {
      compare(
          checker, what + name, in,
          [op](Tape& t, const std::vector<Tensor>& i) { return op(t, i[0]); }, 1e-6);
    };
    with("halved pixels", [](Tape& t, const Tensor& x) { return pool_space(t, x); });
    with("doubled pixels", [](Tape& t, const Tensor& x) { return repeat_space(t, x); });
    with("halved frames", [](Tape& t, const Tensor& x) { return pool_time(t, x); });
    with("doubled frames", [](Tape& t, const Tensor& x) {
      return repeat_time(t, x, true, {2, {}});
    });
    with("doubled frames, later",
         [](Tape& t, const Tensor& x) { return repeat_time(t, x, false, {}); });
  }
}

// Queries, keys and values of `heads` heads each: norms over all heads and of each head, rotation,
// layer norm, and matrices joined and taken apart.
void test_rows(Checker& checker) {
  for (const std::int64_t dim : {20, 64}) {
    const std::int64_t tokens = 37, heads = 3, width = heads * dim;
    const std::string name = std::to_string(tokens) + " x " + std::to_string(width);
    const std::vector<Tensor> in{noise_tensor({tokens, 3 * width}, 1), noise_tensor({width}, 2),
                                 noise_tensor({width}, 3)};
    compare(checker, "norm over heads " + name, in, [](Tape& t, const std::vector<Tensor>& i) {
      return heads_norm(t, i[0], {{i[1], i[2]}, 1e-5f});
    });
    // The other rank of two has the same.
    const auto twice = [](const Tensor& x) {
      const Tensor sum = x.to(Device::cpu).clone();
      for (float& v : sum.floats())
        v *= 2;
      return sum.to(x.device());
    };
    compare(checker, "norm over heads of ranks " + name, in,
            [&](Tape& t, const std::vector<Tensor>& i) {
              return heads_norm(t, i[0], {{i[1], i[2]}, 1e-5f, 2, {twice, twice}});
            });
    for (const bool pairs : {false, true})
      compare(checker, (pairs ? "pairs turned " : "halves turned ") + name, {in[0]},
              [&](Tape& t, const std::vector<Tensor>& i) {
                const auto table = [&](std::uint64_t key) {
                  return noise_tensor({tokens, dim / 2}, key).to(i[0].device());
                };
                QkNormRope layout;
                layout.query_heads = layout.key_heads = layout.value_heads = heads;
                layout.head_dim = static_cast<int>(dim);
                layout.cosines = table(4), layout.sines = table(5);
                layout.pairs = pairs;
                return qk_norm_rope(t, i[0], layout);
              });
    compare(checker, "layer norm " + name, {noise_tensor({tokens, width}, 6), in[1], in[2]},
            [](Tape& t, const std::vector<Tensor>& i) {
              const Tensor y = layer_norm(t, cast(t, i[0], DType::f32), i[1], i[2], 1e-5f);
              return cast(t, y, i[0].dtype());
            });
    compare(checker, "joined and taken apart " + name, {in[0], noise_tensor({tokens, 8}, 7)},
            [&](Tape& t, const std::vector<Tensor>& i) {
              const Tensor beside = join_columns(t, {i[1], i[0]});
              const auto parts = split_columns(t, beside, {width + 3, width + 5, width});
              return join_rows(t, {parts[2], split_columns(t, parts[0], {3, width})[1]});
            });
  }
}

// What does not come from the op's own sum: a frame's result must not depend on its neighbours.
void test_frames_alone(Checker& checker) {
  const Tensor x = noise_tensor({4, 11, 13, 16}, 1).to(DType::bf16).to(Device::cuda);
  const Tensor w = noise_tensor({24, 16, 1, 3, 3}, 2).to(DType::bf16).to(Device::cuda);
  const Tensor bias = noise_tensor({24}, 3).to(Device::cuda),
               weight = noise_tensor({16}, 4).to(Device::cuda);
  const Tensor shift = noise_tensor({16}, 5).to(Device::cuda);
  Tape silent(false);
  const Tensor some = x.rows(2, 4);
  checker.check(
      "two frames of a convolution are those of four",
      apart(conv_space(silent, some, w, bias), conv_space(silent, x, w, bias).rows(2, 4)) == 0);
  checker.check("two frames of a norm are those of four",
                apart(frame_norm(silent, some, weight, shift, 1e-6f, true),
                      frame_norm(silent, x, weight, shift, 1e-6f, true).rows(2, 4)) == 0);
}

void tests(Checker& checker) {
  for (const auto& part : {test_space, test_time_and_point, test_video, test_norm, test_attention,
                           test_haar, test_resample, test_rows, test_frames_alone})
    checker.part(part);
}

}  // namespace

int main() {
  return vfm::test::run(tests);
}
