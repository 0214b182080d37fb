// Makes a folder of latents of many samples, whose shards are one tar. Usage: many_samples DIR COUNT
// SPDX-License-Identifier: Apache-2.0
#include "support/many_samples.h"

#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  vfm::write_many(argv[1], {.samples = std::strtoull(argv[2], nullptr, 10)}, true);
  return 0;
}
