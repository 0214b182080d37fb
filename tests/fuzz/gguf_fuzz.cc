// GGUF files.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "io/gguf.h"
#include "read_tensors.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  vfm::read_tensors(data, size, [](auto bytes) {
    auto contents = vfm::io::parse_gguf(bytes, "input");
    for (const auto& [name, list] : contents.lists)
      if (list.type == vfm::io::GgufList::kText) list.texts("input");
    return contents;
  });
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
  std::string shaped = head;
  shaped[16] = '\1';  // settings
  shaped += "\27\0\0\0\0\0\0\0comfy.gguf.orig_shape.x\11\0\0\0\5\0\0\0"s;
  shaped += "\2\0\0\0\0\0\0\0\4\0\0\0\10\0\0\0"s + tensor;
  shaped.resize((shaped.size() + 31) / 32 * 32 + 34, 'x');
  return {file, shaped, "GGUF\2\0\0\0"s + std::string(16, '\0')};
}
