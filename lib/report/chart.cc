// Line charts and histograms as inline SVG.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "report/html.h"

namespace vfm::report {

namespace {

constexpr double kWidth = 640, kHeight = 280, kLeft = 58, kRight = 28, kTop = 14, kBottom = 44;

// Okabe and Ito's colours. Colour-blind readers can tell them apart on light and dark ground.
constexpr std::array<const char*, 6> kColours = {"#0090d0", "#e69f00", "#009e73",
                                                 "#d55e00", "#cc79a7", "#8a7fe0"};
constexpr std::size_t kMostPoints = 1500;

struct Axis {
  double low = 0, high = 1;
  bool log = false;
  std::vector<double> ticks;

  double place(double value) const {
    return log ? (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low))
               : (value - low) / (high - low);
  }
};

/// Returns 1, 2 or 5 times a power of ten: the first such step of at least range / count.
double round_step(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

Axis linear_axis(double low, double high) {
  if (!(low < high)) {
    const double margin = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
  Axis axis;
  const double step = round_step(high - low, 6);
  axis.low = std::floor(low / step + 1e-9) * step;
  axis.high = std::ceil(high / step - 1e-9) * step;
  const int count = static_cast<int>(std::lround((axis.high - axis.low) / step));
  for (int i = 0; i <= count; ++i)
    axis.ticks.push_back(axis.low + i * step);
  return axis;
}

Axis log_axis(double low, double high) {
  Axis axis;
  axis.log = true;
  axis.low = low / 1.1;
  axis.high = high * 1.1;
  const bool dense = std::log10(axis.high / axis.low) < 2;
  for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high;
       power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = power * factor;
      if ((factor == 1 || dense) && tick >= axis.low && tick <= axis.high)
        axis.ticks.push_back(tick);
    }
  }
  return axis;
}

double place_x(const Axis& axis, double value) {
  return kLeft + axis.place(value) * (kWidth - kLeft - kRight);
}
double place_y(const Axis& axis, double value) {
  return kHeight - kBottom - axis.place(value) * (kHeight - kTop - kBottom);
}

/// Writes five digits, which hides the rounding errors of ticks.
std::string tick_text(double value) {
  return fmt::format("{:.5g}", std::abs(value) < 1e-12 ? 0.0 : value);
}

std::string frame(const Axis& x, const Axis& y, const std::string& x_label,
                  const std::string& y_label, const std::string& title) {
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                kWidth, kHeight, escape_html(title));
  for (const double tick : y.ticks) {
    const double at = place_y(y, tick);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, kWidth - kRight, at, at, kLeft - 6, at + 4, tick_text(tick));
  }
  for (const double tick : x.ticks)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       place_x(x, tick), kHeight - kBottom + 16, tick_text(tick));
  out += fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\n", kLeft,
                     kWidth - kRight, kHeight - kBottom, kHeight - kBottom);
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 8, escape_html(x_label));
  out += fmt::format(
      "<text transform=\"translate(12 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (kTop + kHeight - kBottom) / 2, escape_html(y_label));
  return out;
}

struct Point {
  double x, y;
};

/// Returns the points that can be drawn. In a long series, means replace runs of neighbours.
std::vector<Point> drawable(const Series& series, bool log_y) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i)
    if (std::isfinite(series.x[i]) && std::isfinite(series.y[i]) && (!log_y || series.y[i] > 0))
      points.push_back({series.x[i], series.y[i]});
  if (points.size() <= kMostPoints || series.dots) return points;
  const std::size_t run = (points.size() + kMostPoints - 1) / kMostPoints;
  std::vector<Point> means;
  for (std::size_t begin = 0; begin < points.size(); begin += run) {
    const std::size_t end = std::min(points.size(), begin + run);
    Point mean{0, 0};
    for (std::size_t i = begin; i < end; ++i)
      mean.x += points[i].x, mean.y += points[i].y;
    const double count = static_cast<double>(end - begin);
    means.push_back({mean.x / count, mean.y / count});
  }
  return means;
}

std::string nothing_to_draw(const std::string& label) {
  return fmt::format(
      "<svg viewBox=\"0 0 {0} 60\" role=\"img\" aria-label=\"{1}: no values\">"
      "<text x=\"{2}\" y=\"34\" text-anchor=\"middle\">{1}: no values</text></svg>",
      kWidth, escape_html(label), kWidth / 2);
}

}  // namespace

std::string line_chart(const std::vector<Series>& series, const std::string& x_label,
                       const std::string& y_label, bool log_y) {
  std::vector<std::vector<Point>> lines;
  double low_x = std::numeric_limits<double>::infinity(), high_x = -low_x;
  double low_y = low_x, high_y = -low_x;
  for (const Series& one : series) {
    for (const Point& point : lines.emplace_back(drawable(one, log_y))) {
      low_x = std::min(low_x, point.x), high_x = std::max(high_x, point.x);
      low_y = std::min(low_y, point.y), high_y = std::max(high_y, point.y);
    }
  }
  if (low_x > high_x) return nothing_to_draw(y_label);
  const Axis x = linear_axis(low_x, high_x);
  const Axis y = log_y ? log_axis(low_y, high_y) : linear_axis(low_y, high_y);
  std::string out = frame(x, y, x_label, y_label, y_label + " by " + x_label);
  double legend_y = kTop + 12;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    std::string points;
    for (const Point& point : lines[i])
      points += fmt::format("{:.1f},{:.1f} ", place_x(x, point.x), place_y(y, point.y));
    if (lines[i].size() == 1 || series[i].dots) {
      for (const Point& point : lines[i])
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                           place_x(x, point.x), place_y(y, point.y), colour);
    } else {
      out += fmt::format(
          "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" stroke-linejoin=\"round\" "
          "points=\"{}\"/>\n",
          colour, points);
    }
    if (lines.size() > 1) {
      out +=
          fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" style=\"fill:{}\">{}</text>\n",
                      kWidth - kRight - 6, legend_y, colour, escape_html(series[i].name));
      legend_y += 16;
    }
  }
  return out + "</svg>";
}

void AxisRange::add(double value) {
  any = true;
  if (!std::isfinite(value)) return;
  low = finite ? std::min(low, value) : value;
  high = finite ? std::max(high, value) : value;
  finite = true;
}

Histogram::Histogram(const AxisRange& range, int bins)
    : range_(range), counts_(static_cast<std::size_t>(std::max(bins, 0))) {
  // Beyond this limit, the ends of an axis overflow.
  constexpr double kMost = 1e300;
  range_.finite = range_.finite && range_.low >= -kMost && range_.high <= kMost;
  if (!range_.finite || bins < 1) return;
  const Axis x = linear_axis(range.low, range.high);
  low_ = x.low, high_ = x.high;
}

void Histogram::add(double value, std::int64_t count) {
  if (!range_.finite || counts_.empty() || !std::isfinite(value)) return;
  const auto bins = static_cast<std::int64_t>(counts_.size());
  const double place = (value - low_) / (high_ - low_);
  const auto bin = static_cast<std::int64_t>(place * static_cast<double>(bins));
  counts_[static_cast<std::size_t>(std::clamp<std::int64_t>(bin, 0, bins - 1))] += count;
}

std::string Histogram::svg(const std::string& x_label) const {
  if (!range_.finite || counts_.empty()) return nothing_to_draw(x_label);
  const Axis x = linear_axis(range_.low, range_.high);
  const auto bins = static_cast<int>(counts_.size());
  const Axis y =
      linear_axis(0, static_cast<double>(*std::max_element(counts_.begin(), counts_.end())));
  std::string out = frame(x, y, x_label, "count", x_label + ", histogram");
  for (int bin = 0; bin < bins; ++bin) {
    const auto count = counts_[static_cast<std::size_t>(bin)];
    if (count == 0) continue;
    const double from = x.low + (x.high - x.low) * bin / bins;
    const double to = x.low + (x.high - x.low) * (bin + 1) / bins;
    const double top = place_y(y, static_cast<double>(count));
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
        "<title>{} to {}: {}</title></rect>\n",
        place_x(x, from) + 0.5, top, std::max(0.5, place_x(x, to) - place_x(x, from) - 1),
        place_y(y, 0) - top, kColours[0], tick_text(from), tick_text(to), count);
  }
  return out + "</svg>";
}

std::string Histogram::small_svg(const std::string& label) const {
  constexpr double kSmallWidth = 320, kHead = 14, kPlot = 96, kFoot = 18;
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kSmallWidth,
                  kPlot + kFoot, escape_html(set_apart(label) + ", histogram"));
  if (!range_.finite || counts_.empty()) return out + "</svg>";
  const auto most = static_cast<double>(*std::max_element(counts_.begin(), counts_.end()));
  const double width = kSmallWidth / static_cast<double>(counts_.size());
  const double step = (high_ - low_) / static_cast<double>(counts_.size());
  for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
    if (counts_[bin] == 0) continue;
    const double height = std::max(1.0, (kPlot - kHead) * static_cast<double>(counts_[bin]) / most);
    const double from = low_ + step * static_cast<double>(bin);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
        "<title>{} to {}: {}</title></rect>\n",
        width * static_cast<double>(bin) + 0.5, kPlot - height, width - 1, height, kColours[0],
        tick_text(from), tick_text(from + step), counts_[bin]);
  }
  out += fmt::format("<line class=\"axis\" x1=\"0\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\n", kSmallWidth,
                     kPlot, kPlot);
  out += fmt::format("<text x=\"{}\" y=\"10\" text-anchor=\"end\">highest bar: {:.0f}</text>\n",
                     kSmallWidth, most);
  const char* const anchors[] = {"start", "middle", "end"};
  for (int tick = 0; tick < 3; ++tick)
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
                       tick * kSmallWidth / 2, kPlot + 14, anchors[tick],
                       tick_text(low_ + tick * (high_ - low_) / 2));
  return out + "</svg>";
}

std::string histogram(const std::vector<double>& values, int bins, const std::string& x_label) {
  AxisRange range;
  for (const double value : values)
    range.add(value);
  Histogram histogram(range, bins);
  for (const double value : values)
    histogram.add(value);
  return histogram.svg(x_label);
}

}  // namespace vfm::report
