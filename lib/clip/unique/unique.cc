// SPDX-License-Identifier: Apache-2.0
#include "clip/unique/unique.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rounding.h"
#include "clip/source.h"
#include "clip/unique/duplicate_groups.h"
#include "clip/unique/duplicate_index.h"
#include "clip/unique/signature_file.h"
#include "curate/copies/align_videos.h"
#include "io/error_log.h"
#include "io/folder.h"
#include "io/text_writer.h"
#include "shard/input_totals.h"
#include "share/ordered.h"

namespace vfm::clip {
namespace {

struct Entry {
  std::string record;                 // unchanged, as text
  std::optional<std::size_t> source;  // index in Sources::compared, if it is a source
};

struct Sources {
  std::vector<Entry> entries;
  std::vector<ComparedSource> compared;
  std::vector<SignatureFacts> facts;
  std::vector<std::size_t> with_signature;                  // videos, each content once
  std::unordered_map<std::string, std::size_t> first_with;  // hash -> index in compared
};

struct Prepared {
  ClipItem item;
  SignatureFacts facts;
  std::vector<io::Fault> faults;
  bool usable = false, has_signature = false;
};

std::size_t prepared_weight(const Prepared& prepared) {
  std::size_t bytes = held_bytes(prepared.faults);
  for (const ClipSource& source : prepared.item.sources)
    bytes += sizeof source + source.path.size() + held_bytes(source.record);
  return bytes;
}

Prepared prepare(ClipItem& item, const SignatureWork& work, Progress& progress) {
  Prepared prepared{std::move(item), {}, {}, false, false};
  const ClipItem& it = prepared.item;
  if (it.kind == ClipItem::Kind::bad) prepared.faults.emplace_back(it.input, it.message, it.cause);
  prepared.usable = it.kind != ClipItem::Kind::bad;
  if (it.kind != ClipItem::Kind::video) return prepared;
  const ClipSource& source = it.sources.at(0);
  try {
    prepared.facts = make_signature(source, work, progress);
    prepared.has_signature = true;
    if (prepared.facts.damaged > 0)
      prepared.faults.emplace_back(
          source.path,
          fmt::format("{} packets or frames are damaged or missing", prepared.facts.damaged),
          Cause::decode);
  } catch (const Error& error) {
    prepared.faults.emplace_back(source.path, error);
    prepared.usable = false;
  }
  return prepared;
}

void note(const Prepared& prepared, Sources& sources, io::ErrorLog& errors) {
  const ClipItem& item = prepared.item;
  if (!prepared.usable) return;
  const ClipSource& source = item.sources.at(0);
  Entry entry{dump_json(source.record), std::nullopt};
  if (item.kind == ClipItem::Kind::passed) {
    sources.entries.push_back(std::move(entry));
    return;
  }
  SignatureFacts facts = prepared.facts;
  const std::size_t place = sources.compared.size();
  if (item.kind == ClipItem::Kind::duplicate) {
    const auto first = sources.first_with.find(source.hash);
    if (first == sources.first_with.end()) {
      errors.add({item.input, fmt::format("{}, which could not be used", item.message)});
      return;
    }
    facts = sources.facts[first->second];
  } else {
    sources.first_with.emplace(source.hash, place);
    if (prepared.has_signature) sources.with_signature.push_back(place);
  }
  entry.source = place;
  sources.entries.push_back(std::move(entry));
  sources.compared.push_back({source.path, source.hash, facts.seconds,
                              static_cast<std::int64_t>(facts.width) * facts.height, source.bytes});
  sources.facts.push_back(facts);
}

/// Calls `work` in parallel for each source of `with_signature`, and `done` in order.
template <class Out>
void for_each_signature(
    const Sources& sources, const std::string& folder, share::Slots& slots,
    const std::function<Out(std::size_t source, const SignatureFile& file)>& work,
    const std::function<void(Out&)>& done) {
  std::size_t next = 0;
  share::for_each_ordered<std::size_t, Out>(
      slots,
      [&]() -> std::optional<std::size_t> {
        if (next == sources.with_signature.size()) return std::nullopt;
        return sources.with_signature[next++];
      },
      [&](std::size_t& source) {
        const SignatureFile file(signature_path(folder, sources.compared[source].hash));
        return work(source, file);
      },
      done, [](const Out& out) { return held_bytes(out); });
}

double seconds_of(double pictures) {
  return pictures / curate::kSignatureRate;
}

class Comparison {
 public:
  Comparison(const Sources& sources, const DuplicateIndex& index, const std::string& folder)
      : sources_(sources), index_(index), folder_(folder) {}

  std::vector<CommonStretch> of(std::size_t source, const SignatureFile& file) const {
    std::vector<CommonStretch> found;
    const std::span<const curate::SignaturePicture> pictures = file.pictures();
    for (const LikelyPlace& place : index_.find(static_cast<std::uint32_t>(source), pictures)) {
      const SignatureFile other(signature_path(folder_, sources_.compared[place.source].hash));
      for (const curate::VideoMatch& match :
           curate::align_videos(other.pictures(), pictures, place.start, {})) {
        const CommonStretch stretch = stretch_of(place.source, source, match);
        found.push_back(stretch.first < stretch.second ? stretch : exchanged(stretch));
      }
    }
    return found;
  }

 private:
  CommonStretch stretch_of(std::size_t first, std::size_t second,
                           const curate::VideoMatch& match) const {
    const auto begin = static_cast<double>(match.begin), end = static_cast<double>(match.end);
    const auto within = [&](double pictures, std::size_t source) {
      return std::clamp(seconds_of(pictures), 0.0, sources_.compared[source].seconds);
    };
    return {first,
            second,
            within(begin + match.offset, first),
            within(end + match.offset, first),
            within(begin, second),
            within(end, second),
            match.score,
            match.crop};
  }

  const Sources& sources_;
  const DuplicateIndex& index_;
  const std::string& folder_;
};

std::vector<CommonStretch> compare(const Sources& sources, const std::string& folder,
                                   share::Slots& slots, Progress& progress) {
  DuplicateIndex index;
  for_each_signature<std::vector<IndexedMoment>>(
      sources, folder, slots,
      [](std::size_t source, const SignatureFile& file) {
        return indexed_moments(static_cast<std::uint32_t>(source), file.pictures());
      },
      [&](std::vector<IndexedMoment>& moments) { index.add(moments); });
  index.finish();
  const Comparison comparison(sources, index, folder);
  std::vector<CommonStretch> stretches;
  progress.start("comparisons", sources.with_signature.size());
  for_each_signature<std::vector<CommonStretch>>(
      sources, folder, slots,
      [&](std::size_t source, const SignatureFile& file) { return comparison.of(source, file); },
      [&](std::vector<CommonStretch>& found) {
        stretches.insert(stretches.end(), found.begin(), found.end());
        progress.add();
      });
  return without_repeats(std::move(stretches));
}

/// A file of JSON lines. finish() removes the file if it has no lines.
class ListFile {
 public:
  explicit ListFile(std::string path) : path_(std::move(path)), file_(path_) {}
  void add(const Json& line) {
    file_.add(dump_json(line) + "\n");
    any_ = true;
  }
  void finish() {
    if (any_)
      file_.update();
    else
      io::remove_file(path_);
  }

 private:
  std::string path_;
  io::TextWriter file_;
  bool any_ = false;
};

Json stretch_json(const Sources& sources, const CommonStretch& s) {
  const auto rounded = [](double value) { return six_digits(value); };
  return {
      {"kind", "near"},
      {"first", sources.compared[s.first].path},
      {"second", sources.compared[s.second].path},
      {"first_begin", rounded(s.first_begin)},
      {"first_end", rounded(s.first_end)},
      {"second_begin", rounded(s.second_begin)},
      {"second_end", rounded(s.second_end)},
      {"score", rounded(s.score)},
      {"crop",
       {rounded(s.crop.left), rounded(s.crop.top), rounded(s.crop.right), rounded(s.crop.bottom)}}};
}

void write_pairs(const std::string& folder, const Sources& sources,
                 const std::vector<CommonStretch>& stretches) {
  ListFile list(io::join_path(folder, "duplicates.jsonl"));
  for (std::size_t i = 0; i < sources.compared.size(); ++i) {
    const std::size_t first = sources.first_with.at(sources.compared[i].hash);
    if (first != i)
      list.add({{"kind", "exact"},
                {"first", sources.compared[first].path},
                {"second", sources.compared[i].path}});
  }
  for (const CommonStretch& stretch : stretches)
    list.add(stretch_json(sources, stretch));
  list.finish();
}

std::string reason_of(const Sources& sources, const SourceChoice& choice) {
  const std::string& keeper = sources.compared[*choice.keeper].path;
  if (choice.exact) return fmt::format("the same bytes as '{}'", keeper);
  return fmt::format("'{}' shows {:.0f} % of it", keeper, std::floor(100 * choice.covered));
}

void write_sources(const std::string& folder, const Sources& sources,
                   const std::vector<SourceChoice>& choices) {
  ListFile list(io::join_path(folder, "sources.jsonl"));
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const ComparedSource& source = sources.compared[i];
    const SourceChoice& choice = choices[i];
    const SignatureFacts& facts = sources.facts[i];
    const bool known = facts.width > 0;  // pictures are not decoded
    Json line = {{"path", source.path},
                 {"source_hash", source.hash},
                 {"bytes", source.bytes},
                 {"seconds", known ? Json(six_digits(source.seconds)) : Json()},
                 {"width", known ? Json(facts.width) : Json()},
                 {"height", known ? Json(facts.height) : Json()},
                 {"group", choice.group ? Json(*choice.group) : Json()},
                 {"stays", !choice.keeper}};
    if (choice.keeper) {
      line["duplicate_of"] = sources.compared[*choice.keeper].path;
      line["kind"] = choice.exact ? "exact" : "near";
      line["reason"] = reason_of(sources, choice);
    }
    list.add(line);
  }
  list.finish();
}

}  // namespace

long find_unique(const ClipOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest) {
  const std::string& folder = options.directory;
  io::make_directories(folder);
  ClipItems items(options.inputs, 0, folder);
  io::ErrorLog errors(io::join_path(folder, "errors.jsonl"), "vfm-clip");
  SignatureWork work{folder, {}, options.force};
  work.decode.stream = options.recipe.stream;
  work.decode.deinterlace = options.recipe.deinterlace;
  work.decode.use = media::FrameUse::glance;
  work.decode.hardware = options.hardware;
  work.decode.threads = decoder_threads(options.inputs, slots.threads());
  Sources sources;
  progress.start("videos", shard::count_videos(options.inputs));
  share::for_each_ordered<ClipItem, Prepared>(
      slots, [&] { return items.next(); },
      [&](ClipItem& item) { return prepare(item, work, progress); },
      [&](Prepared& prepared) {
        for (const io::Fault& fault : prepared.faults)
          errors.add(fault);
        note(prepared, sources, errors);
        progress.add();
      },
      prepared_weight);
  errors.finish();
  items.streams().check_whole("the signatures of the videos that came are kept");
  if (sources.entries.empty() && errors.count() == 0) fail("no videos in the input");
  if (sources.entries.empty()) fail("nothing in the input could be used");

  const std::vector<CommonStretch> stretches = compare(sources, folder, slots, progress);
  const std::vector<SourceChoice> choices =
      choose_sources(sources.compared, stretches, options.unique_share);
  write_pairs(folder, sources, stretches);
  write_sources(folder, sources, choices);
  for (const Entry& entry : sources.entries) {
    if (entry.source && choices[*entry.source].keeper)
      log_info("'{}' is left out: {}", sources.compared[*entry.source].path,
               reason_of(sources, choices[*entry.source]));
    else
      manifest.write(parse_json(entry.record, "a record"));
  }
  return static_cast<long>(errors.count());
}

}  // namespace vfm::clip
