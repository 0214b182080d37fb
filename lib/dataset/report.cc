// SPDX-License-Identifier: Apache-2.0
#include "dataset/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "dataset/clip_picture.h"
#include "dataset/sample_reader.h"
#include "dataset/shown.h"
#include "report/cards.h"
#include "report/html.h"
#include "share/ordered.h"
#include "share/slots.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kShownDuplicates = 200, kShownSets = 64;
constexpr int kHistogramBins = 40;

std::vector<std::string> row(const std::string& name, const Json& entry) {
  return {name, entry["samples"].dump(), entry["shards"].dump(),
          format_bytes(entry["bytes"].get<double>()),
          format_seconds(entry["seconds"].get<double>())};
}

void table(report::Page& page, const char* what, const Json& entries) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, entry] : entries.items())
    rows.push_back(row(name, entry));
  std::sort(rows.begin(), rows.end());
  page.heading(what);
  page.table({what, "samples", "shards", "bytes", "duration"}, rows);
}

void histograms(report::Page& page, const ShardPlan& plan) {
  struct Chart {
    const char *axis, *caption;
  };
  constexpr std::array<Chart, kQuantities> kCharts = {{{"seconds", "Duration of the videos"},
                                                       {"pixels", "Shorter side"},
                                                       {"width / height", "Aspect ratio"},
                                                       {"MB", "Size of the video or image"}}};
  std::vector<report::Histogram> charts;
  for (const report::AxisRange& range : plan.ranges)
    charts.emplace_back(range, kHistogramBins);
  PlannedItems items(plan);
  for (Item item; items.next(item);) {
    const auto values = quantities(item);
    for (std::size_t q = 0; q < kQuantities; ++q)
      if (values[q]) charts[q].add(*values[q]);
  }
  page.heading("All samples");
  for (std::size_t q = 0; q < kQuantities; ++q)
    if (plan.ranges[q].any) page.svg(charts[q].svg(kCharts[q].axis), kCharts[q].caption);
}

std::string sought(const ComparedSet& set) {
  if (!set.clusters) return "exact, among all pairs";
  return fmt::format(
      "among {} clusters ({}), so some may be missed; each sample was compared with {:.1f} "
      "clusters on average",
      set.clusters->counts.cells, set.method(),
      static_cast<double>(set.clusters->counts.looked_at) / static_cast<double>(set.samples));
}

/// `listed` is true if the folder has duplicates.jsonl.
void duplicates(report::Page& page, ShardPlan& plan, bool listed) {
  if (plan.duplicates.count() == 0) return;
  page.heading("Duplicates");
  std::vector<std::vector<std::string>> rows;
  plan.duplicates.for_each([&](const Duplicate& d) {
    rows.push_back({d.key, d.keeper, kDuplicateKinds[static_cast<std::size_t>(d.kind)],
                    fmt::format("{:.4f}", d.cosine), d.reason});
    return rows.size() < kShownDuplicates;
  });
  for (std::size_t i = 0; i < std::min(kShownSets, plan.compared.size()); ++i)
    page.paragraph(fmt::format("Near duplicates of {} {}: {}.", plan.compared[i].samples,
                               plan.compared[i].images ? "images" : "videos",
                               sought(plan.compared[i])));
  if (plan.compared.size() > kShownSets)
    page.paragraph(
        fmt::format("And of {} more encoders and kinds.", plan.compared.size() - kShownSets));
  const std::vector<double>& cosines = plan.duplicates.near_cosines();
  if (!cosines.empty())
    page.svg(report::histogram(cosines, kHistogramBins, "cosine"),
             "Cosine of near duplicates to what was kept");
  if (plan.duplicates.count() > kShownDuplicates)
    page.paragraph(fmt::format("The first {} of {}{}.", kShownDuplicates, plan.duplicates.count(),
                               listed ? "; all are in duplicates.jsonl" : ""));
  page.table({"dropped", "kept", "kind", "cosine", "why the kept one"}, rows);
}

void balance_tables(report::Page& page, const ShardPlan& plan) {
  if (!plan.balanced.empty()) page.heading("Balance");
  for (const Balanced& rule : plan.balanced) {
    page.paragraph(fmt::format("By {}, with strength {}: {} values, {} of {} samples too many.{}",
                               report::set_apart(rule.rule.name), rule.rule.strength, rule.values,
                               rule.left_out, rule.samples,
                               rule.values > rule.largest.size() ? " The largest:" : ""));
    std::vector<std::vector<std::string>> rows;
    for (const Balanced::Value& value : rule.largest) {
      const std::string name = value.value.empty() ? "(none)" : value.value;
      rows.push_back({rule.rule.clusters() && !value.value.empty() ? "cluster " + name : name,
                      std::to_string(value.samples), std::to_string(value.most),
                      std::to_string(value.stay), value.nearest});
    }
    std::vector<std::string> header = {"value", "samples", "fair share", "stay"};
    if (rule.rule.clusters())
      header.push_back("next to its centre");
    else
      for (auto& row : rows)
        row.pop_back();
    page.table(header, rows);
  }
}

/// `listed` is true if the folder has left_out.jsonl.
void taken_out(report::Page& page, const Scan& scan, bool listed) {
  constexpr std::size_t kShownLines = 200;
  const std::deque<std::string>& lines = scan.without.lines();
  if (lines.empty()) return;
  page.heading("Taken out");
  page.paragraph(fmt::format(
      "{} samples, by {} of {} lines of --without.{}", scan.left_out.count(LeftOutReason::without),
      scan.taken_out.size(), lines.size(),
      lines.size() > kShownLines ? fmt::format(" The first {} lines{}.", kShownLines,
                                               listed ? "; all samples are in left_out.jsonl" : "")
                                 : ""));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(lines.size(), kShownLines); ++i) {
    const auto found = scan.taken_out.find(i);
    rows.push_back({lines[i].substr(0, 1000),
                    found == scan.taken_out.end() ? "0" : std::to_string(found->second)});
  }
  page.table({"source or key", "samples"}, rows);
}

void written(report::Page& page, const Scan& scan, const ShardPlan& plan, const Json& summary) {
  const auto left_out = [&](LeftOutReason reason, const char* option) {
    const std::uint64_t count = scan.left_out.count(reason);
    return count > 0 ? fmt::format("; left out by {}: {}", option, count) : std::string();
  };
  page.paragraph(
      fmt::format("{} in {}, {}, {} of video. Read: {}; filtered out: {}; "
                  "duplicates dropped: {}{}{}.",
                  counted(summary["samples"].get<std::uint64_t>(), "sample"),
                  counted(summary["shards"].get<std::uint64_t>(), "shard"),
                  format_bytes(summary["bytes"].get<double>()),
                  format_seconds(summary["seconds"].get<double>()), scan.read, scan.filtered,
                  plan.duplicates.count(), left_out(LeftOutReason::without, "--without"),
                  left_out(LeftOutReason::balance, "--balance")));
  table(page, "Splits", summary["splits"]);
  table(page, "Bins", summary["bins"]);
}

void only_planned(report::Page& page, const Scan& scan, const ShardPlan& plan) {
  std::map<std::string, std::uint64_t> splits, bins;
  std::uint64_t samples = 0;
  double seconds = 0;
  for (const PlannedShard& shard : plan.shards) {
    splits[shard.split] += shard.samples;
    bins[shard.bin] += shard.samples;
    samples += shard.samples;
    seconds += shard.seconds;
  }
  page.paragraph(fmt::format(
      "{}, {} of video; no dataset was written. Read: {}; filtered out: {}; duplicates: {}.",
      counted(samples, "sample"), format_seconds(seconds), scan.read, scan.filtered,
      plan.duplicates.count()));
  const auto add_counts = [&](const char* what,
                              const std::map<std::string, std::uint64_t>& counts) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, count] : counts)
      rows.push_back({name, std::to_string(count)});
    page.heading(what);
    page.table({what, "samples"}, rows);
  };
  add_counts("Splits", splits);
  add_counts("Bins", bins);
}

constexpr std::size_t kLongestCaption = 600;  // in bytes

std::string number_text(double value) {
  return fmt::format("{:.4g}", value);
}

/// Cuts a caption to at most kLongestCaption bytes of whole characters.
std::string beginning(const std::string& text) {
  if (text.size() <= kLongestCaption) return text;
  std::size_t end = kLongestCaption;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end) + "…";
}

struct Seen {
  std::string picture, caption;
  Json meta;
};

Seen see_sample(const ShownItem& shown, const SampleReader& reader) {
  Seen seen;
  std::vector<shard::ReadBuffer> buffers;
  JoinedSample sample = reader.read(shown.item, buffers);
  if (media_kind(sample.media) != MediaKind::other) {
    try {
      seen.picture = clip_picture(sample.find(sample.media), shown.item.key + "." + sample.media);
    } catch (const Error& error) {
      log_info("no picture of {}: {}", shown.item.key, error.what());
    }
  }
  if (!shown.whole) return seen;
  if (const std::string_view text = sample.find("txt"); text.data())
    seen.caption = beginning(std::string(text.substr(0, 2 * kLongestCaption)));
  seen.meta = std::move(sample.meta);
  return seen;
}

class Cards {
 public:
  Cards(const Shown& shown, const SampleReader& reader, share::Slots& slots) : shown_(shown) {
    std::size_t next = 0;
    share::for_each_ordered<std::size_t, Seen>(
        slots,
        [&]() -> std::optional<std::size_t> {
          if (next == shown_.items.size()) return std::nullopt;
          return next++;
        },
        [&](std::size_t& item) { return see_sample(shown_.items[item], reader); },
        [&](Seen& seen) {
          numbers_.emplace_back();
          if (!seen.picture.empty()) {
            numbers_.back() = pictures_.size();
            pictures_.push_back(report::data_url("image/jpeg", seen.picture));
          }
          seen_.push_back({{}, std::move(seen.caption), std::move(seen.meta)});
        },
        [](const Seen& seen) {
          return seen.picture.size() + seen.caption.size() + held_bytes(seen.meta);
        });
  }

  void add_to(report::Page& page) const {
    page.style(report::picture_rules(pictures_));
    samples(page);
    ends(page);
    fields(page);
  }

 private:
  /// Draws the scores first. Numbers with only one value have no chart.
  void fields(report::Page& page) const {
    if (shown_.fields.empty()) return;
    page.heading("Numbers");
    std::string same;
    std::vector<std::pair<std::string, std::string>> scores, others;
    for (const NumberField& field : shown_.fields) {
      const std::string of = field.samples < shown_.samples
                                 ? " (" + counted(field.samples, "sample") + ")"
                                 : std::string();
      const std::string low = number_text(field.range.low), high = number_text(field.range.high);
      if (field.range.low < field.range.high)
        (field.score ? scores : others)
            .emplace_back(field.chart, fmt::format("{}: {} to {}{}", report::set_apart(field.name),
                                                   low, high, of));
      else
        same += fmt::format("{}{} {}{}", same.empty() ? "" : ", ", report::set_apart(field.name),
                            low, of);
    }
    scores.insert(scores.end(), others.begin(), others.end());
    page.charts(scores);
    if (!same.empty()) page.paragraph("Always the same: " + same + ".");
    if (shown_.more_fields > 0)
      page.paragraph(
          fmt::format("{} fields that fewer samples have are not drawn.", shown_.more_fields));
  }

  void ends(report::Page& page) const {
    std::size_t told = 0;
    for (const NumberField& field : shown_.fields) {
      if (!field.score) continue;
      if (told++ == 0) page.heading("Least and most");
      const std::string name = report::set_apart(field.name);
      page.markup(report::strips({{name + ", the least", thumbnails(field.lowest)},
                                  {name + ", the most", thumbnails(field.highest)}}));
    }
    if (shown_.scores > told)
      page.paragraph(fmt::format(
          "{} more scores are not shown: {} are at most. vfm-shard report --scores chooses.",
          shown_.scores - told, told));
  }

  void samples(report::Page& page) const {
    page.heading("Samples by chance");
    page.markup(report::cards(cards(shown_.drawn)));
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < shown_.items.size(); ++i)
      if (shown_.items[i].whole && std::count(shown_.drawn.begin(), shown_.drawn.end(), i) == 0)
        others.push_back(i);
    if (others.empty()) return;
    page.heading("Samples with the least and the most of something");
    page.markup(report::cards(cards(others)));
  }

  std::vector<report::Thumbnail> thumbnails(const std::vector<NumberField::End>& ends) const {
    std::vector<report::Thumbnail> list;
    for (const NumberField::End& end : ends)
      list.push_back({numbers_[end.item], key_of(end.item), number_text(end.value), end.item});
    return list;
  }

  const std::string& key_of(std::size_t item) const { return shown_.items[item].item.key; }

  std::vector<report::PictureTile> cards(const std::vector<std::size_t>& items) const {
    std::vector<report::PictureTile> list;
    for (const std::size_t i : items) {
      const ShownItem& shown = shown_.items[i];
      report::PictureTile card{.number = i,
                               .picture = numbers_[i],
                               .title = key_of(i),
                               .kind = kind(i),
                               .text = seen_[i].caption,
                               .facts = scores(i),
                               .near_title = "nearest by " + shown_.member + ", with the cosine",
                               .near = {}};
      for (const ShownItem::Near& near : shown.near)
        card.near.push_back(
            {numbers_[near.item], key_of(near.item), fmt::format("{:.3f}", near.cosine),
             shown_.items[near.item].whole ? std::optional(near.item) : std::nullopt});
      list.push_back(std::move(card));
    }
    return list;
  }

  std::string kind(std::size_t i) const {
    const Item& item = shown_.items[i].item;
    std::string text;
    if (item.pixels() > 0) text = fmt::format("{:.0f} × {:.0f}", item.width, item.height);
    if (item.seconds > 0)
      text += fmt::format("{}{} s", text.empty() ? "" : ", ", number_text(item.seconds));
    return text;
  }

  std::vector<std::pair<std::string, std::string>> scores(std::size_t i) const {
    std::vector<std::pair<std::string, std::string>> list;
    for (const NumberField& field : shown_.fields)
      if (const auto value = seen_[i].meta.find(field.name);
          field.score && value != seen_[i].meta.end() && value->is_number())
        list.emplace_back(field.name, number_text(value->get<double>()));
    return list;
  }

  const Shown& shown_;
  std::vector<std::optional<std::size_t>> numbers_;  // For each item the index of its picture.
  std::vector<std::string> pictures_;
  std::vector<Seen> seen_;
};

void add_shown(report::Page& page, const Shown& shown, const SampleReader& reader,
               share::Slots& slots) {
  Cards(shown, reader, slots).add_to(page);
}

}  // namespace

void write_shard_report(const ShardOptions& options, Scan& scan, ShardPlan& plan,
                        const Json& summary, share::Slots& slots) {
  const bool is_written = !summary.is_null();
  report::Page page("Dataset", is_written ? options.output : "");
  if (is_written)
    written(page, scan, plan, summary);
  else
    only_planned(page, scan, plan);
  const SampleReader reader(plan.inputs, plan.rekey, plan.limits, unpack_folder(options.output));
  add_shown(page, *plan.shown, reader, slots);
  histograms(page, plan);
  balance_tables(page, plan);
  taken_out(page, scan, is_written);
  duplicates(page, plan, is_written);
  page.write(options.report);
}

}  // namespace vfm::dataset
