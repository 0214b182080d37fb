// SPDX-License-Identifier: Apache-2.0
#include "tensor/program_memory.h"

#include <cmath>
#include <fstream>
#include <string>

namespace vfm {

double program_memory() {
  // Not getrusage(): its maximum may be that of the program that started this one.
  std::ifstream status("/proc/self/status");
  double kibi = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> kibi) break;
  constexpr double kMebi = 1 << 20, kCodeOfComputing = 6;
  return kibi > 0 ? kMebi * (kCodeOfComputing + std::ceil(kibi / 1024)) : 0;
}

}  // namespace vfm
