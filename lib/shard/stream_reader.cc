// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/stop.h"
#include "base/units.h"
#include "io/file.h"
#include "io/file_cache.h"
#include "shard/file_list.h"
#include "shard/reader.h"
#include "shard/tar_end.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;

struct FreeArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;

std::uint64_t most_unpacked(std::uint64_t packed, const ReadLimits& limits) {
  return limits.unpacked + ReadLimits::kRatio * packed;
}

/// libarchive does not check the CRC of gzip, so zlib reads the file once more. Throws Error if the
/// CRC differs, because the damage may be anywhere. Files that break off or unpack to too much are
/// left to libarchive. Of an object, `tar` becomes a local copy.
void check_gzip(io::File& tar, const ReadLimits& limits) {
  const std::string path = tar.path();
  std::array<unsigned char, 2> magic{};
  if (tar.size() < magic.size()) return;
  tar.pread_exact(magic.data(), magic.size(), 0);
  if (magic[0] != 0x1f || magic[1] != 0x8b) return;
  std::string opened = path;
  if (tar.remote()) {
    tar = io::cached_copy(path);
    opened = fmt::format("/proc/self/fd/{}", tar.fd());  // A copy may have no name.
  }
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(opened.c_str(), "rbe"), gzclose);
  if (!file) fail("cannot read '{}': out of memory", path);
  gzbuffer(file.get(), kChunk);
  std::vector<char> buffer(kChunk);
  const std::uint64_t most = most_unpacked(tar.size(), limits);
  for (std::uint64_t all = 0; all <= most;) {
    check_stop();
    const int got = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    int status = Z_OK;
    const char* why = gzerror(file.get(), &status);
    if (status == Z_BUF_ERROR) return;
    if (status == Z_ERRNO) fail_errno(errno, "cannot read '{}'", path);
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      std::string said = why;
      if (said.starts_with(opened)) said.replace(0, opened.size(), path);
      fail("'{}' is damaged: gzip says '{}'", path, said);
    }
    if (got == 0) return;
    all += static_cast<std::uint64_t>(got);
  }
}

/// archive_read_support_filter_all() is not used: it starts programs for some formats.
Archive new_archive(const std::string& name) {
  Archive made(archive_read_new());
  if (!made) fail("cannot read '{}': out of memory", name);
  for (auto* support : {archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
                        archive_read_support_filter_xz, archive_read_support_filter_zstd,
                        archive_read_support_filter_lz4})
    support(made.get());
  return made;
}

/// What libarchive reads by callbacks: a list of files, or an object of a bucket.
struct Pulled {
  std::function<std::size_t(char* out, std::size_t size)> read;
  std::function<bool(std::uint64_t bytes)> skip;  // Returns whether it did. Empty: never.
  std::exception_ptr error = nullptr;  // of a failed read
  Cause cause = Cause::other;          // of `error`
  std::vector<char> chunk = std::vector<char>(kChunk);
};

la_ssize_t read_pulled(archive* reader, void* data, const void** chunk) {
  auto& source = *static_cast<Pulled*>(data);
  *chunk = source.chunk.data();
  try {
    return static_cast<la_ssize_t>(source.read(source.chunk.data(), source.chunk.size()));
  } catch (const Error& error) {
    source.error = std::current_exception();
    source.cause = error.cause();
    archive_set_error(reader, EIO, "%s", error.what());
  } catch (const Stopped&) {  // damaged() throws it again.
    archive_set_error(reader, EINTR, "interrupted");
  }
  return -1;
}

la_int64_t skip_pulled(archive*, void* data, la_int64_t bytes) {
  auto& source = *static_cast<Pulled*>(data);
  return source.skip && source.skip(static_cast<std::uint64_t>(bytes)) ? bytes : 0;
}

}  // namespace

struct StreamReader::State {
  State(std::string file_name, const ReadLimits& read_limits)
      : name(std::move(file_name)), limits(read_limits), tar(new_archive(name)) {
    archive_read_support_format_tar(tar.get());
  }

  [[noreturn]] void damaged() {
    check_stop();
    // The error of a server names the object and says what to do.
    if (pulled && pulled->error && !list) std::rethrow_exception(pulled->error);
    const int number = archive_errno(tar.get());
    if (!list && errno_cause(number) == Cause::disk) fail_errno(number, "cannot read '{}'", name);
    const Cause cause = list && pulled->cause == Cause::disk ? Cause::disk : Cause::format;
    const char* why = archive_error_string(tar.get());
    fail_as(cause, "'{}' is not a readable tar: {}", name, why ? why : "unknown error");
  }

  void open_file(io::File opened) {
    file = std::move(opened);
    packed = file.size();
    if (file.remote())
      pull_object();
    else if (archive_read_open_fd(tar.get(), file.fd(), kChunk) != ARCHIVE_OK)
      damaged();
  }
  void open_list() {
    list.emplace(name);
    pull([this](char* out, std::size_t size) { return list->read(out, size); });
  }
  /// Members that nobody reads are skipped, as a seek on a disk does, if that saves more than the
  /// time of a request.
  void pull_object() {
    constexpr std::uint64_t kWorthSkipping = std::uint64_t{1} << 20;
    pull(
        [this](char* out, std::size_t size) {
          const std::size_t got = file.read_some(out, size);
          pulled_bytes += got;
          return got;
        },
        [this](std::uint64_t bytes) {
          if (bytes < kWorthSkipping) return false;
          file.seek(pulled_bytes += bytes);
          return true;
        });
  }
  void pull(std::function<std::size_t(char*, std::size_t)> read,
            std::function<bool(std::uint64_t)> skip = nullptr) {
    pulled.emplace();
    pulled->read = std::move(read);
    pulled->skip = std::move(skip);
    if (archive_read_open2(tar.get(), &*pulled, nullptr, read_pulled, skip_pulled, nullptr) !=
        ARCHIVE_OK)
      damaged();
  }
  bool compressed() const {
    return list || archive_filter_code(tar.get(), 0) != ARCHIVE_FILTER_NONE;
  }
  void look_up();
  bool next_entry();
  std::string refusal(std::uint64_t bytes);
  std::string too_many();
  std::uint64_t end() const {
    return static_cast<std::uint64_t>(archive_read_header_position(tar.get()));
  }
  TarEnding ending() const;
  std::string unread();
  std::string read_data(std::string& data, std::uint64_t room);
  void pass_over();
  bool read_sample(Sample& sample, std::string& why_not);

  std::string name;
  ReadLimits limits;
  std::optional<FileListTar> list;
  io::File file;
  std::optional<Pulled> pulled;
  std::uint64_t pulled_bytes = 0;  // Position in an object.
  std::uint64_t packed = 0;  // Bytes of the file, or of the archive in memory.
  Archive tar;
  archive_entry* entry = nullptr;
  std::vector<std::uint64_t> begins;
  std::vector<Refused> refused;
  // First member of the next sample.
  std::string key, extension;
  bool pending = false, ended = false;
  bool too_large = false;  // Whether a limit is why the current sample is refused.
  bool told_end = false;
};

/// Called between two pieces of an archive, because a few compressed bytes can unpack to any
/// number.
void StreamReader::State::look_up() {
  check_stop();
  if (list || !compressed()) return;
  const std::uint64_t most = most_unpacked(packed, limits);
  if (static_cast<std::uint64_t>(archive_filter_bytes(tar.get(), 0)) <= most) return;
  fail_as(Cause::limit,
          "'{}' unpacks to more than {}, far more than its own {}; unpack it yourself, and give "
          "the tar, if that is right",
          name, format_bytes(static_cast<double>(most)), format_bytes(static_cast<double>(packed)));
}

/// Goes to the next member of a sample. Returns false at the end of the archive.
bool StreamReader::State::next_entry() {
  for (;;) {
    look_up();
    const int status = archive_read_next_header(tar.get(), &entry);
    if (status == ARCHIVE_EOF) return false;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) damaged();
    const char* path = archive_entry_pathname(entry);
    if (!path) path = archive_entry_pathname_utf8(entry);
    const bool regular =
        archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry);
    if (regular && path && split_member_name(path, key, extension)) return true;
    pass_over();
  }
}

std::string StreamReader::State::refusal(std::uint64_t bytes) {
  too_large = true;
  return fmt::format(
      "member '{}.{}' of '{}' is too large: {} bytes or more make its sample larger than the limit "
      "of {} (--max-member)",
      key, extension, name, bytes, format_bytes(static_cast<double>(limits.member)));
}

std::string StreamReader::State::too_many() {
  too_large = true;
  return fmt::format("sample '{}' of '{}' has more than {} members", key, name,
                     ReadLimits::kMembers);
}

/// Must be called at the end of the tar. The end of a compressed tar cannot be checked.
TarEnding StreamReader::State::ending() const {
  if (!file || compressed()) return TarEnding::whole;
  return ending_by_index(file, end());
}

/// Must be called at the end of the tar. Returns why the tar is not complete, or "".
std::string StreamReader::State::unread() {
  if (!file || compressed() || std::exchange(told_end, true)) return {};
  if (ending() != TarEnding::whole)
    return fmt::format("'{}' breaks off: its index, '{}', names what is behind its end", name,
                       energon_index_path(file.path()));
  return behind_end(file, end(), name);
}

/// Reads in blocks, so that a false size in a header allocates nothing. Returns why the member is
/// refused, or "".
std::string StreamReader::State::read_data(std::string& data, std::uint64_t room) {
  if (archive_entry_sparse_count(entry) > 0)
    return fmt::format("member '{}.{}' of '{}' is a sparse file", key, extension, name);
  if (archive_entry_size_is_set(entry) &&
      static_cast<std::uint64_t>(archive_entry_size(entry)) > room)
    return refusal(static_cast<std::uint64_t>(archive_entry_size(entry)));
  for (;;) {
    look_up();
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int status = archive_read_data_block(tar.get(), &block, &size, &offset);
    if (status == ARCHIVE_EOF) return {};
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) damaged();
    // A sparse file could unpack to any number of zeros.
    if (static_cast<std::uint64_t>(offset) != data.size())
      return fmt::format("member '{}.{}' of '{}' is a sparse file", key, extension, name);
    if (data.size() + size > room) return refusal(data.size() + size);
    data.append(static_cast<const char*>(block), size);
  }
}

/// Skips the rest of a member. libarchive would do so too, but a signal could not stop it.
void StreamReader::State::pass_over() {
  if (!compressed()) return;
  const void* block = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  int status = ARCHIVE_OK;
  while ((status = archive_read_data_block(tar.get(), &block, &size, &offset)) != ARCHIVE_EOF) {
    look_up();
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) damaged();
  }
}

/// Reads the sample whose first member is the current one. `why_not` says why it is refused.
bool StreamReader::State::read_sample(Sample& sample, std::string& why_not) {
  sample.members.clear();
  begins.clear();
  why_not.clear();
  too_large = false;
  ended = ended || (!std::exchange(pending, false) && !next_entry());
  if (ended) {
    if (const std::string why = unread(); !why.empty()) fail_as(Cause::format, "{}", why);
    return false;
  }
  sample.key = key;
  std::uint64_t bytes = 0;
  do {
    const bool takes = why_not.empty();
    if (sample.members.size() < ReadLimits::kMembers) {
      sample.members.push_back({extension, {}});
      begins.push_back(static_cast<std::uint64_t>(archive_filter_bytes(tar.get(), 0)));
      if (takes) why_not = read_data(sample.members.back().data, limits.member - bytes);
      bytes += sample.members.back().data.size();
    } else if (takes) {
      why_not = too_many();
    }
    if (!why_not.empty()) {
      for (std::size_t i = 0; takes && i < sample.members.size(); ++i)
        sample.members[i].data = {};
      pass_over();
    }
    if (!next_entry()) {
      ended = true;
      if (ending() == TarEnding::within_sample) fail_as(Cause::format, "{}", unread());
      return true;
    }
  } while (key == sample.key && !sample.find(extension));
  pending = true;
  return true;
}

io::File open_tar(const std::string& path) {
  return io::File::open_regular(path);
}

StreamReader::StreamReader(const std::string& path, const ReadLimits& limits)
    : state_(std::make_unique<State>(path, limits)) {
  io::File file = open_tar(path);
  if (is_file_list(path)) {
    state_->open_list();
  } else {
    check_gzip(file, limits);
    state_->open_file(std::move(file));
  }
}

StreamReader::StreamReader(std::string_view bytes, const std::string& name,
                           const ReadLimits& limits)
    : state_(std::make_unique<State>(name, limits)) {
  state_->packed = bytes.size();
  if (archive_read_open_memory(state_->tar.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    state_->damaged();
}

StreamReader::~StreamReader() = default;
StreamReader::StreamReader(StreamReader&&) noexcept = default;

const std::vector<Refused>& StreamReader::refused() const {
  return state_->refused;
}

bool StreamReader::compressed() const {
  return state_->compressed();
}

const std::vector<std::uint64_t>& StreamReader::begins() const {
  return state_->begins;
}

bool StreamReader::next(Sample& sample) {
  for (std::string why_not; state_->read_sample(sample, why_not);) {
    if (why_not.empty()) return true;
    state_->refused.push_back(
        {sample.key, why_not, state_->too_large ? Cause::limit : Cause::format});
  }
  return false;
}

TarOffsets TarOffsets::scan(const std::string& path, const std::string& name) {
  StreamReader::State s(name, {});
  s.open_file(open_tar(path));
  TarOffsets index;
  std::string key;
  std::vector<std::string> extensions;
  const auto position = [&] {
    return static_cast<std::uint64_t>(archive_read_header_position(s.tar.get()));
  };
  try {
    while (s.next_entry()) {
      if (s.compressed())
        fail("'{}' is compressed, and its samples can only be read in order; unpack it first ({})",
             name, archive_filter_name(s.tar.get(), 0));
      const bool repeated =
          std::find(extensions.begin(), extensions.end(), s.extension) != extensions.end();
      if (index.at.empty() || s.key != key || repeated) {
        index.at.push_back(position());
        key = s.key;
        extensions.clear();
      }
      // Samples with more members are refused, so the others need no check.
      if (extensions.size() < ReadLimits::kMembers) extensions.push_back(s.extension);
    }
    // libarchive also seeks beyond the end of the file.
    if (position() > s.file.size()) fail("'{}' is not a readable tar: Truncated tar archive", name);
  } catch (const Error& error) {
    // The sample in which the tar breaks off is left out. Its offset is the end of the last whole
    // sample.
    if (index.at.size() < 2 || s.compressed()) throw;
    index.damage = error.what();
  }
  if (index.at.empty()) fail("'{}' has no samples", name);
  index.at.front() = 0;  // What comes before the first sample counts as part of it.
  if (index.damage.empty()) {
    const bool cut = s.ending() == TarEnding::within_sample;
    index.damage = s.unread();
    if (!cut)
      index.at.push_back(position());
    else if (index.at.size() < 2)
      fail_as(Cause::format, "{}", index.damage);
  }
  return index;
}

}  // namespace vfm::shard
