// SPDX-License-Identifier: Apache-2.0
#include "part_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <map>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/units.h"
#include "parts/part_marker.h"
#include "report/html.h"

namespace {

using vfm::parts::PartsStatus;
using vfm::parts::PartState;
using vfm::report::escape_html;
using vfm::report::Page;
using Kind = PartState::Kind;
using Rows = std::vector<std::vector<std::string>>;

struct KindLook {
  Kind kind;
  const char* name;  // of the state, and of its CSS class
};
constexpr std::array<KindLook, 4> kKinds{{{Kind::done, "done"},
                                          {Kind::working, "working"},
                                          {Kind::failed, "failed"},
                                          {Kind::missing, "missing"}}};

constexpr const char* kPartStyle = R"css(
svg .done { fill: #009e73; } svg .working { fill: #0090d0; } svg .failed { fill: #d55e00; }
svg .missing { fill: var(--line); }
)css";

constexpr std::size_t kMostRows = 200, kMostSquares = 1000;

/// The numbers of parts by state, in the order of kKinds.
using Counts = std::array<std::size_t, kKinds.size()>;

Counts count_kinds(const PartState* begin, const PartState* end) {
  Counts counts{};
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
    counts[kind] = static_cast<std::size_t>(std::count_if(
        begin, end, [&](const PartState& part) { return part.kind == kKinds[kind].kind; }));
  return counts;
}

/// What the pointer shows at a square.
std::string square_text(const PartState* begin, const PartState* end, const Counts& counts) {
  if (end - begin == 1) {
    for (const KindLook& look : kKinds)
      if (look.kind == begin->kind)
        return fmt::format("part {}: {}{}", begin->part, look.name,
                           begin->host.empty() ? "" : " on " + begin->host);
  }
  std::string text = fmt::format("parts {} to {}:", begin->part, (end - 1)->part);
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
    if (counts[kind] > 0) text += fmt::format(" {} {}", counts[kind], kKinds[kind].name);
  return text;
}

/// Returns SVG with a square for every `each` parts, in order, and below the meaning of colours.
std::string squares(const std::vector<PartState>& parts, std::size_t each) {
  constexpr double kWidth = 640, kMostSide = 24, kLegend = 24, kBox = 10, kColumn = 150;
  constexpr std::size_t kColumns = 50;
  const std::size_t count = (parts.size() + each - 1) / each;
  const double pitch = std::min(kMostSide, kWidth / static_cast<double>(std::min(count, kColumns)));
  const double side = pitch - 1.5;
  const auto columns = static_cast<std::size_t>(kWidth / pitch + 1e-6);
  const double height = pitch * static_cast<double>((count + columns - 1) / columns);
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {:.1f}\" role=\"img\" aria-label=\"parts by state\">\n",
                  kWidth, height + kLegend);
  for (std::size_t square = 0; square < count; ++square) {
    const PartState* const begin = parts.data() + square * each;
    const PartState* const end = parts.data() + std::min(parts.size(), (square + 1) * each);
    const Counts counts = count_kinds(begin, end);
    out += fmt::format("<g><title>{}</title>", escape_html(square_text(begin, end, counts)));
    double y = pitch * static_cast<double>(square / columns);
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      if (counts[kind] == 0) continue;
      const double part =
          side * static_cast<double>(counts[kind]) / static_cast<double>(end - begin);
      out += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
          kKinds[kind].name, pitch * static_cast<double>(square % columns), y, side, part);
      y += part;
    }
    out += "</g>\n";
  }
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
    out += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\">{}</text>\n",
        kKinds[kind].name, kColumn * static_cast<double>(kind), height + 10, kBox, kBox,
        kColumn * static_cast<double>(kind) + 16, height + 19, kKinds[kind].name);
  return out + "</svg>";
}

std::string in_time(double seconds_from_now) {
  const std::time_t then = std::time(nullptr) + std::llround(seconds_from_now);
  std::tm day{};
  ::gmtime_r(&then, &day);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%F %H:%M UTC", &day)};
}

void add_totals(Page& page, const PartsStatus& status) {
  Rows rows{{"parts", std::to_string(status.parts.size())}};
  for (const KindLook& look : kKinds)
    rows.push_back({look.name, std::to_string(status.count(look.kind))});
  std::uint64_t records = 0;
  for (const PartState& part : status.parts)
    records += part.records;
  rows.push_back({"records", std::to_string(records)});
  if (const double rate = status.rate(); rate > 0) {
    rows.push_back({"parts an hour", vfm::format_count(rate)});
    rows.push_back({"time left", vfm::format_seconds(status.seconds_left())});
    rows.push_back({"end expected", in_time(status.seconds_left())});
  }
  page.table({"", "now"}, rows);
}

void add_picture(Page& page, const PartsStatus& status) {
  const std::size_t each = (status.parts.size() + kMostSquares - 1) / kMostSquares;
  page.style(kPartStyle);
  page.heading("Parts");
  page.svg(squares(status.parts, each),
           each == 1 ? "A square is a part, in the order of their numbers."
                     : fmt::format("A square is {} parts, in the order of their numbers.", each));
}

/// The rate by time, and how long the parts took.
void add_rates(Page& page, const PartsStatus& status) {
  std::string first;
  for (const PartState& part : status.parts)
    if (part.kind == Kind::done && (first.empty() || part.begun < first)) first = part.begun;
  if (first.empty()) return;
  std::vector<double> ends, minutes;
  for (const PartState& part : status.parts) {
    if (part.kind != Kind::done) continue;
    ends.push_back(std::max(0.0, vfm::parts::seconds_between(first, part.ended)) / 3600);
    minutes.push_back(part.seconds / 60);
  }
  const double hours = *std::ranges::max_element(ends);
  // Few parts end in an interval if there are many intervals.
  const std::size_t intervals = std::clamp<std::size_t>(ends.size() / 4, 1, 60);
  const double length = hours / static_cast<double>(intervals);
  page.heading("Rate");
  if (length > 0) {
    vfm::report::Series rate{"parts an hour", {0}, std::vector<double>(intervals + 1)};
    for (const double end : ends)
      rate.y[1 + std::min(intervals - 1, static_cast<std::size_t>(end / length))] += 1 / length;
    for (std::size_t i = 0; i < intervals; ++i)
      rate.x.push_back(length * (static_cast<double>(i) + 0.5));
    page.svg(vfm::report::line_chart({rate}, "hours since the first part began", "parts an hour"),
             fmt::format("Parts that ended, in {} of {} each.",
                         vfm::counted(static_cast<std::int64_t>(intervals), "interval"),
                         vfm::format_seconds(3600 * length)));
  }
  page.svg(vfm::report::histogram(minutes, 30, "minutes a part"),
           "How long the parts took that are done.");
}

/// Adds the first rows, and says how many there are in all.
void add_table(Page& page, const std::string& title, const std::vector<std::string>& header,
               Rows rows, const std::string& what) {
  if (rows.empty()) return;
  const std::size_t all = rows.size();
  if (all > kMostRows) rows.resize(kMostRows);
  page.heading(title);
  page.table(header, rows);
  if (all > kMostRows)
    page.paragraph(fmt::format("The first {} of {} {} are shown.", kMostRows, all, what));
}

/// Adds what each host did, or the nodes of each kind.
void add_sums(Page& page, const std::map<std::string, vfm::parts::HostState>& sums,
              const std::string& title, const std::string& one, const std::string& what) {
  Rows rows;
  for (const auto& [name, sum] : sums)
    rows.push_back({name, std::to_string(sum.done), std::to_string(sum.working),
                    sum.done > 0 ? fmt::format("{:.1f}", sum.seconds / sum.done) : ""});
  add_table(page, title, {one, "done", "working", "seconds a part"}, std::move(rows), what);
}

void add_open_parts(Page& page, const PartsStatus& status) {
  Rows failed, working;
  for (const PartState& part : status.parts) {
    if (part.kind == Kind::failed)
      failed.push_back({std::to_string(part.part), part.host, part.ended, part.why});
    if (part.kind == Kind::working)
      working.push_back(
          {std::to_string(part.part), part.host, std::to_string(part.pid), part.begun});
  }
  add_table(page, "Failed", {"part", "host", "given up", "why"}, std::move(failed), "parts");
  add_table(page, "Working", {"part", "host", "process", "since"}, std::move(working), "parts");
}

void add_errors(Page& page, const PartsStatus& status) {
  std::map<std::string, std::uint64_t> errors, parts;
  for (const PartState& part : status.parts)
    for (const auto& [cause, count] : part.errors) {
      errors[cause] += count;
      ++parts[cause];
    }
  Rows rows;
  for (const auto& [cause, count] : errors)
    rows.push_back({cause, std::to_string(count), std::to_string(parts[cause])});
  add_table(page, "Errors of inputs", {"cause", "errors", "in parts"}, std::move(rows), "causes");
}

}  // namespace

void write_part_page(const PartsStatus& status, const std::string& directory,
                     const std::string& path) {
  Page page("Parts of " + status.tool, directory);
  add_totals(page, status);
  add_picture(page, status);
  add_rates(page, status);
  if (status.kinds.size() > 1)
    add_sums(page, status.kinds, "Kinds of nodes", "kind", "kinds of nodes");
  add_sums(page, status.hosts, "Hosts", "host", "hosts");
  add_open_parts(page, status);
  add_errors(page, status);
  page.write(path);
}
