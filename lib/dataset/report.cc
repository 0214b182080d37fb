// SPDX-License-Identifier: Apache-2.0
#include "dataset/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/html.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kShownDuplicates = 200;

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

void histograms(report::Page& page, const Scan& scan, const ShardPlan& plan) {
  std::vector<double> seconds, sides, bytes, aspects;
  for (const PlannedShard& shard : plan.shards)
    for (const std::uint32_t i : shard.items) {
      const Item& item = scan.items[i];
      if (item.seconds > 0) seconds.push_back(item.seconds);
      if (item.width > 0 && item.height > 0) {
        sides.push_back(std::min(item.width, item.height));
        aspects.push_back(item.width / item.height);
      }
      bytes.push_back(static_cast<double>(item.media_bytes) / 1e6);
    }
  page.heading("Samples");
  const auto draw = [&](const std::vector<double>& values, const char* axis, const char* caption) {
    if (!values.empty()) page.svg(report::histogram(values, 40, axis), caption);
  };
  draw(seconds, "seconds", "Duration of the videos");
  draw(sides, "pixels", "Shorter side");
  draw(aspects, "width / height", "Aspect ratio");
  draw(bytes, "MB", "Size of the video or image");
}

void duplicates(report::Page& page, const ShardPlan& plan) {
  if (plan.duplicates.empty()) return;
  page.heading("Duplicates");
  std::vector<double> cosines;
  std::vector<std::vector<std::string>> rows;
  for (const Duplicate& d : plan.duplicates) {
    if (d.kind == "near") cosines.push_back(d.cosine);
    if (rows.size() < kShownDuplicates)
      rows.push_back({d.key, d.keeper, d.kind, fmt::format("{:.4f}", d.cosine), d.reason});
  }
  if (!cosines.empty())
    page.svg(report::histogram(cosines, 40, "cosine"),
             "Cosine of near duplicates to what was kept");
  if (plan.duplicates.size() > kShownDuplicates)
    page.paragraph(fmt::format("The first {} of {}; all are in duplicates.jsonl.", kShownDuplicates,
                               plan.duplicates.size()));
  page.table({"dropped", "kept", "kind", "cosine", "why the kept one"}, rows);
}

}  // namespace

void write_shard_report(const std::string& path, const Scan& scan, const ShardPlan& plan,
                        const Json& summary) {
  report::Page page("vfm-shard");
  page.paragraph(
      fmt::format("{} samples in {} shards, {}, {} of video. Read: {}; filtered out: {}; "
                  "duplicates dropped: {}.",
                  summary["samples"].get<std::uint64_t>(), summary["shards"].get<std::uint64_t>(),
                  format_bytes(summary["bytes"].get<double>()),
                  format_seconds(summary["seconds"].get<double>()), scan.read, scan.filtered,
                  plan.duplicates.size()));
  table(page, "Splits", summary["splits"]);
  table(page, "Bins", summary["bins"]);
  histograms(page, scan, plan);
  duplicates(page, plan);
  page.write(path);
}

}  // namespace vfm::dataset
