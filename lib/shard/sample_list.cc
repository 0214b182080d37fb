// SPDX-License-Identifier: Apache-2.0
#include "shard/sample_list.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "io/file.h"
#include "io/packed.h"

namespace vfm::shard {
namespace {

// A member has the number of its extension, and a new one is spelled behind its number.
constexpr std::string_view kListVersion = "vfm samples 1";
constexpr std::size_t kHashDigits = 32;

/// The samples of one shard.
void take_samples(std::string_view rest, std::uint64_t count, std::vector<std::string>& extensions,
                  const std::function<void(const IndexedSample&)>& use) {
  IndexedSample sample;
  for (; count > 0; --count) {
    sample.key = io::take_text(rest);
    sample.size = io::take_number(rest);
    const std::uint64_t members = io::take_number(rest);
    if (members > rest.size()) io::fail_packed();
    sample.members.resize(members);
    for (IndexedMember& member : sample.members) {
      const std::uint64_t number = io::take_number(rest);
      if (number > extensions.size()) io::fail_packed();
      if (number == extensions.size()) extensions.emplace_back(io::take_text(rest));
      member.extension = extensions[number];
      member.size = io::take_number(rest);
    }
    use(sample);
  }
  if (!rest.empty()) io::fail_packed();
}

}  // namespace

std::string sample_list_path(const std::string& directory) {
  return io::join_path(directory, "samples.bin");
}

SampleListWriter::SampleListWriter(const std::string& path) : file_(path) {
  std::string head;
  io::put_text(head, kListVersion);
  put(head);
}

void SampleListWriter::put(const std::string& bytes) {
  hasher_.update(bytes);
  file_.add(bytes);
}

void SampleListWriter::add(const IndexedSample& sample) {
  io::put_text(samples_, sample.key);
  io::put_number(samples_, sample.size);
  io::put_number(samples_, sample.members.size());
  for (const IndexedMember& member : sample.members) {
    const auto [at, fresh] = extensions_.try_emplace(member.extension, extensions_.size());
    io::put_number(samples_, at->second);
    if (fresh) io::put_text(samples_, member.extension);
    io::put_number(samples_, member.size);
  }
}

void SampleListWriter::add(const DatasetShard& shard) {
  std::string out;
  for (const std::string* text : {&shard.path, &shard.split, &shard.xxh3})
    io::put_text(out, *text);
  io::put_number(out, static_cast<std::uint64_t>(shard.samples));
  io::put_text(out, samples_);
  put(out);
  samples_.clear();
  extensions_.clear();
}

void SampleListWriter::finish() {
  file_.add(hasher_.hex128());
  file_.commit();
}

void read_sample_list(const std::string& path,
                      const std::function<bool(const DatasetShard&)>& shard,
                      const std::function<void(const IndexedSample&)>& sample) {
  const io::MappedFile file(path);
  std::string_view rest = file.text();
  const auto check = [&](bool good) {
    if (!good) fail("'{}' is damaged; give the command of vfm-shard that made it again", path);
  };
  check(rest.size() > kHashDigits);
  const std::string_view hash = rest.substr(rest.size() - kHashDigits);
  rest.remove_suffix(kHashDigits);
  check(hash_hex(rest) == hash);
  try {
    if (io::take_text(rest) != kListVersion) fail("it is of another version of vfm");
    while (!rest.empty()) {
      DatasetShard one;
      for (std::string* text : {&one.path, &one.split, &one.xxh3})
        *text = io::take_text(rest);
      one.samples = static_cast<std::int64_t>(io::take_number(rest));
      const std::string_view samples = io::take_text(rest);
      std::vector<std::string> extensions;
      if (shard(one))
        take_samples(samples, static_cast<std::uint64_t>(one.samples), extensions, sample);
    }
  } catch (const Error& error) {
    fail("cannot read '{}': {}", path, error.what());
  }
}

}  // namespace vfm::shard
