// The matrix products of a layer of a diffusion transformer, forward and both of backward, as
// ops/matmul/linear.h makes them, on random numbers: TFLOP/s of each, and of all together.
// (PyTorch's weight gradients beside them are bf16 and overwrite; ours are f32 and added.)
//   gpu_gemm [--cache FILE] [MODEL]...      FILE: see ops::set_gemm_cache; MODEL: 7b (the default)
//     at 8,192 tokens, or wan-1.3b-480p, wan-1.3b-720p, wan-14b-480p, wan-14b-720p, 81 frames
// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"
#include "ops/matmul/gemm.h"

using namespace vfm;

namespace {

// Queries, keys and values of one input are one product; so Wan's three are.
struct Model {
  const char* name;
  std::int64_t tokens, width, hidden;
};
constexpr Model kModels[] = {
    {"7b", 8192, 4096, 16384},
    {"wan-1.3b-480p", 32760, 1536, 8960},
    {"wan-1.3b-720p", 75600, 1536, 8960},
    {"wan-14b-480p", 32760, 5120, 13824},
    {"wan-14b-720p", 75600, 5120, 13824},
};

const Model& find_model(std::string_view name) {
  for (const Model& model : kModels)
    if (name == model.name) return model;
  fail_usage("there is no model '{}'; there are 7b and wan-1.3b-480p to wan-14b-720p", name);
}

struct Sum {
  double seconds = 0, flops = 0;
};

void time_product(const std::string& what, double flops, Sum& sum,
                  const std::function<void()>& launch) {
  const bench::Name name{"gemm", what};
  if (bench::rehearsal()) launch();
  bench::attempt(name, [&] {
    const double seconds = bench::seconds_per_call(launch);
    sum.seconds += seconds;
    sum.flops += flops;
    bench::print(name, 1e-12 * flops / seconds, "TFLOP/s", {{"ms", 1e3 * seconds}});
  });
}

void time_layer(const std::string& name, std::int64_t tokens, std::int64_t in, std::int64_t out,
                Sum& forward, Sum& backward) {
  const Tensor x = bench::random_tensor({tokens, in}, DType::bf16, 1);
  const Tensor w = bench::random_tensor({out, in}, DType::bf16, 2, 0.02f);
  const Tensor dy = bench::random_tensor({tokens, out}, DType::bf16, 3);
  const Tensor y(dy.shape(), DType::bf16, bench::place());
  const Tensor dx(x.shape(), DType::bf16, bench::place());
  const Tensor dw = Tensor::zeros(w.shape(), DType::f32, bench::place());
  const double flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(in * out);
  const auto matrix = [](const Tensor& t, bool transposed) {
    return ops::Matrix{t.raw(), t.dtype(), t.size(1), transposed};
  };
  time_product(name + " forward", flops, forward, [&] {
    ops::gemm(bench::place(), tokens, out, in, matrix(x, false), matrix(w, true), y.raw(),
              DType::bf16, out, false);
  });
  time_product(name + " dgrad", flops, backward, [&] {
    ops::gemm(bench::place(), tokens, in, out, matrix(dy, false), matrix(w, false), dx.raw(),
              DType::bf16, in, false);
  });
  time_product(name + " wgrad", flops, backward, [&] {
    ops::gemm(bench::place(), out, in, tokens, matrix(dy, true), matrix(x, false), dw.raw(),
              DType::f32, in, true);
  });
}

void print_average(const std::string& what, const Sum& sum) {
  const bench::Name name{"gemm", what};
  if (bench::rehearsal()) return bench::print_error(name, bench::kRehearsed);
  if (sum.seconds > 0) bench::print(name, 1e-12 * sum.flops / sum.seconds, "TFLOP/s");
}

void time_model(const Model& m) {
  Sum forward, backward;
  const std::string of = m.tokens == 8192 ? "" : std::string(m.name) + " ";
  for (const auto& [in, out] : {std::pair{m.width, 3 * m.width},
                                {m.width, m.width},
                                {m.width, m.hidden},
                                {m.hidden, m.width}})
    time_layer(of + std::to_string(in) + " -> " + std::to_string(out), m.tokens, in, out, forward,
               backward);
  print_average(of + "average forward", forward);
  print_average(of + "average backward", backward);
  print_average(of + "average",
                {forward.seconds + backward.seconds, forward.flops + backward.flops});
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run([&] {
    std::vector<Model> models;
    for (int i = 1; i < argc; ++i) {
      if (std::string_view(argv[i]) != "--cache") {
        models.push_back(find_model(argv[i]));
      } else {
        if (++i == argc) fail_usage("--cache needs a file");
        ops::set_gemm_cache(argv[i]);
      }
    }
    if (models.empty()) models = {find_model("7b")};
    for (const Model& model : models)
      time_model(model);
  });
}
