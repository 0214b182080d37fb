// SPDX-License-Identifier: Apache-2.0
#include "dataset/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "base/counted.h"
#include "base/json.h"
#include "base/units.h"
#include "dataset/sample_reader.h"
#include "dataset/shown_cards.h"
#include "report/html.h"

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

void histograms(report::Page& page, const Scan& scan, ShardPlan& plan) {
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
  PlannedItems items(scan, plan);
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

/// `listed`: in the dataset's folder.
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

/// What each rule of --balance leaves of the values with the most samples.
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

/// What --without took out, line by line. `listed`: in the dataset's folder.
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

/// Where no dataset is written: what it would have.
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

}  // namespace

void write_shard_report(const ShardOptions& options, Scan& scan, ShardPlan& plan,
                        const Json& summary, share::Slots& slots) {
  const bool is_written = !summary.is_null();
  report::Page page("Dataset", is_written ? options.output : "");
  if (is_written)
    written(page, scan, plan, summary);
  else
    only_planned(page, scan, plan);
  add_shown(page, *plan.shown, SampleReader(scan, options), slots);
  histograms(page, scan, plan);
  balance_tables(page, plan);
  taken_out(page, scan, is_written);
  duplicates(page, plan, is_written);
  page.write(options.report);
}

}  // namespace vfm::dataset
