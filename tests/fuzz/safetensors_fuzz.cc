// safetensors files.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "io/safetensors.h"
#include "read_tensors.h"

namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() & 0xff);
  file[1] = static_cast<char>(header.size() >> 8);
  return file + header + data;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  vfm::read_tensors(data, size,
                    [](auto bytes) { return vfm::io::parse_safetensors(bytes, "input"); });
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {file_of(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],)"
                  R"("data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}})",
                  std::string(10, 'x')),
          file_of(R"({"e":{"dtype":"I64","shape":[0,3],"data_offsets":[0,0]}}   )", ""),
          file_of("{}", "")};
}
