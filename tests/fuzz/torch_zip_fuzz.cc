// PyTorch's checkpoints: whole files, and the pickle in them alone.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "fuzz.h"
#include "io/pickle.h"
#include "io/torch_zip.h"
#include "read_tensors.h"

namespace {

using namespace std::string_literals;

// A state dict of one tensor of 6 floats, transposed, and a number.
const std::string kPickle =
    "\x80\x02"
    "ccollections\nOrderedDict\n)Rq\x00(U\x01xctorch._utils\n_rebuild_tensor_v2\n((U\x07storage"
    "ctorch\nFloatStorage\nU\x01"
    "0U\x03"
    "cpuK\x06tQK\x00K\x03K\x02\x86K\x01K\x03\x86\x89h\x00tRq\x01X\x01\x00\x00\x00nJ\x05\x00\x00\x00"
    "u}"
    "U\x09_metadatah\x00sb."s;

std::string little(std::size_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}

std::string file_of(const std::string& pickle, const std::string& data) {
  std::string file, directory;
  for (const auto& [name, bytes] :
       {std::pair("m/data.pkl"s, pickle), {"m/byteorder"s, "little"s}, {"m/data/0"s, data}}) {
    const std::string sizes = little(0, 4) + little(bytes.size(), 4) + little(bytes.size(), 4) +
                              little(name.size(), 2) + little(0, 2);
    directory += "PK\x01\x02" + std::string(12, '\0') + sizes + std::string(10, '\0') +
                 little(file.size(), 4) + name;
    file += "PK\x03\x04" + std::string(10, '\0') + sizes + name + bytes;
  }
  return file + directory + "PK\x05\x06" + little(0, 4) + little(3, 2) + little(3, 2) +
         little(directory.size(), 4) + little(file.size(), 4) + little(0, 2);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  read_tensors(data, size, [](auto bytes) { return io::parse_torch_zip(bytes, "input"); });
  try {
    io::parse_pickle(std::as_bytes(std::span(data, size)), "input");
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {file_of(kPickle, std::string(24, 'x')), kPickle};
}
