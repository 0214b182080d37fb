// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "fuzz.h"
#include "io/npy.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    vfm::io::npy_floats(bytes, "input");
  } catch (const vfm::Error&) {
  }
  try {
    vfm::io::npy_integers(bytes, "input");
  } catch (const vfm::Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  return {vfm::io::make_npy_half({2, 3}, six), vfm::io::make_npy_float({1, 6, 1}, six),
          vfm::io::make_npy("<f8", {0}, nullptr, 0), vfm::io::make_npy("<u2", {3}, "abcdef", 6),
          vfm::io::make_npy_float({}, std::vector<float>{1})};
}
