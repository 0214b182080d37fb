// SPDX-License-Identifier: Apache-2.0
#include "shard/file_list.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "io/file.h"
#include "shard/sample.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

constexpr std::size_t kBlock = 512;

/// A ustar header as vfm-shard(5) describes it.
std::string header_of(const std::string& name, std::size_t bytes) {
  std::string header(kBlock, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, vfm::format("{:011o}", bytes));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  put(329, "0000000");
  put(337, "0000000");
  unsigned sum = 0;
  for (const char c : header)
    sum += static_cast<unsigned char>(c);
  put(148, vfm::format("{:06o}", sum) + std::string(1, '\0'));
  return header;
}

}  // namespace

bool is_file_list(std::string_view path) {
  return path.ends_with(".files");
}

FileListTar::FileListTar(const std::string& path) : folder_(io::dir_name(path)) {
  const Json list = parse_json(io::read_file(path), "'" + path + "'");
  const auto samples = list.is_object() ? list.find("samples") : list.end();
  if (samples == list.end() || !samples->is_array())
    fail("'{}' is no list of files: it has no array 'samples'", path);
  for (const Json& sample : *samples) {
    const std::string where = "a sample of '" + path + "'";
    const std::string key = need_string(sample, "key", where);
    const auto files = sample.find("files");
    if (!valid_key(key) || files == sample.end() || !files->is_array())
      fail("'{}' is no list of files: sample '{}' is malformed", path, key);
    for (const Json& file : *files) {
      const std::string extension = need_string(file, "extension", where);
      const std::int64_t bytes = need_integer(file, "bytes", where);
      const std::string name = key + "." + extension;
      if (!valid_extension(extension) || name.size() >= kMaxName || bytes < 0 ||
          static_cast<std::uint64_t>(bytes) >= kMaxMember)
        fail("'{}' is no list of files: '{}' is malformed", path, name);
      entries_.push_back({name, need_string(file, "xxh3", where), static_cast<std::size_t>(bytes)});
    }
  }
}

void FileListTar::load(const Entry& entry) {
  const std::string path = io::join_path(folder_, entry.name);
  const std::size_t size = io::File::open_regular(path).size();
  if (size != entry.bytes)
    fail("'{}' is not as it was written: it has {} bytes, its list says {}", path, size,
         entry.bytes);
  const std::string data = io::read_file(path);
  if (hash_hex(data) != entry.hash)
    fail("'{}' is not as it was written: its xxh3 is not {}", path, entry.hash);
  block_ = header_of(entry.name, data.size()) + data;
  block_.resize((block_.size() + kBlock - 1) / kBlock * kBlock);
}

std::size_t FileListTar::read(char* out, std::size_t size) {
  if (at_ == block_.size()) {
    at_ = 0;
    if (next_ < entries_.size())
      load(entries_[next_]);
    else
      block_.assign(next_ == entries_.size() ? 2 * kBlock : 0, '\0');
    ++next_;
  }
  const std::size_t part = std::min(size, block_.size() - at_);
  std::memcpy(out, block_.data() + at_, part);
  at_ += part;
  return part;
}

}  // namespace vfm::shard
