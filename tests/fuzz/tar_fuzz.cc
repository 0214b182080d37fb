// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "io/file.h"
#include "shard/image_header.h"
#include "shard/reader.h"
#include "shard/writer.h"
#include "support/temporary_folder.h"

namespace {

/// A folder for the readers that need files; the fuzzer's process has one.
const std::string& folder() {
  static const vfm::TemporaryFolder one;
  return one.path;
}

void put(const std::string& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!bytes.empty()) std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
}

void read_all(const vfm::shard::IndexedReader& reader) {
  vfm::shard::ReadBuffer buffer;
  for (std::int64_t i = 0; i < reader.samples(); ++i) {
    try {
      reader.view(i, buffer);
    } catch (const vfm::Error&) {
    }
  }
}

template <class Use>
void try_to(const Use& use) {
  try {
    use();
  } catch (const vfm::Error&) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_to([&] {
    vfm::shard::StreamReader reader(bytes, "input");
    for (vfm::shard::Sample sample; reader.next(sample);) {
    }
  });
  const std::string tar = folder() + "/in.tar";
  put(tar, bytes);
  try_to([&] { read_all({tar, vfm::shard::TarOffsets::scan(tar, tar)}); });
  // The same bytes as tar and, from the last 32 on, as its index.
  put(tar + ".idx", bytes.substr(size - std::min<std::size_t>(size, 32)));
  try_to([&] { read_all(vfm::shard::IndexedReader(tar)); });
  vfm::shard::read_image_header(bytes);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string path = folder() + "/in.tar";
  {
    vfm::shard::Writer writer(path, {.energon_index = true, .dali_index = false});
    writer.add(vfm::shard::Sample{"k1", {{"mp4", "video"}, {"json", "{}"}}});
    writer.add(vfm::shard::Sample{"k2", {{"mp4", ""}, {"json", "[1]"}}});
    writer.finish();
  }
  const std::string tar = vfm::io::read_file(path), index = vfm::io::read_file(path + ".idx");
  // A PAX header that gives the next member another name.
  std::string pax = tar;
  pax[156] = 'x';
  pax.replace(512, 15, "15 path=d/e.txt");
  return {tar, tar + index, pax, "\x89PNG\r\n\x1a\n", "\xff\xd8\xff\xe0"};
}
