// Makes a folder of latents of many samples, whose shards are one tar. Usage: many_samples DIR
// COUNT [IN_SHARD]; index.jsonl has lines up to a million. Also of use to tests/cli/train/.
// SPDX-License-Identifier: Apache-2.0
#include "support/many_samples.h"

#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  vfm::ManySamples many{.samples = std::strtoull(argv[2], nullptr, 10), .shards = true};
  many.lines = many.samples <= 1'000'000;
  if (argc > 3) many.in_shard = std::strtoull(argv[3], nullptr, 10);
  vfm::write_many(argv[1], many);
  return 0;
}
