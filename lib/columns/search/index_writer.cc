// SPDX-License-Identifier: Apache-2.0
#include "columns/search/index_writer.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/json.h"
#include "base/stop.h"
#include "columns/search/inverted_file.h"
#include "io/file.h"

namespace vfm::columns {
namespace {

/// A file of fixed size that is mapped to memory for writing.
class OutputMap {
 public:
  /// Allocates the file's space now, because writing to a map without space kills the program.
  OutputMap(const io::AtomicFile& file, std::uint64_t size) : size_(size) {
    if (const int error = ::posix_fallocate(file.fd(), 0, static_cast<off_t>(size)); error != 0)
      fail_output(error, "cannot write '{}'", file.path());
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
    if (at == MAP_FAILED) fail_output(errno, "cannot write '{}'", file.path());
    data_ = static_cast<char*>(at);
  }
  ~OutputMap() { ::munmap(data_, size_); }
  OutputMap(const OutputMap&) = delete;
  OutputMap& operator=(const OutputMap&) = delete;

  char* at(std::uint64_t offset) { return data_ + offset; }
  std::string_view view(std::uint64_t begin, std::uint64_t bytes) const {
    return {data_ + begin, bytes};
  }

 private:
  char* data_ = nullptr;
  std::uint64_t size_;
};

class IndexFile {
 public:
  IndexFile(const IndexParts& parts, io::AtomicFile& out)
      : parts_(parts), code_(code_bytes(parts.model.dim)), out_(out) {}

  std::uint64_t write();

 private:
  /// Calls `use` for each row of added shards, in order. Throws Stopped.
  void each_coded(const std::function<void(const CodedRow&)>& use) const;
  /// Calls `use` for each kept entry of `before`, by list, with the new number of its row.
  void each_kept(const std::function<void(std::size_t list, std::uint32_t row,
                                          const std::uint8_t* code)>& use) const;
  void place_shards();
  void count();
  void fill(OutputMap& map, const IndexLayout& at);
  void fill_rows(OutputMap& map, const IndexLayout& at);
  void finish(OutputMap& map, const IndexLayout& at);

  const IndexParts& parts_;
  std::uint64_t code_;
  io::AtomicFile& out_;
  std::vector<IndexedShard> shards_;
  std::uint64_t rows_ = 0, entries_ = 0;
  std::vector<std::uint64_t> counts_;  // entries of each list
};

void IndexFile::each_coded(const std::function<void(const CodedRow&)>& use) const {
  if (parts_.coded == nullptr) return;
  io::ScratchReader reader(*parts_.coded);
  const std::size_t size = sizeof(std::uint32_t) + sizeof(std::uint64_t) + code_;
  for (std::uint64_t n = parts_.coded->size() / size; n > 0; --n) {
    const std::string_view bytes = reader.bytes(size);
    CodedRow row;
    std::memcpy(&row.list, bytes.data(), sizeof row.list);
    std::memcpy(&row.at, bytes.data() + sizeof row.list, sizeof row.at);
    row.code = bytes.substr(sizeof row.list + sizeof row.at);
    use(row);
    if (n % 65536 == 0) check_stop();
  }
}

void IndexFile::each_kept(
    const std::function<void(std::size_t, std::uint32_t, const std::uint8_t*)>& use) const {
  if (parts_.before == nullptr || parts_.kept.empty()) return;
  const std::vector<IndexedShard>& before = parts_.before->shards();
  // New number of each old shard's first row, or kGone.
  constexpr std::uint64_t kGone = ~std::uint64_t{0};
  std::vector<std::uint64_t> moved(before.size(), kGone);
  for (std::size_t i = 0; i < parts_.kept.size(); ++i)
    moved[parts_.kept[i]] = shards_[i].first;
  for (std::size_t list = 0; list < parts_.model.lists; ++list) {
    check_stop();
    const VectorIndex::List entries = parts_.before->list(list);
    for (std::size_t i = 0; i < entries.rows.size(); ++i) {
      const std::size_t shard = parts_.before->shard_of(entries.rows[i]);
      if (moved[shard] == kGone) continue;
      use(list, static_cast<std::uint32_t>(entries.rows[i] - before[shard].first + moved[shard]),
          entries.codes + i * code_);
    }
  }
}

void IndexFile::place_shards() {
  for (const std::size_t number : parts_.kept)
    shards_.push_back(parts_.before->shards()[number]);
  shards_.insert(shards_.end(), parts_.added.begin(), parts_.added.end());
  for (IndexedShard& shard : shards_) {
    shard.first = rows_;
    rows_ += shard.rows;
  }
  if (rows_ >= CodedRow::kNoList) fail("an index takes {} samples at most", CodedRow::kNoList - 1);
}

void IndexFile::count() {
  counts_.assign(parts_.model.lists, 0);
  each_kept([&](std::size_t list, std::uint32_t, const std::uint8_t*) { ++counts_[list]; });
  each_coded([&](const CodedRow& row) {
    if (row.list != CodedRow::kNoList) ++counts_[row.list];
  });
  for (const std::uint64_t n : counts_)
    entries_ += n;
}

void IndexFile::fill(OutputMap& map, const IndexLayout& at) {
  std::vector<std::uint64_t> next(counts_.size());  // next entry of each list
  for (std::size_t list = 1; list < next.size(); ++list)
    next[list] = next[list - 1] + counts_[list - 1];
  const auto put = [&](std::size_t list, std::uint32_t row, const void* code) {
    const std::uint64_t entry = next[list]++;
    std::memcpy(map.at(at.entries + entry * sizeof row), &row, sizeof row);
    std::memcpy(map.at(at.codes + entry * code_), code, code_);
  };
  each_kept(
      [&](std::size_t list, std::uint32_t row, const std::uint8_t* code) { put(list, row, code); });
  std::uint64_t row = 0;
  for (std::size_t i = 0; i < parts_.kept.size(); ++i)
    row += shards_[i].rows;
  each_coded([&](const CodedRow& coded) {
    std::memcpy(map.at(at.rows + row * sizeof coded.at), &coded.at, sizeof coded.at);
    if (coded.list != CodedRow::kNoList)
      put(coded.list, static_cast<std::uint32_t>(row), coded.code.data());
    ++row;
  });
}

void IndexFile::fill_rows(OutputMap& map, const IndexLayout& at) {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    IndexedShard& shard = shards_[i];
    const std::uint64_t begin = at.rows + shard.first * sizeof(std::uint64_t);
    const std::uint64_t bytes = shard.rows * sizeof(std::uint64_t);
    if (i < parts_.kept.size()) {
      const auto rows = parts_.before->positions(parts_.kept[i]);
      std::memcpy(map.at(begin), rows.data(), rows.size_bytes());
    }
    const auto hash = index_hash({map.view(begin, bytes)});
    shard.hash.assign(hash.data(), hash.size());
  }
}

void IndexFile::finish(OutputMap& map, const IndexLayout& at) {
  std::uint64_t entry = 0;
  for (std::size_t list = 0; list < counts_.size(); ++list) {
    const std::uint64_t n = counts_[list];
    const ListHead head = {
        n,
        index_hash({map.view(at.entries + entry * sizeof(std::uint32_t), n * sizeof(std::uint32_t)),
                    map.view(at.codes + entry * code_, n * code_)})};
    std::memcpy(map.at(at.lists + list * sizeof head), &head, sizeof head);
    entry += n;
  }
  std::memcpy(map.at(at.centres), parts_.centres.data(), parts_.centres.size_bytes());
  std::memcpy(map.at(at.words), parts_.words.data(), parts_.words.size_bytes());
}

std::uint64_t IndexFile::write() {
  place_shards();
  count();
  const IndexLayout at(parts_.model, rows_, entries_);
  std::string facts;
  IndexHeader header{kIndexMagic, kIndexVersion, at.end, 0, {}, {}};
  {
    OutputMap map(out_, at.end);
    fill(map, at);
    fill_rows(map, at);
    finish(map, at);
    const auto hash = index_hash({map.view(at.lists, at.entries - at.lists)});
    facts = dump_json(index_facts(io::dir_name(out_.path()), parts_.model, shards_, rows_, entries_,
                                  {hash.data(), hash.size()}));
    header.facts_bytes = facts.size();
    header.facts_hash = index_hash({facts});
    const std::string_view bytes(reinterpret_cast<const char*>(&header), sizeof header);
    header.header_hash = index_hash({bytes.substr(0, sizeof header - 16)});
    std::memcpy(map.at(0), &header, sizeof header);
  }
  if (::lseek(out_.fd(), static_cast<off_t>(at.end), SEEK_SET) < 0)
    fail_output(errno, "cannot write '{}'", out_.path());
  out_.write(facts);
  out_.commit();
  return entries_;
}

}  // namespace

void put_coded_row(std::string& out, const CodedRow& row) {
  out.append(reinterpret_cast<const char*>(&row.list), sizeof row.list);
  out.append(reinterpret_cast<const char*>(&row.at), sizeof row.at);
  out.append(row.code);
}

std::uint64_t write_index(const IndexParts& parts, io::AtomicFile& out) {
  return IndexFile(parts, out).write();
}

}  // namespace vfm::columns
