// SPDX-License-Identifier: Apache-2.0
#include "tensor/program_memory.h"

#include <cmath>
#include <fstream>
#include <string>
#include <string_view>

namespace vfm {

namespace {

/// KiB, or 0.
double status_of(std::string_view field) {
  std::ifstream status("/proc/self/status");
  double kibi = 0;
  for (std::string word; status >> word;)
    if (word == field && status >> kibi) break;
  return kibi;
}

}  // namespace

double anonymous_memory() {
  return 1024 * status_of("RssAnon:");
}

double program_memory() {
  // Not getrusage(): its maximum may be that of the program that started this one.
  const double kibi = status_of("VmHWM:");
  constexpr double kMebi = 1 << 20, kCodeOfComputing = 6;
  return kibi > 0 ? kMebi * (kCodeOfComputing + std::ceil(kibi / 1024)) : 0;
}

}  // namespace vfm
