// SPDX-License-Identifier: Apache-2.0
#include "dataset/scanned.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/file_cache.h"
#include "io/packed.h"
#include "io/places.h"
#include "io/remote/address.h"

namespace vfm::dataset {
namespace {

constexpr std::string_view kScanVersion = "vfm-shard scan 1";
constexpr std::size_t kScanBuffer = std::size_t{256} << 10;
constexpr int kFieldBytes = 8;
constexpr std::size_t kBlockBytes = std::size_t{4} * kFieldBytes;

void put_names(std::string& out, const std::set<std::string>& names) {
  io::put_number(out, names.size());
  for (const std::string& name : names)
    io::put_text(out, name);
}

std::set<std::string> take_names(std::string_view& rest) {
  std::set<std::string> names;
  for (std::uint64_t left = io::take_number(rest); left > 0; --left)
    names.emplace_hint(names.end(), io::take_text(rest));
  return names;
}

void put_compared(std::string& out, const std::vector<shard::Comparison>& compared) {
  io::put_number(out, compared.size());
  for (const shard::Comparison& one : compared) {
    io::put_text(out, one.field);
    io::put_text(out, one.constant);
    for (const std::uint64_t value : {std::uint64_t{one.text}, one.fits, one.differs})
      io::put_number(out, value);
  }
}

std::vector<shard::Comparison> take_compared(std::string_view& rest) {
  const std::uint64_t count = io::take_number(rest);
  if (count > rest.size()) io::fail_packed();
  std::vector<shard::Comparison> compared(count);
  for (shard::Comparison& one : compared) {
    one.field = io::take_text(rest);
    one.constant = io::take_text(rest);
    one.text = io::take_number(rest) != 0;
    one.fits = io::take_number(rest);
    one.differs = io::take_number(rest);
  }
  return compared;
}

void put_tables(std::string& out, const LineFacts& facts) {
  io::put_number(out, facts.numbers.fields().size());
  for (const auto& [hash, field] : facts.numbers.fields()) {
    io::put_ordered(out, hash, kFieldBytes);
    io::put_text(out, field.name);
    io::put_number(out, field.samples);
  }
  io::put_number(out, facts.encoders.names().size());
  for (const auto& [hash, name] : facts.encoders.names()) {
    io::put_ordered(out, hash, kFieldBytes);
    io::put_text(out, name);
  }
  io::put_number(out, facts.taken_out.size());
  for (const auto& [line, samples] : facts.taken_out) {
    io::put_number(out, line);
    io::put_number(out, samples);
  }
}

void take_tables(std::string_view& rest, LineFacts& facts) {
  for (std::uint64_t left = io::take_number(rest); left > 0; --left) {
    const std::uint64_t hash = io::take_ordered(rest, kFieldBytes);
    const std::string_view name = io::take_text(rest);
    facts.numbers.add(hash, name, io::take_number(rest));
  }
  for (std::uint64_t left = io::take_number(rest); left > 0; --left) {
    const std::uint64_t hash = io::take_ordered(rest, kFieldBytes);
    facts.encoders.add(hash, std::string(io::take_text(rest)));
  }
  for (std::uint64_t left = io::take_number(rest); left > 0; --left) {
    const std::uint64_t line = io::take_number(rest);
    facts.taken_out[line] = io::take_number(rest);
  }
}

std::string pack_line(const LineFacts& facts, const Shapes& shapes) {
  std::string out;
  io::put_number(out, facts.shard);
  put_input(out, facts.input);
  for (const auto* names : {&facts.fields, &facts.inside, &facts.vectors})
    put_names(out, *names);
  put_compared(out, facts.compared);
  put_tables(out, facts);
  io::put_number(out, facts.read);
  io::put_number(out, facts.filtered);
  io::put_text(out, dump_json(io::to_json(facts.errors)));
  io::put_number(out, shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i)
    put_shape(out, shapes[i]);
  return out;
}

LineFacts unpack_line(std::string_view rest, Shapes& shapes) {
  LineFacts facts;
  facts.shard = io::take_number(rest) != 0;
  facts.input = take_input(rest);
  for (auto* names : {&facts.fields, &facts.inside, &facts.vectors})
    *names = take_names(rest);
  facts.compared = take_compared(rest);
  take_tables(rest, facts);
  facts.read = io::take_number(rest);
  facts.filtered = io::take_number(rest);
  facts.errors = io::parse_faults(parse_json(io::take_text(rest), "a scan"));
  for (std::uint64_t left = io::take_number(rest); left > 0; --left)
    shapes.number(take_shape(rest));
  return facts;
}

}  // namespace

ScanFileWriter::ScanFileWriter(const std::string& path) : file_(path) {
  std::string head;
  io::put_text(head, kScanVersion);
  io::put_text(head, io::working_folder());
  std::string out;
  io::put_text(out, head);
  file_.add(out);
}

void ScanFileWriter::add(const Scanned& scanned) {
  const std::string facts = pack_line(scanned, scanned.items.shapes());
  std::string block;
  for (const std::uint64_t value : {scanned.line, std::uint64_t{facts.size()},
                                    scanned.left_out.size(), scanned.items.items().size()})
    io::put_ordered(block, value, kFieldBytes);
  file_.add(block);
  file_.add(facts);
  copy(scanned.left_out);
  copy(scanned.items.items());
}

void ScanFileWriter::copy(const io::ScratchFile& from) {
  io::ScratchReader reader(from, kScanBuffer);
  for (std::uint64_t left = from.size(); left > 0;) {
    const std::string_view piece =
        reader.bytes(static_cast<std::size_t>(std::min<std::uint64_t>(left, kScanBuffer)));
    file_.add(piece);
    left -= piece.size();
  }
}

/// The number of a line, and where its ranges end.
struct ScanFile::Block {
  std::uint64_t line = 0, facts = 0, left_out = 0, items = 0;
};

ScanFile::ScanFile(const std::string& path, bool copy)
    : file_(copy && io::is_remote(path) ? io::cached_copy(path) : io::File::open_regular(path)) {
  io::ScratchReader reader(file_, kScanBuffer);
  std::string_view head;
  if (!reader.text(head)) io::fail_packed();
  std::string packed_size;
  io::put_number(packed_size, head.size());
  begin_ = packed_size.size() + head.size();
  if (io::take_text(head) != kScanVersion)
    fail("'{}' is of another version of vfm; remove the folder with it, and scan this part again",
         path);
  folder_ = io::take_text(head);
  if (folder_ == io::working_folder()) folder_.clear();
}

ScanFile::Block ScanFile::block_at(std::uint64_t place) const {
  std::string bytes(kBlockBytes, '\0');
  file_.read(bytes.data(), bytes.size(), place);
  std::string_view rest = bytes;
  Block block;
  block.line = io::take_ordered(rest, kFieldBytes);
  std::uint64_t end = place + kBlockBytes;
  for (std::uint64_t* range : {&block.facts, &block.left_out, &block.items}) {
    const std::uint64_t size = io::take_ordered(rest, kFieldBytes);
    if (size > file_.size() - end) io::fail_packed();
    *range = end += size;
  }
  return block;
}

void ScanFile::for_each_line(
    const std::function<void(std::uint64_t line, std::uint64_t place)>& use) const {
  for (std::uint64_t place = begin_; place < file_.size();) {
    const Block block = block_at(place);
    use(block.line, place);
    place = block.items;
  }
}

void ScanFile::give(std::uint64_t place, const UseScanned& use) const {
  const Block block = block_at(place);
  const std::uint64_t begin = place + kBlockBytes;
  std::string packed(block.facts - begin, '\0');
  file_.read(packed.data(), packed.size(), begin);
  Shapes shapes;
  LineFacts facts = unpack_line(packed, shapes);
  facts.line = block.line;
  if (!folder_.empty())
    for (std::string& tar : facts.input.tars)
      tar = io::named_from(folder_, tar);
  use(facts, shapes, io::ScratchReader(file_, block.left_out, block.items, kScanBuffer),
      io::ScratchReader(file_, block.facts, block.left_out, kScanBuffer));
}

void ScanFiles::add(const std::string& path) {
  const std::size_t number = paths_.size();
  paths_.push_back(path);
  std::string record;
  ScanFile(path).for_each_line([&](std::uint64_t line, std::uint64_t place) {
    record.clear();
    io::put_ordered(record, line, kFieldBytes);
    io::put_number(record, number);
    io::put_number(record, place);
    lines_.add(record);
  });
}

void ScanFiles::for_each(const UseScanned& use) {
  io::Sorter::Stream stream = lines_.sorted();
  for (std::string_view record; stream.next(record);) {
    io::take_ordered(record, kFieldBytes);
    const ScanFile& file = open(static_cast<std::size_t>(io::take_number(record)));
    file.give(io::take_number(record), use);
  }
}

const ScanFile& ScanFiles::open(std::size_t number) {
  constexpr std::size_t kMostOpen = 256;
  if (const auto found = by_number_.find(number); found != by_number_.end()) {
    open_.splice(open_.begin(), open_, found->second);
    return open_.front().second;
  }
  open_.emplace_front(std::piecewise_construct, std::forward_as_tuple(number),
                      std::forward_as_tuple(paths_.at(number), paths_.size() <= kMostOpen));
  by_number_[number] = open_.begin();
  if (open_.size() > kMostOpen) {
    by_number_.erase(open_.back().first);
    open_.pop_back();
  }
  return open_.front().second;
}

}  // namespace vfm::dataset
