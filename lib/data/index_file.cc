// SPDX-License-Identifier: Apache-2.0
#include "data/index_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/json.h"
#include "base/stop.h"
#include "data/given_texts.h"
#include "io/file.h"
#include "io/remote/remote_file.h"
#include "shard/name_table.h"

namespace vfm::data {
namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Form) == 40 && sizeof(IndexRun) == 24 && sizeof(LatentIndexHeader) % 8 == 0 &&
              sizeof(LatentIndexHeader) <= LatentIndexLayout::kBegin);

constexpr std::size_t kAtOnce = 65536;                 // samples written together
constexpr std::uint64_t kWholeList = 16 << 20;         // a longer list is hashed in pieces
constexpr std::uint64_t kPieces = 32, kPiece = 4096;  // of these; each is a request to a bucket
constexpr std::uint32_t kMostText = (1 << 23) - 1, kHashed = 1 << 23;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

void write_at(const io::AtomicFile& file, std::span<const std::byte> bytes, std::uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file.fd(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_output(errno, "cannot write '{}'", file.path());
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    at += static_cast<std::uint64_t>(put);
  }
}

template <std::size_t N>
std::array<char, N> characters(const std::string& text) {
  std::array<char, N> out{};
  std::copy_n(text.begin(), std::min(N, text.size()), out.begin());
  return out;
}

/// A part of the file that grows as samples come.
class Column {
 public:
  Column(const io::AtomicFile& file, std::uint64_t at) : file_(file), at_(at) {}
  template <class Number>
  void add(Number number, std::size_t size = sizeof(Number)) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&number);
    buffer_.insert(buffer_.end(), bytes, bytes + size);
    if (buffer_.size() >= sizeof(std::uint64_t) * kAtOnce) flush();
  }
  void flush() {
    write_at(file_, buffer_, at_);
    at_ += buffer_.size();
    buffer_.clear();
  }

 private:
  const io::AtomicFile& file_;
  std::uint64_t at_;
  std::vector<std::byte> buffer_;
};

std::uint64_t count_lines(const io::MappedFile& file) {
  std::uint64_t lines = 0;
  for (std::string_view rest = file.text(); !rest.empty(); check_stop()) {
    const std::string_view part = rest.substr(0, std::size_t{16} << 20);
    lines += static_cast<std::uint64_t>(std::ranges::count(part, '\n'));
    file.release(std::as_bytes(std::span(part)));
    rest.remove_prefix(part.size());
  }
  return lines;
}

/// Calls use(entry, place) with that of each line, and where it begins. Of a mapped `file` what was
/// read is released.
template <class Use>
void for_each_line(const std::string& path, std::string_view text, const io::MappedFile* file,
                   const Use& use) {
  std::size_t at = 0, released = 0;
  for (std::size_t number = 1; at < text.size(); ++number) {
    const std::size_t end = text.find('\n', at);
    const auto what = [&] { return fmt::format("line {} of '{}'", number, path); };
    if (end == std::string_view::npos) fail("{} has no end: the file is cut short", what());
    const std::string_view line = text.substr(at, end - at);
    // The name is made where it is needed: it takes as long as a line.
    Entry entry;
    try {
      entry = parse_entry(parse_json(line, "the line"), "the line");
    } catch (const Error&) {
      entry = parse_entry(parse_json(line, what()), what());
    }
    use(entry, at);
    at = end + 1;
    if (at - released < std::size_t{16} << 20) continue;
    check_stop();
    if (file != nullptr)
      file->release(std::as_bytes(std::span(text)).subspan(released, at - released));
    released = at;
  }
}

}  // namespace

LatentIndexLayout::LatentIndexLayout(const LatentIndexHeader& header) {
  const std::uint64_t n = header.samples;
  forms = kBegin;
  checks = aligned(forms + 4 * n);
  texts = checks + 8 * n;
  lines = aligned(texts + 3 * n);
  form_table = lines + 8 * ((n + kLines - 1) / kLines);
  runs = form_table + sizeof(Form) * header.forms;
  name_ends = runs + sizeof(IndexRun) * header.runs;
  names = name_ends + 8 * header.shards;
  end = names + header.name_bytes;
}

std::array<char, 16> hash_of_list(const std::string& list) {
  const io::File file = io::File::open_regular(list);
  const std::uint64_t bytes = file.size();
  std::vector<std::uint64_t> places;
  std::uint64_t size = kPiece;
  if (bytes <= kWholeList) {
    size = kWholeList;
    if (bytes > 0) places.push_back(0);
  } else {
    for (std::uint64_t k = 0; k < kPieces; ++k)
      places.push_back((bytes - kPiece) / (kPieces - 1) * k);
    places.push_back(bytes - kPiece);
  }
  size = std::min(size, bytes);
  std::vector<std::byte> pieces(size * places.size());
  std::vector<io::RemoteFile::Range> ranges;
  for (std::size_t k = 0; k < places.size(); ++k)
    ranges.push_back({places[k], std::span(pieces).subspan(k * size, size)});
  if (const io::RemoteFile* const object = file.remote())
    object->pread_all(ranges);  // several at once
  else
    for (const io::RemoteFile::Range& range : ranges)
      file.pread_exact(range.out.data(), range.out.size(), range.offset);
  return characters<16>(Hasher().update(pieces.data(), pieces.size()).hex64());
}

struct IndexWriter::State {
  State(io::AtomicFile& out, std::size_t samples, const Json& info)
      : file(out),
        header{.samples = samples, .info_hash = characters<32>(hash_hex(dump_json(info)))},
        layout(header),
        forms(out, layout.forms),
        checks(out, layout.checks),
        texts(out, layout.texts),
        lines(out, layout.lines),
        fingerprint(info) {}

  std::uint32_t shard_of(const std::string& name) {
    if (!runs.empty() && names.name(runs.back().shard) == name) return runs.back().shard;
    return names.add(name).first;
  }

  io::AtomicFile& file;
  LatentIndexHeader header;
  LatentIndexLayout layout;
  Column forms, checks, texts, lines;
  FormTable table;
  Fingerprint fingerprint;
  std::vector<IndexRun> runs;
  shard::NameTable names;
  std::uint64_t added = 0;
};

IndexWriter::IndexWriter(io::AtomicFile& file, std::size_t samples, const Json& info)
    : state_(std::make_unique<State>(file, samples, info)) {}
IndexWriter::~IndexWriter() = default;

void IndexWriter::add(const Entry& entry, std::uint64_t line) {
  State& s = *state_;
  const std::uint32_t form = s.table.add(entry);
  s.fingerprint.add(entry, form);
  s.forms.add(form);
  s.checks.add(entry_check(entry.key, entry.xxh3));
  const auto text = static_cast<std::uint32_t>(entry.text_tokens);
  if (text > kMostText) fail("sample '{}' has a text of {} tokens", entry.key, text);
  s.texts.add(entry.xxh3.empty() ? text : text | kHashed, 3);
  if (s.added % LatentIndexLayout::kLines == 0) s.lines.add(line);
  const std::uint32_t shard = s.shard_of(entry.shard);
  const auto row = static_cast<std::uint64_t>(entry.row);
  if (s.runs.empty() || s.runs.back().shard != shard ||
      s.runs.back().row + (s.added - s.runs.back().first) != row)
    s.runs.push_back({.first = s.added, .row = row, .shard = shard});
  s.header.longest_text = std::max(s.header.longest_text, text);
  s.header.text_tokens += text;
  ++s.added;
}

void IndexWriter::finish(const std::string& list) {
  State& s = *state_;
  if (s.added != s.header.samples)
    fail("'{}' has {} samples, and {} were counted", list, s.added, s.header.samples);
  for (Column* column : {&s.forms, &s.checks, &s.texts, &s.lines})
    column->flush();
  s.header.forms = s.table.forms().size();
  s.header.runs = s.runs.size();
  s.header.shards = s.names.size();
  s.header.name_bytes = s.names.text().size();
  const LatentIndexLayout layout(s.header);
  s.header.bytes = layout.end;
  s.header.list_bytes = io::File::open_regular(list).size();
  s.header.list_hash = hash_of_list(list);
  s.header.fingerprint = characters<32>(s.fingerprint.hex128());
  std::string tables;
  const auto append = [&](const auto& part) {
    const auto bytes = std::as_bytes(std::span(part));
    tables.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  append(s.table.forms());
  append(s.runs);
  append(s.names.ends());
  append(s.names.text());
  write_at(s.file, std::as_bytes(std::span(tables)), layout.form_table);
  s.header.tables_check = check_of_tables(s.header, std::as_bytes(std::span(tables)));
  write_at(s.file, std::as_bytes(std::span(&s.header, 1)), 0);
}

std::uint64_t check_of_tables(LatentIndexHeader header, std::span<const std::byte> tables) {
  header.tables_check = 0;
  const std::string hash =
      Hasher().update(&header, sizeof header).update(tables.data(), tables.size()).hex64();
  return std::stoull(hash, nullptr, 16);
}

void make_index(const std::string& list, io::AtomicFile& file, const Json& info) {
  const io::MappedFile lines(list);
  IndexWriter writer(file, count_lines(lines), info);
  for_each_line(list, lines.text(), &lines,
                [&](const Entry& entry, std::uint64_t at) { writer.add(entry, at); });
  writer.finish(list);
}

std::vector<Entry> read_list(const std::string& list) {
  std::vector<Entry> entries;
  const auto add = [&](Entry& entry, std::uint64_t) { entries.push_back(std::move(entry)); };
  if (const std::optional<std::string>* const given = GivenTexts::find(list); given && *given) {
    for_each_line(list, **given, nullptr, add);
  } else {
    const io::MappedFile file(list);
    for_each_line(list, file.text(), &file, add);
  }
  return entries;
}

}  // namespace vfm::data
