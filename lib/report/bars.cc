// Stacked horizontal bars as inline SVG.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "report/html.h"

namespace vfm::report {
namespace {

// In SVG units: limit of the names, longest bar, sum, bar with the space below, bar.
constexpr double kNames = 420, kBars = 390, kSum = 80, kEach = 26, kBar = 18;
constexpr double kLetter = 6.6;  // a little more than the mean width

// Okabe and Ito's colours, then lighter shades.
constexpr std::array<const char*, 12> kPartColours = {"#0090d0", "#e69f00", "#009e73", "#d55e00",
                                                      "#cc79a7", "#8a7fe0", "#7fc8e8", "#f3d080",
                                                      "#80cfb9", "#eaaf80", "#e6bcd3", "#c5bff0"};

const char* colour_of(std::size_t part) {
  return kPartColours[part % kPartColours.size()];
}

}  // namespace

std::string stacked_bars(const Bars& bars, const std::string& unit) {
  std::vector<double> sums(bars.names.size(), 0.0);
  for (const Bars::Part& part : bars.parts)
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += part.values.at(i);
  const double most = sums.empty() ? 0 : *std::ranges::max_element(sums);
  std::size_t letters = 0;
  for (const std::string& name : bars.names)
    letters = std::max(letters, name.size());
  const double names = std::min(kNames, 8 + kLetter * static_cast<double>(letters));
  const double legend = 18.0 * static_cast<double>((bars.parts.size() + 3) / 4);
  const double height = legend + kEach * static_cast<double>(sums.size()) + 10;
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                std::max(700.0, names + kBars + kSum), height, escape_html(unit));
  for (std::size_t p = 0; p < bars.parts.size(); ++p)
    out += fmt::format(
        "<rect x=\"{0}\" y=\"{1}\" width=\"10\" height=\"10\" fill=\"{2}\"/>"
        "<text x=\"{3}\" y=\"{4}\">{5}</text>\n",
        10 + 170 * (p % 4), 4 + 18 * (p / 4), colour_of(p), 26 + 170 * (p % 4), 13 + 18 * (p / 4),
        escape_html(bars.parts[p].name));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double y = legend + kEach * static_cast<double>(i) + 6;
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", names - 8, y + 13,
                       escape_html(bars.names[i]));
    double x = names;
    for (std::size_t p = 0; p < bars.parts.size() && most > 0; ++p) {
      const double value = bars.parts[p].values[i], width = kBars * value / most;
      if (value <= 0) continue;
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\">"
          "<title>{}: {:.4g} {}</title></rect>\n",
          x, y, width, kBar, colour_of(p), escape_html(bars.parts[p].name), value,
          escape_html(unit));
      x += width;
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{:.4g}</text>\n", x + 6, y + 13, sums[i]);
  }
  return out + "</svg>";
}

}  // namespace vfm::report
