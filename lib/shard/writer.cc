// SPDX-License-Identifier: Apache-2.0
#include "shard/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <tar.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/philox.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/zstd_frames.h"
#include "io/zstd_reader.h"

namespace vfm::shard {
namespace {

static_assert(std::endian::native == std::endian::little, "index files are little-endian");

// Small members are collected here. A member of this size goes to the file directly.
constexpr std::size_t kBuffer = std::size_t{1} << 20;

/// The header of a member ("ustar Interchange Format" of POSIX).
struct Header {
  char name[kMaxName];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char chksum[8];
  char typeflag;
  char linkname[100];
  char magic[TMAGLEN];
  char version[TVERSLEN];
  char uname[32];
  char gname[32];
  char devmajor[8];
  char devminor[8];
  char prefix[155];
  char rest[12];
};
static_assert(sizeof(Header) == kTarBlock);

void set_octal(char* field, std::size_t width, std::uint64_t value) {
  field[width - 1] = '\0';
  for (std::size_t i = width - 1; i-- > 0; value >>= 3)
    field[i] = static_cast<char>('0' + value % 8);
}

std::uint64_t padded(std::uint64_t size) {
  return (size + kTarBlock - 1) / kTarBlock * kTarBlock;
}

}  // namespace

SampleView view_of(const Sample& sample) {
  SampleView view;
  view.key = sample.key;
  for (const Member& member : sample.members)
    view.members.push_back({member.extension, member.data});
  return view;
}

void check_sample(const SampleView& sample) {
  if (!valid_key(sample.key))
    fail("'{}' is not a key for a shard: keys are 1 to 80 ASCII letters, digits, '_' and '-'",
         sample.key);
  if (sample.members.empty()) fail("sample '{}' has no members", sample.key);
  for (std::size_t i = 0; i < sample.members.size(); ++i) {
    const MemberView& member = sample.members[i];
    if (!valid_extension(member.extension))
      fail(
          "'{}' is not an extension for a member of sample '{}': lower-case ASCII letters, digits, "
          "'_', '-' and dots between them",
          member.extension, sample.key);
    for (std::size_t k = 0; k < i; ++k)
      if (sample.members[k].extension == member.extension)
        fail("sample '{}' has two members '{}'", sample.key, member.extension);
    if (sample.key.size() + 1 + member.extension.size() > kMaxName)
      fail("name '{}.{}' is longer than {} bytes", sample.key, member.extension, kMaxName);
    if (member.data.size() >= kMaxMember)
      fail("member '{}.{}' is {} bytes; a shard holds members below 2 GiB", sample.key,
           member.extension, member.data.size());
  }
}

std::uint64_t sample_bytes(const SampleView& sample) {
  std::uint64_t bytes = 0;
  for (const MemberView& member : sample.members)
    bytes += kTarBlock + padded(member.data.size());
  return bytes;
}

std::string plain_tar_path(const std::string& tar) {
  return io::is_zstd_name(tar) ? tar.substr(0, tar.size() - io::kZstdEnd.size()) : tar;
}

std::string energon_index_path(const std::string& tar) {
  return plain_tar_path(tar) + ".idx";
}

std::string dali_index_path(const std::string& tar) {
  return io::join_path(io::dir_name(tar), io::stem(tar) + ".idx");
}

struct Writer::State {
  State(const std::string& path, const WriterOptions& opts) : options(opts), file(path) {
    buffer.reserve(kBuffer + kTarBlock);
    prepare_header();
    if (io::is_zstd_name(path)) frames.emplace([this](std::string_view data) { store(data); });
  }

  void check(const SampleView& sample) const;
  bool has_key(std::string_view key) const;
  void prepare_header();
  void write_header(std::string_view name, std::uint64_t size);
  void write_member(std::string_view name, std::string_view data);
  void flush();
  void write(std::string_view data);
  void store(std::string_view data);
  void put(std::string_view data);

  WriterOptions options;
  io::AtomicFile file;
  std::optional<io::ZstdFrameWriter> frames;  // Of a compressed tar.
  Header header{};
  std::string buffer;
  Hasher hasher;
  std::vector<std::string> extensions;     // The extensions of every sample in this shard.
  std::unordered_set<std::uint64_t> keys;  // Hashes of keys.
  std::vector<std::uint64_t> offsets;      // Offsets of the first headers.
  std::string dali;                        // Lines of the DALI index without the first line.
  std::uint64_t bytes = 0;
  std::uint64_t started = 0;  // Bytes up to which writing was started.
  unsigned header_sum = 0;
};

void Writer::State::check(const SampleView& sample) const {
  check_sample(sample);
  if (has_key(sample.key)) fail("key '{}' comes twice in '{}'", sample.key, file.path());
  if (extensions.empty()) return;
  if (!std::equal(extensions.begin(), extensions.end(), sample.members.begin(),
                  sample.members.end(),
                  [](const std::string& a, const MemberView& b) { return a == b.extension; }))
    fail(
        "sample '{}' has other members than the first one of '{}'; all samples of a shard have "
        "the same, in the same order",
        sample.key, file.path());
}

bool Writer::State::has_key(std::string_view key) const {
  if (!keys.contains(random_key(key))) return false;
  // Hashes can collide, so the key is looked up in the index.
  return dali.find(fmt::format(" {}.{}", key, extensions.front())) != std::string::npos;
}

/// Fills the fields that all members share, and adds up the checksum.
void Writer::State::prepare_header() {
  set_octal(header.mode, sizeof header.mode, 0644);
  set_octal(header.uid, sizeof header.uid, 0);
  set_octal(header.gid, sizeof header.gid, 0);
  set_octal(header.size, sizeof header.size, 0);
  set_octal(header.mtime, sizeof header.mtime, 0);
  set_octal(header.devmajor, sizeof header.devmajor, 0);
  set_octal(header.devminor, sizeof header.devminor, 0);
  header.typeflag = REGTYPE;
  std::memcpy(header.magic, TMAGIC, TMAGLEN);
  std::memcpy(header.version, TVERSION, TVERSLEN);
  std::memset(header.chksum, ' ', sizeof header.chksum);
  const auto* first = reinterpret_cast<const unsigned char*>(&header);
  header_sum = std::accumulate(first, first + sizeof header, 0U);
}

/// Only name, size and checksum differ between members. The checksum is corrected, because adding
/// up the whole block would be the main cost of small members.
void Writer::State::write_header(std::string_view name, std::uint64_t size) {
  std::memset(header.name, 0, sizeof header.name);
  std::memcpy(header.name, name.data(), name.size());
  set_octal(header.size, sizeof header.size, size);
  unsigned sum = header_sum;
  for (const char c : name)
    sum += static_cast<unsigned char>(c);
  for (const char digit : std::string_view(header.size, sizeof header.size - 1))
    sum += static_cast<unsigned>(digit - '0');
  set_octal(header.chksum, sizeof header.chksum - 1, sum);
  header.chksum[sizeof header.chksum - 1] = ' ';
  buffer.append(reinterpret_cast<const char*>(&header), kTarBlock);
}

void Writer::State::flush() {
  write(buffer);
  buffer.clear();
}

void Writer::State::write(std::string_view data) {
  frames ? frames->add(data) : store(data);
}

void Writer::State::store(std::string_view data) {
  hasher.update(data);
  file.write(data);
  // Starts writing to the disk now, so that the sync at the end waits less. Errors do not matter
  // here.
  constexpr std::uint64_t kAhead = std::uint64_t{8} << 20;
  if (file.sends()) return;
  if (const std::uint64_t end = file.bytes_written(); end - started >= kAhead) {
    ::sync_file_range(file.fd(), static_cast<off64_t>(started), static_cast<off64_t>(end - started),
                      SYNC_FILE_RANGE_WRITE);
    started = end;
  }
}

void Writer::State::put(std::string_view data) {
  if (buffer.size() + data.size() > kBuffer) flush();
  if (data.size() >= kBuffer) {
    // Hash and write in turns, so that the data is still in the cache.
    for (std::size_t at = 0; at < data.size(); at += kBuffer)
      write(data.substr(at, kBuffer));
  } else {
    buffer.append(data);
  }
}

void Writer::State::write_member(std::string_view name, std::string_view data) {
  if (buffer.size() + kTarBlock > kBuffer) flush();
  write_header(name, data.size());
  put(data);
  buffer.append(padded(data.size()) - data.size(), '\0');
  bytes += kTarBlock + padded(data.size());
}

Writer::Writer(const std::string& path, const WriterOptions& options) {
  if (!plain_tar_path(path).ends_with(".tar"))
    fail("'{}' is not a name for a shard: it must end in '.tar' or '.tar.zst'", path);
  state_ = std::make_unique<State>(path, options);
}
Writer::~Writer() {
  abandon();
}
Writer::Writer(Writer&&) noexcept = default;

void Writer::add(const Sample& sample) {
  add(view_of(sample));
}

void Writer::add(const SampleView& sample) {
  State& s = *state_;
  s.check(sample);
  if (s.extensions.empty())
    for (const MemberView& member : sample.members)
      s.extensions.emplace_back(member.extension);
  s.keys.insert(random_key(sample.key));
  s.offsets.push_back(s.bytes);
  std::string name;
  for (const MemberView& member : sample.members) {
    name.assign(sample.key).append(".").append(member.extension);
    if (&member != &sample.members.front()) s.dali += ' ';
    s.dali.append(member.extension)
        .append(" ")
        .append(fmt::format_int(s.bytes + kTarBlock).c_str());
    s.dali.append(" ").append(fmt::format_int(member.data.size()).c_str());
    s.dali.append(" ").append(name);
    s.write_member(name, member.data);
  }
  s.dali += '\n';
  if (s.frames) {
    s.flush();
    s.frames->end_part();
  }
}

const std::string& Writer::path() const {
  return state_->file.path();
}
std::int64_t Writer::samples() const {
  return static_cast<std::int64_t>(state_->offsets.size());
}
std::uint64_t Writer::bytes() const {
  return state_->bytes;
}

Json Writer::finish() {
  State& s = *state_;
  const std::string path = s.file.path();
  if (s.offsets.empty()) fail("shard '{}' would be empty", path);
  s.buffer.append(2 * kTarBlock, '\0');
  s.flush();
  if (s.frames) s.frames->finish();
  // A tar with the same bytes stays, because a program on another host may have finished it.
  if (s.file.differs()) io::remove_file(path);
  if (s.options.energon_index) {
    std::vector<std::uint64_t> index = s.offsets;
    index.push_back(s.bytes);
    io::write_file(energon_index_path(path), {reinterpret_cast<const char*>(index.data()),
                                              index.size() * sizeof(std::uint64_t)});
  }
  if (s.options.dali_index)
    io::write_file(dali_index_path(path), fmt::format("v1.2 {}\n", s.offsets.size()) + s.dali);
  s.file.commit();
  Json record = {{"kind", "shard"},
                 {"path", path},
                 {"samples", s.offsets.size()},
                 {"bytes", s.file.bytes_written()},
                 {"xxh3", s.hasher.hex128()}};
  if (s.frames) record["tar_bytes"] = s.bytes + 2 * kTarBlock;
  return record;
}

void Writer::abandon() noexcept {
  if (state_) state_->file.abandon();
}

}  // namespace vfm::shard
