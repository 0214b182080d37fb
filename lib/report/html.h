// Writes self-contained HTML reports without external scripts or files.
//
// A Page collects sections and writes one file. Pictures are embedded as data URLs, and charts as
// inline SVG. Callers pass plain text, which Page escapes.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm::report {

inline constexpr std::string_view kPageBegin = "<!DOCTYPE html>";

struct Series {
  std::string name;
  std::vector<double> x, y;
  bool dots = false;  ///< If true, the chart has a dot for each point and no line.
};

/// A picture with a caption. `data_url` is a result of data_url().
struct Figure {
  std::string data_url;
  std::string caption;
  bool video = false;  ///< If true, shows a looping <video>, not an <img>.
};

/// Returns `text` for use in HTML, also in attributes. Markup characters become references. Control
/// characters except tab and newline are removed. Invalid bytes become U+FFFD. Characters that
/// change the direction of writing (base/utf8.h) become visible text, such as "[U+202E]".
std::string escape_html(std::string_view text);
/// Returns `text` with marks around it, so that the text's direction of writing does not change the
/// surrounding text (UAX #9, first strong isolate). Call set_apart() before escape_html().
std::string set_apart(std::string_view text);
/// Returns a URL that contains the bytes, such as "data:image/png;base64,...".
std::string data_url(std::string_view mime_type, std::string_view bytes);
/// Returns a line chart as inline SVG, with axes, ticks at round numbers, and unit labels.
std::string line_chart(const std::vector<Series>& series, const std::string& x_label,
                       const std::string& y_label, bool log_y = false);
std::string histogram(const std::vector<double>& values, int bins, const std::string& x_label);

/// The range of the finite values that were added.
struct AxisRange {
  double low = 0, high = 0;
  bool any = false;  ///< If true, a value was added, finite or not.
  bool finite = false;
  void add(double value);
};
/// A histogram that does not store its values. The range of all values must be known before the
/// first value is added.
class Histogram {
 public:
  Histogram(const AxisRange& range, int bins);
  void add(double value, std::int64_t count = 1);
  /// Returns the same SVG as histogram() of all values.
  std::string svg(const std::string& x_label) const;
  /// Returns a chart half as wide as svg(), with bars, the label of the axis and the highest count.
  std::string small_svg(const std::string& label) const;

 private:
  AxisRange range_;
  double low_ = 0, high_ = 1;  // ends of the axis
  std::vector<std::int64_t> counts_;
};

struct Bars {
  struct Part {
    std::string name;
    std::vector<double> values;  ///< The part's value in each bar. No value is negative.
  };
  std::vector<std::string> names;
  std::vector<Part> parts;
};
/// Returns inline SVG with a bar for each name. A bar shows its parts in order, and their sum.
std::string stacked_bars(const Bars& bars, const std::string& unit);

class Page {
 public:
  /// Begins a page with `title` and the date in UTC. `of` is the subject, such as a dataset or a
  /// run.
  explicit Page(std::string title, const std::string& of = "");
  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows);
  void gallery(const std::vector<Figure>& figures, int pixel_width = 160);
  /// Adds a chart from line_chart() or histogram().
  void svg(const std::string& markup, const std::string& caption);
  /// Adds charts, each with SVG and caption, side by side if the window is wide enough.
  void charts(const std::vector<std::pair<std::string, std::string>>& charts);
  /// Adds CSS rules, such as picture_rules() of report/cards.h.
  void style(const std::string& css) { style_ += css; }
  /// Adds HTML, such as cards() of report/cards.h.
  void markup(const std::string& html) { body_ += html; }
  /// Adds a note that the page is incomplete, with the reason `why`. Does nothing if `why` is
  /// empty.
  void not_complete(const std::string& why);
  std::string html() const;
  /// Writes the document atomically.
  void write(const std::string& path) const;

 private:
  std::string title_, about_, style_, body_;
};

/// If the folder of the file `path` is missing, makes the folder and logs a message.
void make_page_folder(const std::string& path);
/// Writes a page that contains only the reason why the page is empty. Does nothing if `path` is
/// empty.
void write_not_complete(const std::string& path, const std::string& title, const std::string& of,
                        const std::string& why);

}  // namespace vfm::report
