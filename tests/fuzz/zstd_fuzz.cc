// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "io/line_reader.h"
#include "io/zstd_frames.h"
#include "support/temporary_folder.h"

namespace {

const std::string& packed_file() {
  static const vfm::TemporaryFolder folder;
  static const std::string path = folder / "in.zst";
  return path;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::FILE* file = std::fopen(packed_file().c_str(), "wb");
  if (size > 0) std::fwrite(data, 1, size, file);
  std::fclose(file);
  try {
    vfm::io::LineReader lines(vfm::io::File::open_read(packed_file()), "input");
    while (lines.next()) {
    }
  } catch (const vfm::Error&) {
  }
  try {
    const vfm::io::ZstdFrames frames(vfm::io::File::open_read(packed_file()));
    std::string out;
    for (std::uint64_t at = 0; at < std::min<std::uint64_t>(frames.size(), 1 << 22); at += 1 << 17)
      for (const std::uint64_t some : {std::uint64_t{512}, std::uint64_t{200000}}) {
        out.resize(std::min(some, frames.size() - at));
        try {
          frames.pread_exact(out.data(), out.size(), at);
        } catch (const vfm::Error&) {
        }
      }
  } catch (const vfm::Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string packed;
  vfm::io::ZstdFrameWriter writer([&](std::string_view bytes) { packed += bytes; });
  for (const char letter : {'a', 'b'}) {
    writer.add("line\n" + std::string(300000, letter) + "\n");
    writer.end_part();
  }
  writer.finish();
  return {packed, packed + packed, packed.substr(0, packed.size() - 33)};
}
