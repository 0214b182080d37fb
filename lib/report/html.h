// Writes self-contained HTML reports, without external scripts or files.
//
// A Page collects sections and writes one file; pictures are embedded as data URLs, charts are
// inline SVG. Only this code escapes text. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm::report {

/// The beginning of each page.
inline constexpr std::string_view kPageBegin = "<!DOCTYPE html>";

struct Series {
  std::string name;
  std::vector<double> x, y;
  bool dots = false;  ///< draws a dot for each point, and no line
};

/// A picture with a caption. data_url() makes `data_url`.
struct Figure {
  std::string data_url;
  std::string caption;
  bool video = false;  ///< a <video> that loops, instead of an <img>
};

/// Escapes text for markup: markup characters become references, also for attributes; control
/// characters except tab and newline are removed; invalid bytes become U+FFFD. Marks that turn the
/// direction of writing (base/utf8.h) become visible text: "[U+202E]".
std::string escape_html(std::string_view text);
/// Isolates foreign `text` in our line, so that its writing direction ends with it (UAX #9: first
/// strong isolate). Call it before escape_html().
std::string set_apart(std::string_view text);
/// Returns a URL of the bytes: "data:image/png;base64,..."
std::string data_url(std::string_view mime_type, std::string_view bytes);
/// Returns inline SVG with axes, round ticks and unit labels.
std::string line_chart(const std::vector<Series>& series, const std::string& x_label,
                       const std::string& y_label, bool log_y = false);
std::string histogram(const std::vector<double>& values, int bins, const std::string& x_label);

/// The least and the largest finite value.
struct AxisRange {
  double low = 0, high = 0;
  bool any = false;  ///< whether a value was added, finite or not
  bool finite = false;
  void add(double value);
};
/// A histogram of values that are not stored. A Histogram needs first the range of the values, then
/// each value.
class Histogram {
 public:
  Histogram(const AxisRange& range, int bins);
  void add(double value, std::int64_t count = 1);
  /// Returns what histogram() of all values would return.
  std::string svg(const std::string& x_label) const;
  /// Returns a chart half as wide as svg(), for several charts side by side: bars, the axis label,
  /// and the highest count.
  std::string small_svg(const std::string& label) const;

 private:
  AxisRange range_;
  double low_ = 0, high_ = 1;  // of the axis
  std::vector<std::int64_t> counts_;
};

/// Stacked bars: each part has a value for every bar.
struct Bars {
  struct Part {
    std::string name;
    std::vector<double> values;  ///< as many as names; not negative
  };
  std::vector<std::string> names;
  std::vector<Part> parts;
};
/// Returns inline SVG: for each name a bar of its parts in order, with their sum.
std::string stacked_bars(const Bars& bars, const std::string& unit);

class Page {
 public:
  /// The page begins with `title`, its subject `of`, such as a dataset or a run, and the day (UTC).
  explicit Page(std::string title, const std::string& of = "");
  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void table(const std::vector<std::string>& header,
             const std::vector<std::vector<std::string>>& rows);
  /// Adds a grid of figures.
  void gallery(const std::vector<Figure>& figures, int pixel_width = 160);
  /// Adds the markup of line_chart() or histogram().
  void svg(const std::string& markup, const std::string& caption);
  /// Adds several charts, each with markup and caption, side by side if the window is wide enough.
  void charts(const std::vector<std::pair<std::string, std::string>>& charts);
  /// Add the results of report/cards.h: rules for the page's head, and markup.
  void style(const std::string& css) { style_ += css; }
  void markup(const std::string& html) { body_ += html; }
  /// Adds a note that the page is incomplete, and why. Does nothing for an empty `why`.
  void not_complete(const std::string& why);
  /// Returns the whole document.
  std::string html() const;
  /// Writes the document atomically.
  void write(const std::string& path) const;

 private:
  std::string title_, about_, style_, body_;
};

/// Makes the folder of a page at `path` if it is missing, and logs that. write() does so, too.
void make_page_folder(const std::string& path);
/// Writes a page that only says why it is empty. Does nothing for an empty path.
void write_not_complete(const std::string& path, const std::string& title, const std::string& of,
                        const std::string& why);

}  // namespace vfm::report
