// safetensors files.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "fuzz.h"
#include "io/safetensors.h"

namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() & 0xff);
  file[1] = static_cast<char>(header.size() >> 8);
  return file + header + data;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    std::size_t sum = 0;
    for (const io::TensorView& tensor : io::parse_safetensors(bytes, "input").tensors)
      for (const std::byte byte : tensor.data)
        sum += std::to_integer<std::size_t>(byte);
    if (sum == 1) return 0;  // the bytes are really read
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {file_of(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],)"
                  R"("data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}})",
                  std::string(10, 'x')),
          file_of(R"({"e":{"dtype":"I64","shape":[0,3],"data_offsets":[0,0]}}   )", ""),
          file_of("{}", "")};
}
