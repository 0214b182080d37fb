// SPDX-License-Identifier: Apache-2.0
#include "shard/file_list.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "shard/sample.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

/// Returns a ustar header with the fields of vfm-shard(5).
std::string header_of(const std::string& name, std::size_t bytes) {
  std::string header(kTarBlock, '\0');
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
    fail("'{}' is not a list of files: it has no array 'samples'", path);
  for (const Json& sample : *samples) {
    const std::string where = "a sample of '" + path + "'";
    const std::string key = need_string(sample, "key", where);
    const auto files = sample.find("files");
    if (!valid_key(key) || files == sample.end() || !files->is_array())
      fail("'{}' is not a list of files: sample '{}' is malformed", path, key);
    for (const Json& file : *files) {
      const std::string extension = need_string(file, "extension", where);
      const std::int64_t bytes = need_integer(file, "bytes", where);
      const std::string name = key + "." + extension;
      if (!valid_extension(extension) || name.size() >= kMaxName || bytes < 0 ||
          static_cast<std::uint64_t>(bytes) >= kMaxMember)
        fail("'{}' is not a list of files: '{}' is malformed", path, name);
      entries_.push_back({name, need_string(file, "xxh3", where), static_cast<std::size_t>(bytes)});
    }
  }
}

void FileListTar::begin_file() {
  const Entry& entry = entries_[next_++];
  file_ = io::File::open_regular(io::join_path(folder_, entry.name));
  if (const std::size_t size = file_.size(); size != entry.bytes)
    fail("'{}' is not as it was written: it has {} bytes, its list says {}", file_.path(), size,
         entry.bytes);
  block_ = header_of(entry.name, entry.bytes);
  left_ = entry.bytes;
  hasher_ = Hasher();
  if (left_ == 0) check_file();
}

void FileListTar::check_file() {
  if (const std::string& hash = entries_[next_ - 1].hash; hasher_.hex128() != hash)
    fail("'{}' is not as it was written: its xxh3 is not {}", file_.path(), hash);
  file_.close();
}

std::size_t FileListTar::read(char* out, std::size_t size) {
  if (at_ == block_.size() && left_ > 0) {
    const std::size_t got = file_.read_some(out, std::min(size, left_));
    if (got == 0) fail("'{}' is not as it was written: it became shorter", file_.path());
    hasher_.update(out, got);
    left_ -= got;
    if (left_ > 0) return got;
    check_file();
    const std::size_t rest = entries_[next_ - 1].bytes % kTarBlock;
    block_.assign(rest == 0 ? 0 : kTarBlock - rest, '\0');
    at_ = 0;
    return got;
  }
  if (at_ == block_.size()) {
    at_ = 0;
    if (next_ < entries_.size()) {
      begin_file();
    } else {
      block_.assign(next_ == entries_.size() ? 2 * kTarBlock : 0, '\0');
      ++next_;
    }
  }
  const std::size_t part = std::min(size, block_.size() - at_);
  std::memcpy(out, block_.data() + at_, part);
  at_ += part;
  return part;
}

}  // namespace vfm::shard
