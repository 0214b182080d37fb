// SPDX-License-Identifier: Apache-2.0
#include "shard/tar_end.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "shard/tar_file.h"
#include "shard/writer.h"

namespace vfm::shard {

template <class Tar>
std::string behind_end(const Tar& tar, std::uint64_t end, const std::string& name) {
  constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 18;
  constexpr std::uint64_t kMostPadding = std::uint64_t{16} << 20;  // Programs pad by kilobytes.
  const std::uint64_t last = std::min(tar.size(), end + kMostPadding);
  std::vector<char> bytes;
  for (std::uint64_t at = end; at < last; at += bytes.size()) {
    bytes.resize(std::min(kAtOnce, last - at));
    tar.pread_exact(bytes.data(), bytes.size(), at);
    if (std::any_of(bytes.begin(), bytes.end(), [](char byte) { return byte != 0; }))
      return fmt::format(
          "'{}' goes on behind its end, and what follows is not read: tars are joined by tar -A, "
          "not by cat",
          name);
  }
  return {};
}
template std::string behind_end(const io::File&, std::uint64_t, const std::string&);
template std::string behind_end(const TarFile&, std::uint64_t, const std::string&);

TarEnding ending_by_index(const io::File& tar, std::uint64_t end) {
  constexpr std::uint64_t kMostIndex = std::uint64_t{1} << 30;
  const std::string path = energon_index_path(tar.path());
  if (end < tar.size() || !io::file_exists(path)) return TarEnding::whole;
  std::string bytes;
  try {
    bytes = io::read_file(path, kMostIndex);
  } catch (const Error&) {
    return TarEnding::whole;
  }
  std::vector<std::uint64_t> numbers(bytes.size() / sizeof(std::uint64_t));
  if (numbers.size() < 2) return TarEnding::whole;
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(std::uint64_t));
  if (numbers.back() <= end) return TarEnding::whole;
  return std::find(numbers.begin(), numbers.end(), end) != numbers.end() ? TarEnding::behind_sample
                                                                         : TarEnding::within_sample;
}

}  // namespace vfm::shard
