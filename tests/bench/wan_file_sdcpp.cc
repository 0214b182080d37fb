// The pass of wan_file.cc in stable-diffusion.cpp, of the same file and the same input, on the CPU.
// wan_sdcpp.sh builds it with that program's sources.
//
//   wan_file_sdcpp FILE on|off THREADS [RUNS [OUTPUT]]
// on, off: flash attention. Prints a line like wan_file's, and writes the same OUTPUT.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "model.h"
#include "wan.hpp"

namespace {

sd::Tensor<float> wave(const std::vector<std::int64_t>& shape, double step) {
  sd::Tensor<float> made(shape);
  auto& values = made.values();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(step * static_cast<double>(i)));
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s FILE on|off THREADS [RUNS [OUTPUT]]\n", argv[0]);
    return 2;
  }
  const std::string prefix = "model.diffusion_model", flash = argv[2];
  const int threads = std::atoi(argv[3]), runs = argc > 4 ? std::atoi(argv[4]) : 2;
  ModelLoader loader;
  if (!loader.init_from_file_and_convert_name(argv[1], prefix + ".")) return 1;
  WAN::WanRunner wan(ggml_backend_cpu_init(), false, loader.get_tensor_storage_map(), prefix,
                     VERSION_WAN2);
  wan.alloc_params_buffer();
  wan.set_flash_attention_enabled(flash == "on");
  std::map<std::string, ggml_tensor*> tensors;
  wan.get_param_tensors(tensors, prefix);
  if (!loader.load_tensors(tensors)) return 1;
  const auto latents = wave({52, 30, 5, 16}, 0.37), text = wave({4096, 512, 1}, 0.11);
  const auto time = sd::Tensor<float>::from_vector({500.f});
  std::vector<double> times;
  for (int i = 0; i <= runs; ++i) {  // the first warms up
    const auto start = std::chrono::steady_clock::now();
    const auto out = wan.compute(threads, latents, time, text);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i > 0 || runs == 0) times.push_back(took.count());
    if (argc > 5)
      std::ofstream(argv[5], std::ios::binary)
          .write(reinterpret_cast<const char*>(out.data()),
                 static_cast<std::streamsize>(out.values().size() * sizeof(float)));
  }
  std::sort(times.begin(), times.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("sdcpp flash-%s tokens 1950 best %.1f ms median %.1f ms peak %.2f GiB\n",
              flash.c_str(), 1e3 * times.front(), 1e3 * times[times.size() / 2],
              static_cast<double>(usage.ru_maxrss) / (1 << 20));
}
