// The matrix products of a layer of the 7B diffusion transformer at 8,192 tokens, forward and both
// of backward, as ops/matmul/linear.h makes them, on random numbers: TFLOP/s of each, and of all
// together. (PyTorch's weight gradients beside them are bf16 and overwrite; ours are f32 and
// added.)
//   gpu_gemm [CACHE]      CACHE: the file of ops::set_gemm_cache
// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"
#include "ops/matmul/gemm.h"

using namespace vfm;

namespace {

constexpr std::int64_t kTokens = 8192;

struct Layer {
  const char* name;
  std::int64_t in, out;
};
constexpr Layer kLayers[] = {
    {"4096 -> 12288", 4096, 12288},
    {"4096 -> 4096", 4096, 4096},
    {"4096 -> 16384", 4096, 16384},
    {"16384 -> 4096", 16384, 4096},
};

double total_seconds = 0, total_flops = 0;

void time_product(const std::string& what, double flops, const std::function<void()>& launch) {
  const bench::Name name{"gemm", what};
  bench::attempt(name, [&] {
    const double seconds = bench::seconds_per_call(launch);
    total_seconds += seconds;
    total_flops += flops;
    bench::print(name, 1e-12 * flops / seconds, "TFLOP/s", {{"ms", 1e3 * seconds}});
  });
}

void time_layer(const Layer& l) {
  const Tensor x = bench::random_tensor({kTokens, l.in}, DType::bf16, 1);
  const Tensor w = bench::random_tensor({l.out, l.in}, DType::bf16, 2, 0.02f);
  const Tensor dy = bench::random_tensor({kTokens, l.out}, DType::bf16, 3);
  const Tensor y(dy.shape(), DType::bf16, Device::cuda), dx(x.shape(), DType::bf16, Device::cuda);
  const Tensor dw = Tensor::zeros(w.shape(), DType::f32, Device::cuda);
  const double flops = 2.0 * static_cast<double>(kTokens) * static_cast<double>(l.in * l.out);
  const std::string name = l.name;
  const auto matrix = [](const Tensor& t, bool transposed) {
    return ops::Matrix{t.raw(), t.dtype(), t.size(1), transposed};
  };
  time_product(name + " forward", flops, [&] {
    ops::gemm(Device::cuda, kTokens, l.out, l.in, matrix(x, false), matrix(w, true), y.raw(),
              DType::bf16, l.out, false);
  });
  time_product(name + " dgrad", flops, [&] {
    ops::gemm(Device::cuda, kTokens, l.in, l.out, matrix(dy, false), matrix(w, false), dx.raw(),
              DType::bf16, l.in, false);
  });
  time_product(name + " wgrad", flops, [&] {
    ops::gemm(Device::cuda, l.out, l.in, kTokens, matrix(dy, true), matrix(x, false), dw.raw(),
              DType::f32, l.in, true);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run([&] {
    if (argc > 1) ops::set_gemm_cache(argv[1]);
    for (const Layer& layer : kLayers)
      time_layer(layer);
    const bench::Name all{"gemm", "average"};
    if (total_seconds > 0) bench::print(all, 1e-12 * total_flops / total_seconds, "TFLOP/s");
  });
}
