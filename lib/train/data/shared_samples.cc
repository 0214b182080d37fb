// SPDX-License-Identifier: Apache-2.0
#include "train/data/shared_samples.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "dist/bytes.h"
#include "tensor/device.h"
#include "train/data/fetch_ahead.h"
#include "train/data/skipped_samples.h"

namespace vfm::train {
namespace {

/// The sample that `read` makes, or why it could not.
template <class Read>
ReadSample attempt_to_read(const Dataset& data, std::size_t i, const Read& read) {
  try {
    if (data.is_left_out(i)) fail("{}", kLeftOut);
    return {read(), {}};
  } catch (const GpuError&) {
    throw;
  } catch (const Error& error) {
    if (data.is_remote() && data::store_failed(error.cause())) throw;
    ReadSample unread;
    unread.sample.key = data.index().name(i);
    unread.failure = error.what();
    return unread;
  }
}

/// Calls act(numbers) with each array of a sample.
template <class Act>
void for_each_array(CleanSample& sample, const Act& act) {
  for (std::vector<float>* values : {&sample.x0, &sample.text, &sample.pixels})
    act(*values);
  act(sample.codes);
}

/// All of a sample but its values.
Json describe(ReadSample& read) {
  CleanSample& sample = read.sample;
  Json sizes = Json::array();
  for_each_array(sample, [&](const auto& values) { sizes.push_back(values.size()); });
  return {{"key", sample.key},          {"frames", sample.frames}, {"height", sample.height},
          {"width", sample.width},      {"fps", sample.fps},       {"sizes", std::move(sizes)},
          {"bytes", sample.read_bytes}, {"failure", read.failure}};
}

ReadSample described(const Json& text) {
  ReadSample read;
  CleanSample& sample = read.sample;
  sample.key = text["key"].get<std::string>();
  sample.frames = text["frames"].get<int>();
  sample.height = text["height"].get<int>();
  sample.width = text["width"].get<int>();
  sample.fps = text["fps"].get<double>();
  sample.read_bytes = text["bytes"].get<std::int64_t>();
  std::size_t next = 0;
  for_each_array(sample,
                 [&](auto& values) { values.resize(text["sizes"][next++].get<std::size_t>()); });
  read.failure = text["failure"].get<std::string>();
  return read;
}

/// What each rank says, on all of them. A collective.
std::vector<Json> tell_all(dist::Group& group, const Json& own) {
  std::vector<Json> all;
  for (const std::string& text : dist::all_gather_bytes(group, dump_json(own)))
    all.push_back(parse_json(text, "what another rank has read"));
  return all;
}

/// Messages under way, and what they carry.
class Messages {
 public:
  void add(dist::Transfer transfer) { transfers_.push_back(std::move(transfer)); }
  void wait() {
    for (dist::Transfer& transfer : transfers_)
      transfer.wait();
    transfers_.clear();
  }

 private:
  std::vector<dist::Transfer> transfers_;
};

Tensor lend_bytes(std::string& bytes) {
  return dist::lend(std::as_writable_bytes(std::span(bytes)));
}

/// The samples while they become whole, on one rank.
class Sharing {
 public:
  Sharing(const Parallel& parallel, const Dataset& data, OwnReading own)
      : parallel_(parallel),
        group_(parallel.sharers()),
        data_(data),
        own_(std::move(own)),
        readers_(own_.samples.size()),
        samples_(own_.samples.size()) {
    for (std::size_t rank = 0; rank < own_.parts.size(); ++rank)
      for (const ReadingPart& part : own_.parts[rank])
        readers_[part.sample].push_back(static_cast<int>(rank));
  }

  SharedSamples share() {
    tell_what_was_read();
    gather_pieces();
    spread_values();
    SharedSamples all;
    all.own_bytes = own_bytes();
    all.samples = std::move(samples_);
    return all;
  }

 private:
  bool in_pieces(std::size_t sample) const { return readers_[sample].size() > 1; }
  const std::vector<ReadingPart>& own_parts() const {
    return own_.parts[static_cast<std::size_t>(group_.rank())];
  }

  /// Of samples with one reader all but the values; of the others the sizes of the pieces.
  void tell_what_was_read() {
    Json mine = Json::array();
    for (ReadSample& read : own_.whole)
      mine.push_back(describe(read));
    for (const SamplePiece& piece : own_.pieces)
      mine.push_back({{"bytes", piece.bytes.size()}, {"failure", piece.failure}});
    const std::vector<Json> told = tell_all(group_, mine);
    piece_bytes_.resize(samples_.size());
    for (std::size_t rank = 0; rank < told.size(); ++rank) {
      std::size_t next = 0;
      const bool here = static_cast<int>(rank) == group_.rank();
      for (const ReadingPart& part : own_.parts[rank])
        if (!in_pieces(part.sample)) {
          samples_[part.sample] = here ? std::move(own_.whole[next]) : described(told[rank][next]);
          ++next;
        }
      for (const ReadingPart& part : own_.parts[rank])
        if (in_pieces(part.sample)) {
          const Json& piece = told[rank][next++];
          piece_bytes_[part.sample].push_back(piece["bytes"].get<std::size_t>());
          std::string& failure = samples_[part.sample].failure;
          if (failure.empty()) failure = piece["failure"].get<std::string>();
        }
    }
  }

  /// Pieces go to the first reader of their sample, who makes it of them; then all but the values
  /// to all.
  void gather_pieces() {
    std::vector<std::string> bytes(samples_.size());  // of those that are put together here
    std::size_t next_piece = 0;
    Messages messages;
    bool any = false;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (!in_pieces(i)) continue;
      any = true;
      const auto own = std::ranges::find(readers_[i], group_.rank());
      SamplePiece* const mine = own != readers_[i].end() ? &own_.pieces[next_piece++] : nullptr;
      if (!samples_[i].failure.empty() || mine == nullptr) continue;
      if (own != readers_[i].begin()) {
        if (!mine->bytes.empty())
          messages.add(group_.send(readers_[i][0], lend_bytes(mine->bytes)));
        continue;
      }
      receive_pieces(i, mine->bytes, bytes[i], messages);
    }
    messages.wait();
    if (!any) return;
    Json mine = Json::array();
    for (std::size_t i = 0; i < samples_.size(); ++i)
      if (in_pieces(i) && readers_[i][0] == group_.rank()) {
        put_together(i, std::exchange(bytes[i], {}));
        mine.push_back(describe(samples_[i]));
      }
    const std::vector<Json> told = tell_all(group_, mine);
    std::vector<std::size_t> next(told.size());
    for (std::size_t i = 0; i < samples_.size(); ++i)
      if (in_pieces(i)) {
        const int first = readers_[i][0];
        const Json& one =
            told[static_cast<std::size_t>(first)][next[static_cast<std::size_t>(first)]++];
        if (first != group_.rank()) samples_[i] = described(one);
      }
  }

  void receive_pieces(std::size_t i, const std::string& first, std::string& all,
                      Messages& messages) {
    std::size_t size = 0;
    for (const std::size_t bytes : piece_bytes_[i])
      size += bytes;
    all.resize(size);
    std::ranges::copy(first, all.begin());
    std::size_t at = first.size();
    for (std::size_t k = 1; k < readers_[i].size(); ++k) {
      const std::size_t bytes = piece_bytes_[i][k];
      if (bytes > 0)
        messages.add(group_.receive(
            readers_[i][k], dist::lend(std::as_writable_bytes(std::span(all).subspan(at, bytes)))));
      at += bytes;
    }
  }

  void put_together(std::size_t i, const std::string& bytes) {
    ReadSample& read = samples_[i];
    const std::size_t sample = own_.samples[i];
    if (read.failure.empty()) try {
        read.sample = data_.put_together(sample, bytes);
        return;
      } catch (const Error& error) {
        read.failure = error.what();
      }
    read.sample = {};
    read.sample.key = data_.index().name(sample);
  }

  /// Texts go to all, latents, codes and pixels to those who need them: from another rank by way of
  /// one of these.
  void spread_values() {
    const std::vector<int> needing = parallel_.places_of_values();
    dist::Group* const of_values = parallel_.sharers_of_values();
    std::vector<int> root(samples_.size());  // who has values, of those who need them
    Messages messages;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const int from = readers_[i][0];
      const auto found = std::ranges::find(needing, from);
      const bool needs = found != needing.end();
      root[i] = static_cast<int>(needs ? static_cast<std::size_t>(found - needing.begin())
                                       : i % needing.size());
      const int by = needing[static_cast<std::size_t>(root[i])];
      for_each_array(samples_[i].sample, [&](auto& values) {
        if (needs || values.empty() || is_text(values, i)) return;
        if (group_.rank() == from) messages.add(group_.send(by, lend(values)));
        if (group_.rank() == by) messages.add(group_.receive(from, lend(values)));
      });
    }
    messages.wait();
    for (std::size_t i = 0; i < samples_.size(); ++i)
      for_each_array(samples_[i].sample, [&](auto& values) {
        if (values.empty()) return;
        if (is_text(values, i))
          messages.add(group_.broadcast(lend(values), readers_[i][0]));
        else if (of_values != nullptr)
          messages.add(of_values->broadcast(lend(values), root[i]));
        else
          std::ranges::fill(values, std::decay_t<decltype(values[0])>{});
      });
    messages.wait();
  }

  template <class Values>
  bool is_text(const Values& values, std::size_t i) const {
    return static_cast<const void*>(&values) == &samples_[i].sample.text;
  }
  template <class Values>
  static Tensor lend(Values& values) {
    return dist::lend(std::as_writable_bytes(std::span(values)));
  }

  std::int64_t own_bytes() const {
    std::int64_t sum = 0;
    for (const ReadingPart& part : own_parts()) {
      const std::size_t i = part.sample;
      if (!samples_[i].failure.empty()) continue;
      const auto place = static_cast<std::size_t>(std::ranges::find(readers_[i], group_.rank()) -
                                                  readers_[i].begin());
      sum += in_pieces(i) ? static_cast<std::int64_t>(piece_bytes_[i][place])
                          : samples_[i].sample.read_bytes;
    }
    return sum;
  }

  const Parallel& parallel_;
  dist::Group& group_;
  const Dataset& data_;
  OwnReading own_;
  std::vector<std::vector<int>> readers_;              // of each sample, by the order of its bytes
  std::vector<std::vector<std::size_t>> piece_bytes_;  // of each sample in pieces, by reader
  std::vector<ReadSample> samples_;
};

}  // namespace

ReadSample try_to_read(const Dataset& data, std::size_t i, std::optional<SeenAt> seen) {
  return attempt_to_read(data, i, [&] { return data.read(i, seen); });
}

ReadPart use_fetched(const Dataset& data, data::SampleBytes fetched, bool whole,
                     std::optional<SeenAt> seen) {
  if (data.is_left_out(fetched.sample)) fetched.failure = kLeftOut;
  if (!whole) return {{}, {std::move(fetched.bytes), std::move(fetched.failure)}, false};
  const auto read = [&] {
    if (!fetched.failure.empty()) fail("{}", fetched.failure);
    return data.read_fetched(fetched.sample, fetched.bytes, seen);
  };
  return {attempt_to_read(data, fetched.sample, read), {}, true};
}

void OwnReading::add(ReadPart part) {
  if (part.whole)
    whole.push_back(std::move(part.sample));
  else
    pieces.push_back(std::move(part.piece));
}

OwnReading share_out(const Dataset& data, std::vector<std::size_t> samples, int ranks) {
  OwnReading own;
  std::vector<std::int64_t> bytes;
  for (const std::size_t i : samples)
    bytes.push_back(data.about_bytes(i));
  own.parts = share_reading(bytes, ranks, data.has_pieces());
  own.samples = std::move(samples);
  return own;
}

ReadPart read_part(const Dataset& data, std::size_t i, const ReadingPart& part,
                   std::optional<SeenAt> seen) {
  if (part.is_whole(data.about_bytes(i))) return {try_to_read(data, i, seen), {}, true};
  ReadPart read;
  try {
    if (data.is_left_out(i)) fail("{}", kLeftOut);
    read.piece.bytes = data.read_piece(i, part.begin, part.end);
  } catch (const Error& error) {
    read.piece.failure = error.what();
  }
  return read;
}

OwnReading read_own_part(const Dataset& data, std::vector<std::size_t> samples,
                         std::optional<SeenAt> seen, int rank, int ranks) {
  OwnReading own = share_out(data, std::move(samples), ranks);
  const std::vector<ReadingPart>& parts = own.parts[static_cast<std::size_t>(rank)];
  if (!data.is_remote()) {
    for (const ReadingPart& part : parts)
      own.add(read_part(data, own.samples[part.sample], part, seen));
    return own;
  }
  std::vector<data::SampleBytes> wanted;
  for (const ReadingPart& part : parts)
    wanted.push_back({own.samples[part.sample], part.begin, part.end, {}, {}});
  for (data::SampleBytes& fetched : fetch_all(data, std::move(wanted))) {
    const bool whole = fetched.begin == 0 && fetched.end == data.about_bytes(fetched.sample);
    own.add(use_fetched(data, std::move(fetched), whole, seen));
  }
  return own;
}

SharedSamples share_samples(const Parallel& parallel, const Dataset& data, OwnReading own) {
  return Sharing(parallel, data, std::move(own)).share();
}

}  // namespace vfm::train
