// The time of encoding texts by T5, from a folder; t5.sh runs it beside transformers.
//
//   t5 DIR f32|bf16 ROUNDS LENGTH...    tokens of each text of the batch
//
// Prints one line: dtype, lengths, the first call's milliseconds (with loading), best and median
// of the others, peak memory in MiB, tokens/s.
// SPDX-License-Identifier: Apache-2.0
#include "models/t5/t5.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/folder/hf_folder.h"

using namespace vfm;

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  try {
    const auto start = std::chrono::steady_clock::now();
    const auto passed = [](auto since) {
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since)
          .count();
    };
    const std::string dtype = argv[2];
    const models::HfComponent component(argv[1]);
    const models::T5 model(
        models::T5Config::from_json(component.config(), component.type(), argv[1]),
        component.weights(), dtype == "bf16" ? DType::bf16 : DType::f32, Device::cpu);
    std::vector<std::int64_t> lengths;
    for (int i = 4; i < argc; ++i)
      lengths.push_back(std::atoll(argv[i]));
    std::vector<std::int32_t> ids;
    for (const std::int64_t length : lengths)
      for (std::int64_t i = 0; i < length; ++i)
        ids.push_back(static_cast<std::int32_t>(3 + (i * 7919) % (model.config().vocabulary - 3)));
    double first = 0;
    std::vector<double> times;
    for (int round = 0; round <= std::atoi(argv[3]); ++round) {
      const auto begin = std::chrono::steady_clock::now();
      model.encode(ids, lengths);
      round == 0 ? first = passed(start) : (times.push_back(passed(begin)), 0);
    }
    std::sort(times.begin(), times.end());
    const double median = times.empty() ? first : times[times.size() / 2];
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf(
        "vfm %s tokens %zu first %.0f ms best %.1f ms median %.1f ms peak %ld MiB tokens/s %.0f\n",
        dtype.c_str(), ids.size(), first, times.empty() ? first : times.front(), median,
        usage.ru_maxrss / 1024, static_cast<double>(ids.size()) / median * 1e3);
  } catch (const Error& error) {
    std::fprintf(stderr, "t5: %s\n", error.what());
    return 1;
  }
}
