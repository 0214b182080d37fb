// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "io/file.h"
#include "shard/reader.h"
#include "shard/tar_end.h"
#include "shard/tar_file.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

static_assert(std::endian::native == std::endian::little, "index files are little-endian");

// Room for headers and padding of a sample beside its members.
constexpr std::uint64_t kHeaders = 64 << 10;

// Offsets and widths of fields in a ustar header (POSIX.1-1988).
constexpr std::size_t kSizeAt = 124, kSizeWidth = 12, kChecksumAt = 148, kChecksumWidth = 8;
constexpr std::size_t kTypeAt = 156, kMagicAt = 257, kPrefixAt = 345;

/// Reads octal digits after blanks, up to a blank, a NUL or the end of the field. Returns nothing
/// for other contents, such as GNU's base-256 sizes.
std::optional<std::uint64_t> octal(const char* field, std::size_t width) {
  std::size_t i = 0;
  while (i < width && field[i] == ' ')
    ++i;
  std::uint64_t value = 0;
  const std::size_t first = i;
  for (; i < width && field[i] >= '0' && field[i] <= '7'; ++i)
    value = value << 3 | static_cast<std::uint64_t>(field[i] - '0');
  if (i == first || (i < width && field[i] != ' ' && field[i] != '\0')) return std::nullopt;
  return value;
}

bool checksum_fits(const char* header) {
  const auto stored = octal(header + kChecksumAt, kChecksumWidth);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i)
    sum += static_cast<unsigned char>(header[i]);
  for (std::size_t i = kChecksumAt; i < kChecksumAt + kChecksumWidth; ++i)
    sum += ' ' - std::uint32_t{static_cast<unsigned char>(header[i])};
  return stored && *stored == sum;
}

/// Returns whether the header is of a regular file with the whole name in the first field, as in
/// all our tars. Other headers are left to libarchive.
bool is_plain(const char* header) {
  const char type = header[kTypeAt];
  return (type == '0' || type == '\0') && std::memcmp(header + kMagicAt, "ustar", 5) == 0 &&
         header[kPrefixAt] == '\0';
}

/// Splits the name without a copy. Returns false if the Writer would refuse its key or extension.
bool split_plain_name(std::string_view name, std::string_view& key, std::string_view& extension) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  key = name.substr(0, dot);
  extension = name.substr(dot + 1);
  return valid_key(key) && valid_extension(extension);
}

/// Parses `range`, which holds one sample. Returns false if libarchive must read the sample.
bool parse_plain(std::string_view range, std::uint64_t offset, SampleView& view) {
  view.members.clear();
  view.key = {};
  std::size_t at = 0;
  while (at < range.size()) {
    if (range.size() - at < kTarBlock) return false;
    const char* header = range.data() + at;
    if (!is_plain(header) || !checksum_fits(header)) return false;
    const auto size = octal(header + kSizeAt, kSizeWidth);
    at += kTarBlock;
    if (!size || *size > range.size() - at) return false;
    std::string_view key, extension;
    if (!split_plain_name({header, ::strnlen(header, kMaxName)}, key, extension)) return false;
    if (!view.members.empty() && key != view.key) return false;
    if (view.members.size() == ReadLimits::kMembers) return false;
    if (view.find(extension).data()) return false;
    view.key = key;
    view.members.push_back({extension, range.substr(at, *size), offset + at});
    at += (*size + kTarBlock - 1) / kTarBlock * kTarBlock;
    if (at > range.size()) return false;
  }
  return !view.members.empty();
}

Sample owned(const SampleView& view) {
  Sample sample;
  sample.key = view.key;
  sample.members.reserve(view.members.size());
  for (const MemberView& member : view.members)
    sample.members.push_back({std::string(member.extension), std::string(member.data)});
  return sample;
}

}  // namespace

struct IndexedReader::State {
  State(const std::string& path, const ReadLimits& read_limits) : file(path), limits(read_limits) {}

  void read(void* out, std::size_t size, std::uint64_t offset) const;
  bool read_header(char* header, std::uint64_t offset, bool in_order = false) const;
  bool read_in_order(char* out, std::size_t size, std::uint64_t offset) const;
  void load_index();
  void check_index();
  void check_size(std::uint64_t bytes, std::int64_t i, const std::string& key) const;
  std::string key_at(std::uint64_t offset, std::uint64_t size) const;
  void check_range(std::int64_t i, std::uint64_t offset, std::uint64_t size) const {
    if (size > limits.member + kHeaders) check_size(size, i, key_at(offset, size));
  }
  static bool is_member_of(const SampleView& sample, const char* header, std::uint64_t at,
                           std::uint64_t* next);
  bool is_member_of(const SampleView& sample, std::uint64_t at, std::uint64_t* next) const;
  const std::string& first_extension() const;
  [[noreturn]] void misfit(std::int64_t i) const {
    fail(
        "'{}' does not fit '{}' at sample {}: one of them is damaged, or the index is of another "
        "tar; copy both again, or make them again",
        energon_index_path(file.path()), file.path(), i);
  }

  mutable TarFile file;
  ReadLimits limits;
  TarOffsets index;
  mutable std::once_flag first_read;
  mutable std::string first;

  /// Of an object, the end of the sample that was read last, and its last bytes.
  mutable std::mutex order;
  mutable std::uint64_t end = 0;
  mutable std::string tail;
};

/// Reads from any thread. Samples of an object that are read one after the other come by
/// read-ahead, since each request to a server takes long.
void IndexedReader::State::read(void* out, std::size_t size, std::uint64_t offset) const {
  if (!file.remote()) return file.pread_exact(out, size, offset);
  auto* to = static_cast<char*>(out);
  // Only one thread can read in order. The others read here and there.
  const std::unique_lock lock(order, std::try_to_lock);
  if (!lock || !read_in_order(to, size, offset)) file.pread_exact(out, size, offset);
  // Headers are also read elsewhere, between two samples.
  if (!lock || (size <= kTarBlock && offset + size <= end)) return;
  end = offset + size;
  tail.assign(to + size - std::min(size, kTarBlock), std::min(size, kTarBlock));
}

/// Returns false if the header is in a damaged frame of a compressed tar, because that takes only
/// the frame's own samples. `in_order` is for headers behind a sample that was read.
bool IndexedReader::State::read_header(char* header, std::uint64_t offset, bool in_order) const {
  try {
    in_order ? read(header, kTarBlock, offset) : file.pread_exact(header, kTarBlock, offset);
    return true;
  } catch (const Error& error) {
    if (error.cause() != Cause::format) throw;
    return false;
  }
}

/// Returns false if `offset` is neither at the end of the sample that was read last nor in its
/// last block, which is the header of the next sample.
bool IndexedReader::State::read_in_order(char* out, std::size_t size, std::uint64_t offset) const {
  if (end == 0 || offset > end || offset < end - tail.size()) return false;
  const std::size_t held = std::min<std::size_t>(size, end - offset);
  std::memcpy(out, tail.data() + tail.size() - (end - offset), held);
  if (held < size) file.plain().seek(end);
  for (std::size_t at = held; at < size;) {
    const std::size_t got = file.plain().read_some(out + at, size - at);
    if (got == 0)
      fail("'{}' is truncated: it ends at byte {}, {} more were expected", file.path(), offset + at,
           size - at);
    at += got;
  }
  return true;
}

/// Returns whether the header at `at` is of one more member of the sample. Sets `next` to the
/// offset of the next header, or to 0 if unknown.
bool IndexedReader::State::is_member_of(const SampleView& sample, std::uint64_t at,
                                        std::uint64_t* next) const {
  char header[kTarBlock];
  *next = 0;
  if (at + kTarBlock > file.size()) return false;
  return read_header(header, at, true) && is_member_of(sample, header, at, next);
}

bool IndexedReader::State::is_member_of(const SampleView& sample, const char* header,
                                        std::uint64_t at, std::uint64_t* next) {
  *next = 0;
  const auto size = octal(header + kSizeAt, kSizeWidth);
  std::string key, extension;
  if (!is_plain(header) || !checksum_fits(header) || !size ||
      !split_member_name({header, ::strnlen(header, kMaxName)}, key, extension))
    return false;
  *next = at + kTarBlock + (*size + kTarBlock - 1) / kTarBlock * kTarBlock;
  // A repeated extension begins a new sample.
  return key == sample.key && !sample.find(extension).data();
}

/// Returns the extension of the first member of the tar, which does not depend on the index.
const std::string& IndexedReader::State::first_extension() const {
  std::call_once(first_read, [&] {
    char header[kTarBlock];
    std::string key;
    if (file.size() >= kTarBlock && read_header(header, 0) && is_plain(header) &&
        checksum_fits(header))
      split_member_name({header, ::strnlen(header, kMaxName)}, key, first);
  });
  return first;
}

void IndexedReader::State::load_index() {
  const std::string index_path = energon_index_path(file.path());
  const std::string bytes = io::read_file(index_path);
  constexpr std::size_t kEntry = sizeof(std::uint64_t);
  if (bytes.size() % kEntry != 0 || bytes.size() < 2 * kEntry)
    fail("'{}' is not a shard index: {} bytes", index_path, bytes.size());
  std::vector<std::uint64_t>& offsets = index.at;
  offsets.resize(bytes.size() / kEntry);
  std::memcpy(offsets.data(), bytes.data(), bytes.size());
  offsets[0] = 0;  // Energon's readers also ignore the first number.
}

void IndexedReader::State::check_index() {
  const std::vector<std::uint64_t>& offsets = index.at;
  if (offsets.size() < 2) fail("'{}' has no samples", file.path());
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] <= offsets[i - 1] || offsets[i] % kTarBlock != 0)
      misfit(static_cast<std::int64_t>(i) - 1);
  if (!index.damage.empty()) return;  // A damaged tar has no end block to check.
  // The end block of zeros proves that the index covers the whole tar. Some programs leave it out.
  const std::int64_t last = static_cast<std::int64_t>(offsets.size()) - 2;
  const std::uint64_t size = file.size();
  if (offsets.back() == size) return;
  if (size < kTarBlock || offsets.back() > size - kTarBlock) misfit(last);
  char block[kTarBlock];
  file.pread_exact(block, kTarBlock, offsets.back());
  for (const char byte : block)
    if (byte != 0) misfit(last);
  if (const std::string why = behind_end(file, offsets.back(), file.path()); !why.empty())
    fail_as(Cause::format, "{}", why);
}

void IndexedReader::State::check_size(std::uint64_t bytes, std::int64_t i,
                                      const std::string& key) const {
  if (bytes <= limits.member) return;
  fail_as(Cause::limit, "sample {} of '{}' is too large: {} bytes, the limit is {} (--max-member)",
          key.empty() ? fmt::format("number {}", i) : fmt::format("'{}'", key), file.path(), bytes,
          format_bytes(static_cast<double>(limits.member)));
}

IndexedReader::IndexedReader(const std::string& path, const ReadLimits& limits)
    : state_(std::make_unique<State>(path, limits)) {
  state_->load_index();
  state_->check_index();
}
IndexedReader::IndexedReader(const std::string& path, TarOffsets index, const ReadLimits& limits)
    : state_(std::make_unique<State>(path, limits)) {
  state_->index = std::move(index);
  state_->check_index();
}
IndexedReader::IndexedReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
IndexedReader IndexedReader::without_index(const std::string& path, const ReadLimits& limits) {
  auto state = std::make_unique<State>(path, limits);
  state->index.at = {0};
  return IndexedReader(std::move(state));
}
IndexedReader::~IndexedReader() = default;
IndexedReader::IndexedReader(IndexedReader&&) noexcept = default;

const std::string& IndexedReader::path() const {
  return state_->file.path();
}

std::int64_t IndexedReader::samples() const {
  return static_cast<std::int64_t>(state_->index.at.size()) - 1;
}

std::uint64_t IndexedReader::offset(std::int64_t i) const {
  if (i < 0 || i >= samples()) fail("'{}' has {} samples, but no sample {}", path(), samples(), i);
  return state_->index.at[static_cast<std::size_t>(i)];
}

std::uint64_t IndexedReader::size(std::int64_t i) const {
  const std::uint64_t begin = offset(i);
  return state_->index.at[static_cast<std::size_t>(i) + 1] - begin;
}

const TarOffsets& IndexedReader::index() const {
  return state_->index;
}

std::string IndexedReader::key(std::int64_t i) const {
  return state_->key_at(offset(i), size(i));
}

std::string IndexedReader::State::key_at(std::uint64_t offset, std::uint64_t size) const {
  char header[kTarBlock];
  std::string key, extension;
  if (size < kTarBlock || !read_header(header, offset) || !is_plain(header) ||
      !checksum_fits(header) ||
      !split_member_name({header, ::strnlen(header, kMaxName)}, key, extension))
    return {};
  return key;
}

/// Checks the size of sample `i` with its headers and padding. parse() checks the size of the
/// members.
std::uint64_t IndexedReader::range_of(std::int64_t i) const {
  const std::uint64_t bytes = size(i);
  state_->check_range(i, offset(i), bytes);
  return bytes;
}

const SampleView& IndexedReader::view(std::int64_t i, ReadBuffer& buffer) const {
  const std::uint64_t begin = offset(i), bytes = size(i);
  // Of an object, the header behind the sample comes by the same request.
  const bool more = state_->file.remote() && i + 1 < samples() &&
                    begin + bytes + kTarBlock <= state_->file.size();
  load(i, begin, bytes, more ? kTarBlock : 0, buffer);
  check_bounds(i, buffer.view_, more ? buffer.bytes_.get() + bytes : nullptr);
  return buffer.view_;
}

/// Throws Error if the sample has members behind its end or before its beginning, because then a
/// number in the index is wrong. Headers before it are read only if its first member has another
/// extension than that of the first sample. In our tars these are always equal, so only one more
/// header is read, or is in `behind`.
void IndexedReader::check_bounds(std::int64_t i, const SampleView& sample,
                                 const char* behind) const {
  std::uint64_t next = 0;
  const std::uint64_t end = offset(i) + size(i);
  if (behind ? State::is_member_of(sample, behind, end, &next)
             : i + 1 < samples() && state_->is_member_of(sample, end, &next))
    state_->misfit(i);
  if (i == 0 || sample.members.front().extension == state_->first_extension()) return;
  for (std::uint64_t at = offset(i - 1); at != 0 && at < offset(i); at = next)
    if (state_->is_member_of(sample, at, &next)) state_->misfit(i);
}

const SampleView& IndexedReader::view_at(std::int64_t i, std::uint64_t offset, std::uint64_t size,
                                         ReadBuffer& buffer) const {
  load(i, offset, size, 0, buffer);
  return buffer.view_;
}

const SampleView& IndexedReader::view_in(std::int64_t i, std::uint64_t offset,
                                         std::string_view range, ReadBuffer& buffer) const {
  state_->check_range(i, offset, range.size());
  parse(i, offset, range, buffer);
  return buffer.view_;
}

const io::RemoteFile* IndexedReader::remote() const {
  return state_->file.remote();
}

/// Reads `more` bytes behind the sample too.
void IndexedReader::load(std::int64_t i, std::uint64_t offset, std::uint64_t size, std::size_t more,
                         ReadBuffer& buffer) const {
  state_->check_range(i, offset, size);
  const std::size_t bytes = size + more;
  if (buffer.capacity_ < bytes) {
    buffer.capacity_ = 0;
    // Not filled with zeros, because the read overwrites it.
    buffer.bytes_ = std::make_unique_for_overwrite<char[]>(bytes + bytes / 4);
    buffer.capacity_ = bytes + bytes / 4;
  }
  state_->read(buffer.bytes_.get(), bytes, offset);
  parse(i, offset, {buffer.bytes_.get(), size}, buffer);
}

void IndexedReader::parse(std::int64_t i, std::uint64_t at, std::string_view range,
                          ReadBuffer& buffer) const {
  SampleView& view = buffer.view_;
  if (parse_plain(range, at, view)) {
    std::uint64_t sum = 0;
    for (const MemberView& member : view.members)
      sum += member.data.size();
    state_->check_size(sum, i, std::string(view.key));
    return;
  }

  // A tar of another program, for example with PAX or GNU names or directories. The range is an
  // archive without end blocks.
  view.members.clear();
  std::string refused;
  std::vector<std::uint64_t> begins;
  try {
    StreamReader slow(range, path(), state_->limits);
    Sample extra;
    const bool found = slow.next(buffer.owned_);
    begins = slow.begins();
    if (!slow.refused().empty())
      refused = slow.refused().front().why;
    else if (!found || slow.compressed() || slow.next(extra))
      state_->misfit(i);
  } catch (const Error&) {
    state_->misfit(i);
  }
  if (!refused.empty()) fail("{}", refused);
  view.key = buffer.owned_.key;
  for (std::size_t m = 0; m < begins.size(); ++m) {
    const Member& member = buffer.owned_.members[m];
    view.members.push_back({member.extension, member.data, at + begins[m]});
  }
}

std::string IndexedReader::read_piece(std::int64_t i, std::uint64_t begin,
                                      std::uint64_t end) const {
  const std::uint64_t range = range_of(i);
  if (begin > end || end > range)
    fail("sample {} of '{}' has {} bytes, there are none up to {}", i, path(), range, end);
  std::string bytes(end - begin, '\0');
  state_->file.pread_exact(bytes.data(), bytes.size(), offset(i) + begin);
  return bytes;
}

Sample IndexedReader::put_together(std::int64_t i, std::string_view range) const {
  if (range.size() != range_of(i))
    fail("sample {} of '{}' has {} bytes, not {}", i, path(), size(i), range.size());
  ReadBuffer buffer;
  parse(i, offset(i), range, buffer);
  return owned(buffer.view_);
}

Sample IndexedReader::read(std::int64_t i) const {
  // One buffer per thread avoids an allocation per read. A large buffer is released, so that a
  // thread does not keep it after one huge sample.
  thread_local ReadBuffer buffer;
  Sample sample = owned(view(i, buffer));
  if (size(i) > (std::uint64_t{64} << 20)) buffer = ReadBuffer();
  return sample;
}

void for_each_sample(const std::string& path, const std::function<void(Sample&)>& use) {
  std::optional<IndexedReader> indexed;
  if (has_index(path)) {
    try {
      indexed.emplace(path);
    } catch (const Error& error) {
      log_warning("{}; reading the tar without it", error.what());
    }
  }
  if (indexed) {
    for (std::int64_t i = 0; i < indexed->samples(); ++i) {
      Sample sample = indexed->read(i);
      use(sample);
    }
    return;
  }
  StreamReader reader(path);
  for (Sample sample; reader.next(sample);)
    use(sample);
}

}  // namespace vfm::shard
