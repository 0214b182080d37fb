// SPDX-License-Identifier: Apache-2.0
#include "dataset/scan.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/stop.h"
#include "curate/binning.h"
#include "dataset/balance.h"
#include "dataset/bins.h"
#include "dataset/scan_column.h"
#include "io/file.h"
#include "io/folder.h"
#include "shard/columns.h"
#include "shard/image_header.h"
#include "shard/input_totals.h"
#include "shard/listed_clips.h"
#include "shard/reader.h"
#include "shard/where.h"
#include "shard/writer.h"
#include "share/ordered.h"

namespace vfm::dataset {
namespace {

double number(const Json& meta, const char* name) {
  const auto found = meta.find(name);
  return found != meta.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text(const Json& meta, const char* name) {
  const auto found = meta.find(name);
  return found != meta.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void measure(Item& item, const JoinedSample& sample) {
  const Json& meta = sample.meta;
  item.width = number(meta, "width");
  item.height = number(meta, "height");
  item.seconds = meta.contains("seconds") ? number(meta, "seconds") : number(meta, "duration");
  item.fps = number(meta, "fps");
  item.frames = number(meta, "frames");
  if (media_kind(item.shape.media) != MediaKind::image) return;
  if (const auto header = shard::read_image_header(sample.find(item.shape.media))) {
    item.shape.image_format = header->format;
    item.shape.image_mode = header->mode;
    if (item.width <= 0 || item.height <= 0)
      item.width = header->width, item.height = header->height;
  }
}

void hash(Item& item, const JoinedSample& sample, const std::string& json) {
  const std::string_view media = sample.find(item.shape.media);
  if (media.data()) item.content = need_string(sample.meta, "media_xxh3", sample.key);
  Hasher all;
  all.update(json).update(item.content);
  for (const shard::MemberView& member : sample.members) {
    all.update(fmt::format("\n{} {}\n", member.extension, member.data.size()));
    if (member.extension != item.shape.media) all.update(member.data);
  }
  item.identity = all.hex128();
  if (item.content.empty()) item.content = item.identity;
}

Item make_item(const JoinedSample& sample, const ShardOptions& options, VectorNames& encoders,
               NumberNames& numbers) {
  Item item;
  item.key = sample.key;
  item.shape.media = sample.media;
  measure(item, sample);
  item.shape.bin = bin_of(item, options.edges);
  for (const shard::MemberView& member : sample.members)
    if (member.extension != item.shape.media)
      item.shape.extras.append(" ").append(member.extension);
  item.media_bytes = sample.find(item.shape.media).size();
  const shard::SampleView view{sample.key, sample.members};
  shard::check_sample(view);
  item.tar_bytes = shard::sample_bytes(view);
  const std::string json = dump_json(sample.meta);
  item.json_bytes = json.size();
  hash(item, sample, json);
  item.source = text(sample.meta, "source_hash");
  item.path = text(sample.meta, "source");
  if (item.source.empty()) item.source = std::exchange(item.path, {});
  if (item.source.empty()) item.source = item.key;
  // A damaged vector is an error of its sample, even if no option uses the vector.
  SampleVector vector = sample_vector(sample, options.compared_member());
  put_balance_notes(item.notes, sample, options.balance.rules, encoders);
  if (!options.report.empty()) put_number_notes(item.notes, sample, vector, numbers);
  if (!options.keep_duplicates && options.duplicate_threshold) {
    encoders.add(vector);
    item.encoder = vector.encoder;
    item.embedding = std::move(vector.values);
  }
  return item;
}

class ShardScanner {
 public:
  ShardScanner(const LineScan& how, const ScanLine& line, TarIndex index)
      : options_(how.options),
        without_(how.without),
        duplicates_(line.record.json),
        scanned_(options_.output) {
    if (!options_.where.empty()) where_.emplace(options_.where);
    scanned_.shard = true;
    scanned_.input.name = line.record.path();
    scanned_.input.line = line.number;
    for (const std::string& tar : io::column_tars(line.record)) {
      columns_.emplace_back(tar, unpacked_path(how.unpacked, line.number, columns_.size()),
                            options_.limits, index);
      scanned_.input.tars.push_back(tar);
      scanned_.input.packed.push_back(columns_.back().reader().path() != tar);
    }
  }

  /// Returns nothing if the index beside one of the tars is wrong.
  std::optional<Scanned> run() {
    for (std::int64_t row = 0; row < columns_.front().reader().samples(); ++row) {
      check_stop();
      ++scanned_.read;
      try {
        scan_sample(row);
      } catch (const Error& error) {
        scanned_.errors.emplace_back(scanned_.input.name, error, Cause::format);
      }
      if (std::any_of(columns_.begin(), columns_.end(),
                      [](const ScanColumn& column) { return column.index_is_wrong(); }))
        return std::nullopt;
    }
    for (const ScanColumn& column : columns_)
      for (const io::Fault& fault : column.faults())
        scanned_.errors.emplace_back(scanned_.input.name, fault.message, fault.cause);
    if (where_) scanned_.compared = where_->comparisons();
    return std::move(scanned_);
  }

 private:
  void scan_sample(std::int64_t row) {
    std::vector<const shard::SampleView*> parts = {&columns_.front().at(row)};
    const std::string key = shard::column_key(std::string(parts.front()->key));
    for (std::size_t c = 1; c < columns_.size(); ++c) {
      parts.push_back(columns_[c].find(key));
      if (!parts.back()) fail("'{}' has no sample '{}'", scanned_.input.tars[c], key);
    }
    JoinedSample sample = join_sample(parts);
    if (duplicates_.has(sample.meta)) return;
    shard::say_dotted_media(scanned_.input.name, parts.front()->key, sample.media);
    if (options_.rekey) rekey(sample);
    for (const auto& field : sample.meta->items()) {
      scanned_.fields.insert(field.key());
      if (!field.value().is_object()) continue;
      for (const auto& member : field.value().items())
        scanned_.inside.insert(field.key() + "." + member.key());
    }
    for (const shard::MemberView& member : sample.members)
      if (member.extension.ends_with(".npy")) scanned_.vectors.emplace(member.extension);
    if (take_out(sample)) return;
    if (where_ && !where_->keep(sample.meta)) {
      ++scanned_.filtered;
      return;
    }
    Item item = make_item(sample, options_, scanned_.encoders, scanned_.numbers);
    for (const ScanColumn& column : columns_)
      item.columns.push_back(column.place());
    scanned_.items.add(item);
  }

  bool take_out(const JoinedSample& sample) {
    if (without_.empty()) return false;
    const auto named = without_.find(sample.meta);
    if (!named) return false;
    ++scanned_.taken_out[named->line];
    const LeftOut out{.key = sample.key,
                      .reason = LeftOutReason::without,
                      .by = named->source ? "source" : "key",
                      .value = without_.lines()[named->line]};
    scanned_.left_out.append_text(out.pack());
    return true;
  }

  const ShardOptions& options_;
  const WithoutList& without_;
  shard::DuplicateHashes duplicates_;
  std::optional<shard::Where> where_;
  std::deque<ScanColumn> columns_;
  Scanned scanned_;
};

void remove_unpacked(const LineScan& how, std::uint64_t line, const InputShard& input) {
  std::error_code ignored;
  for (std::size_t c = 0; c < input.tars.size(); ++c)
    if (input.packed[c]) std::filesystem::remove(unpacked_path(how.unpacked, line, c), ignored);
}

Scanned scan_line(const LineScan& how, ScanLine& line) {
  Scanned scanned(how.options.output);
  const std::string name = line.error.empty() && line.record.json->contains("path")
                               ? line.record.path()
                               : line.record.where;
  try {
    if (!line.error.empty()) throw Error(line.error, line.cause);
    if (line.record.kind != "shard")
      fail("{} is a '{}', not a shard", line.record.where, line.record.kind);
    shard::complete_shard(line.record);
    shard::check_shard_bytes(line.record);
    auto read = ShardScanner(how, line, TarIndex::beside_it).run();
    if (!read) read = ShardScanner(how, line, TarIndex::made).run();
    scanned = *std::move(read);
    if (!how.keeps_unpacked) remove_unpacked(how, line.number, scanned.input);
  } catch (const Error& error) {
    scanned.errors.emplace_back(name, error);
  }
  scanned.line = line.number;
  return scanned;
}

std::uint64_t place_of_error(std::uint64_t line, std::uint64_t within) {
  return line << 33 | within;
}

}  // namespace

std::string unpack_folder(const std::string& output) {
  return io::join_path(io::scratch_folder_of(output), ".unpacked");
}

UnpackPlace::~UnpackPlace() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Gatherer::add(LineFacts& facts, const Shapes& shapes, io::ScratchReader items,
                   io::ScratchReader left_out) {
  for (const io::Fault& fault : facts.errors)
    errors_.add(fault, place_of_error(facts.line, 0));
  if (!facts.shard) return;
  const auto number = static_cast<std::uint32_t>(scan_.shards.size());
  scan_.shards.push_back(std::move(facts.input));
  scan_.fields.merge(facts.fields);
  scan_.inside.merge(facts.inside);
  scan_.vectors.merge(facts.vectors);
  add_compared(facts.compared);
  scan_.numbers.merge(facts.numbers);
  scan_.encoders.merge(facts.encoders);
  for (std::string_view packed; left_out.text(packed);)
    scan_.left_out.add_packed(packed);
  for (const auto& [line, samples] : facts.taken_out)
    scan_.taken_out[line] += samples;
  scan_.read += facts.read;
  scan_.filtered += facts.filtered;
  progress_.add(facts.read);
  scan_.items.take(shapes, std::move(items), number);
}

/// A repeated key is known only after all shards are read. Its error follows the other errors of
/// its shard in errors.jsonl.
void Gatherer::finish() {
  scan_.items.settle_keys([&](std::uint32_t number, const Item& item, const Item& first) {
    // The JSON of equal clips may differ, for example if their source has two names.
    if (item.content == first.content) {
      scan_.repeated.push_back(number);
      return;
    }
    const InputShard& shard = scan_.shards[item.shard];
    errors_.add({shard.tars.front(),
                 fmt::format("key '{}' comes twice with different contents, first in '{}'; keep "
                             "one, or give new keys with --rekey",
                             item.key, scan_.shards[first.shard].name),
                 Cause::duplicate},
                place_of_error(shard.line, std::uint64_t{1} << 32 | number));
  });
}

void Gatherer::add_compared(const std::vector<shard::Comparison>& some) {
  if (scan_.compared.empty()) scan_.compared.resize(some.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    shard::Comparison all = some[i];
    all.fits += scan_.compared[i].fits;
    all.differs += scan_.compared[i].differs;
    scan_.compared[i] = std::move(all);
  }
}

void scan_lines(const LineScan& how, share::Slots& slots,
                const std::function<std::optional<ScanLine>()>& next,
                const std::function<void(Scanned& scanned)>& done) {
  if (!how.options.where.empty()) shard::Where{how.options.where};  // before anything is read
  share::for_each_ordered<ScanLine, Scanned>(
      slots, next, [&](ScanLine& line) { return scan_line(how, line); }, done);
}

Scan scan_shards(const ShardOptions& options, share::Slots& slots, Progress& progress,
                 io::ErrorLog& errors) {
  Scan scan(options);
  Gatherer gatherer(scan, progress, errors);
  ScanLines lines(options.inputs);
  progress.start("samples", shard::count_samples(options.inputs));
  scan_lines(
      {options, scan.without, unpack_folder(options.output)}, slots, [&] { return lines.next(); },
      [&](Scanned& scanned) {
        gatherer.add(scanned, scanned.items.shapes(), io::ScratchReader(scanned.items.items()),
                     io::ScratchReader(scanned.left_out));
      });
  gatherer.finish();
  scan.streams = lines.streams();
  return scan;
}

}  // namespace vfm::dataset
