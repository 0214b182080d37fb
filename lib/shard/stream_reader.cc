// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "shard/reader.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;

struct FreeArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;

/// libarchive does not compare the check sums of gzip, so a gzip file is read once more by zlib,
/// which does. Throws Error if they differ.
void check_gzip(const std::string& path) {
  std::array<unsigned char, 2> magic{};
  {
    io::File file = io::File::open_read(path);
    if (file.size() < magic.size()) return;
    file.pread_exact(magic.data(), magic.size(), 0);
  }
  if (magic[0] != 0x1f || magic[1] != 0x8b) return;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rbe"), gzclose);
  if (!file) fail("cannot read '{}': out of memory", path);
  gzbuffer(file.get(), kChunk);
  std::vector<char> buffer(kChunk);
  for (;;) {
    check_stop();
    const int got = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    int status = Z_OK;
    const char* why = gzerror(file.get(), &status);
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END))
      fail("'{}' is damaged: gzip says '{}'", path, why);
    if (got == 0) return;
  }
}

/// Reads what these five compress. Not filter_all: that one starts programs for the formats it
/// cannot read itself.
Archive new_archive(const std::string& name) {
  Archive made(archive_read_new());
  if (!made) fail("cannot read '{}': out of memory", name);
  for (auto* support : {archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
                        archive_read_support_filter_xz, archive_read_support_filter_zstd,
                        archive_read_support_filter_lz4})
    support(made.get());
  return made;
}

}  // namespace

struct StreamReader::State {
  explicit State(std::string file_name) : name(std::move(file_name)), tar(new_archive(name)) {
    archive_read_support_format_tar(tar.get());
  }

  [[noreturn]] void damaged() {
    const char* why = archive_error_string(tar.get());
    fail("'{}' is not a readable tar: {}", name, why ? why : "unknown error");
  }

  void open_file() {
    file = io::File::open_read(name);
    if (archive_read_open_fd(tar.get(), file.fd(), kChunk) != ARCHIVE_OK) damaged();
  }
  bool next_entry();
  std::string read_data();

  std::string name;
  io::File file;
  Archive tar;
  // The member after the last one of the sample that was handed out.
  std::string key, extension;
  bool pending = false, ended = false;
};

/// Goes to the next member that belongs to a sample; false at the end of the archive.
bool StreamReader::State::next_entry() {
  for (;;) {
    check_stop();
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(tar.get(), &entry);
    if (status == ARCHIVE_EOF) return false;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) damaged();
    const char* path = archive_entry_pathname(entry);
    if (!path) path = archive_entry_pathname_utf8(entry);
    const bool regular =
        archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry);
    if (regular && path && split_member_name(path, key, extension)) return true;
  }
}

/// Grows with what is really there: a size in a hostile header allocates nothing.
std::string StreamReader::State::read_data() {
  std::string data;
  for (;;) {
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int status = archive_read_data_block(tar.get(), &block, &size, &offset);
    if (status == ARCHIVE_EOF) return data;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) damaged();
    // A hole of a sparse file could stand for any number of zeros.
    if (static_cast<std::uint64_t>(offset) != data.size())
      fail("member '{}.{}' of '{}' is a sparse file", key, extension, name);
    if (data.size() + size >= kMaxMember)
      fail("member '{}.{}' of '{}' is 2 GiB or more", key, extension, name);
    data.append(static_cast<const char*>(block), size);
  }
}

StreamReader::StreamReader(const std::string& path) : state_(std::make_unique<State>(path)) {
  check_gzip(path);
  state_->open_file();
}

StreamReader::StreamReader(std::string_view bytes, const std::string& name)
    : state_(std::make_unique<State>(name)) {
  if (archive_read_open_memory(state_->tar.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    state_->damaged();
}

StreamReader::~StreamReader() = default;
StreamReader::StreamReader(StreamReader&&) noexcept = default;

bool StreamReader::next(Sample& sample) {
  State& s = *state_;
  sample.members.clear();
  if (s.ended) return false;
  if (!std::exchange(s.pending, false) && !s.next_entry()) {
    s.ended = true;
    return false;
  }
  sample.key = s.key;
  do {
    sample.members.push_back({s.extension, s.read_data()});
    if (!s.next_entry()) {
      s.ended = true;
      return true;
    }
  } while (s.key == sample.key && !sample.find(s.extension));
  s.pending = true;
  return true;
}

bool unpack(const std::string& path, const std::string& out) {
  check_gzip(path);
  const io::File file = io::File::open_read(path);
  const Archive in = new_archive(path);
  archive_read_support_format_raw(in.get());
  archive_read_support_format_empty(in.get());
  const auto damaged = [&] {
    fail("'{}' cannot be unpacked: {}", path, archive_error_string(in.get()));
  };
  if (archive_read_open_fd(in.get(), file.fd(), kChunk) != ARCHIVE_OK) damaged();
  archive_entry* entry = nullptr;
  const int found = archive_read_next_header(in.get(), &entry);
  if (found != ARCHIVE_EOF && found != ARCHIVE_OK && found != ARCHIVE_WARN) damaged();
  if (archive_filter_code(in.get(), 0) == ARCHIVE_FILTER_NONE) return false;
  io::AtomicFile target(out);
  std::vector<char> buffer(std::size_t{1} << 20);
  while (found != ARCHIVE_EOF) {
    check_stop();
    const la_ssize_t got = archive_read_data(in.get(), buffer.data(), buffer.size());
    if (got < 0) damaged();
    if (got == 0) break;
    target.write(buffer.data(), static_cast<std::size_t>(got));
  }
  target.commit();
  return true;
}

std::vector<std::uint64_t> scan_offsets(const std::string& path) {
  StreamReader::State s(path);
  s.open_file();
  std::vector<std::uint64_t> offsets;
  std::string key;
  std::vector<std::string> extensions;
  while (s.next_entry()) {
    if (archive_filter_code(s.tar.get(), 0) != ARCHIVE_FILTER_NONE)
      fail("'{}' is compressed, and its samples can only be read in order; unpack it first ({})",
           path, archive_filter_name(s.tar.get(), 0));
    const bool repeated =
        std::find(extensions.begin(), extensions.end(), s.extension) != extensions.end();
    if (offsets.empty() || s.key != key || repeated) {
      offsets.push_back(static_cast<std::uint64_t>(archive_read_header_position(s.tar.get())));
      key = s.key;
      extensions.clear();
    }
    extensions.push_back(s.extension);
  }
  if (offsets.empty()) fail("'{}' has no samples", path);
  offsets.front() = 0;  // what stands before the first sample belongs to no other
  offsets.push_back(static_cast<std::uint64_t>(archive_read_header_position(s.tar.get())));
  return offsets;
}

}  // namespace vfm::shard
