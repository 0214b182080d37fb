// GGUF files.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "fuzz.h"
#include "io/gguf.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    std::size_t sum = 0;
    for (const io::TensorView& tensor : io::parse_gguf(bytes, "input").tensors)
      for (const std::byte byte : tensor.data)
        sum += std::to_integer<std::size_t>(byte);
    if (sum == 1) return 0;  // the bytes are really read
  } catch (const Error&) {
  }
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
