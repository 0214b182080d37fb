// GGUF files.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "io/gguf.h"
#include "read_tensors.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  vfm::read_tensors(data, size, [](auto bytes) { return vfm::io::parse_gguf(bytes, "input"); });
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  const std::string head = "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"s;
  const std::string text = "\1\0\0\0\0\0\0\0s\10\0\0\0\1\0\0\0\0\0\0\0t"s;
  const std::string list = "\1\0\0\0\0\0\0\0l\11\0\0\0\4\0\0\0\1\0\0\0\0\0\0\0abcd"s;
  const std::string tensor = "\1\0\0\0\0\0\0\0x\1\0\0\0\40\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0"s;
  std::string file = head + text + list + tensor;
  file.resize((file.size() + 31) / 32 * 32 + 34, 'x');
  return {file, "GGUF\2\0\0\0"s + std::string(16, '\0')};
}
