// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "base/utf8.h"
#include "io/atomic_file.h"
#include "io/remote/address.h"

namespace vfm::report {

namespace {

// Light and dark colours, and figures in a grid that follows the width of the window.
constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ink: #1d2328; --soft: #5c6770; --line: #d5dade; --ground: #fff;
  --raised: #f4f6f7; --accent: #1769aa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8eb; --soft: #9ba6ae; --line: #3a434a; --ground: #15191c; --raised: #1f2529;
    --accent: #6cb6f5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--ground);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0; }
.about { color: var(--soft); margin: .2rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line);
  padding-bottom: .3rem; overflow-wrap: anywhere; }
p { max-width: 46rem; margin: .5rem 0 1rem; white-space: pre-line; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0 1rem; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; min-width: 5.5rem; }
th { color: var(--soft); font-weight: 600; }
.gallery { display: grid; gap: .9rem; margin: .5rem 0 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(var(--w), 100%), 1fr)); }
figure { margin: 0; }
.gallery figure { background: var(--raised); border-radius: .4rem; overflow: hidden; }
.gallery img, .gallery video { display: block; width: 100%; height: auto; }
.charts { display: grid; gap: .9rem 1.4rem; margin: .5rem 0 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); }
.charts figcaption { padding-left: 0; }
figcaption { color: var(--soft); font-size: .85rem; padding: .35rem .5rem;
  overflow-wrap: anywhere; }
svg { display: block; max-width: 44rem; width: 100%; height: auto; color: var(--ink); }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); }
)css";

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    unsigned word = 0;
    for (std::size_t j = 0; j < 3; ++j)
      word = word << 8 | (j < have ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      out += j <= have ? kBase64[word >> (18 - 6 * j) & 63u] : '=';
  }
  return out;
}

/// What set_apart() puts around text: noncharacters (Unicode 23.7), which mean nothing in texts.
constexpr std::string_view kApartBegins = "\ufdd0", kApartEnds = "\ufdd1";
/// What escape_html() writes instead: FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE.
constexpr std::string_view kIsolate = "\u2068", kEndIsolate = "\u2069";

void append_figure(std::string& out, const Figure& figure) {
  const std::string text = escape_html(figure.caption);
  const std::string url = escape_html(figure.data_url);
  out += "<figure>";
  if (figure.video) {
    out += fmt::format(
        "<video src=\"{}\" aria-label=\"{}\" autoplay loop muted playsinline></video>", url, text);
  } else {
    out += fmt::format("<img src=\"{}\" alt=\"{}\">", url, text);
  }
  if (!text.empty()) out += fmt::format("<figcaption dir=\"auto\">{}</figcaption>", text);
  out += "</figure>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
  const auto is_control = [](std::string_view character) {
    return steering_character(character) > 0 && character_number(character) <= 0x9f;
  };
  std::string out;
  out.reserve(text.size());
  bool apart = false;
  const auto turn_apart = [&](bool to) {
    if (std::exchange(apart, to) != to) out += to ? kIsolate : kEndIsolate;
  };
  while (!text.empty()) {
    const std::size_t bytes = utf8_character(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(bytes, 1));
    text.remove_prefix(character.size());
    switch (const char c = character.front()) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (bytes == 0)
          out += "\ufffd";
        else if (character == kApartBegins || character == kApartEnds)
          turn_apart(character == kApartBegins);
        else if (turning_character(character) > 0)
          out += fmt::format("[U+{:04X}]", character_number(character));
        // Control characters are not allowed in a document, not even as references.
        else if (c == '\n' || c == '\t' || !is_control(character))
          out += character;
    }
  }
  turn_apart(false);
  return out;
}

std::string set_apart(std::string_view text) {
  std::string out(kApartBegins);
  while (!text.empty()) {
    const std::string_view character =
        text.substr(0, std::max<std::size_t>(utf8_character(text), 1));
    text.remove_prefix(character.size());
    if (character != kApartBegins && character != kApartEnds) out += character;
  }
  return out.append(kApartEnds);
}

std::string data_url(std::string_view mime_type, std::string_view bytes) {
  return fmt::format("data:{};base64,{}", mime_type, base64(bytes));
}

Page::Page(std::string title, const std::string& of) : title_(std::move(title)) {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  ::gmtime_r(&now, &day);
  char date[16];
  std::strftime(date, sizeof date, "%F", &day);
  about_ = of.empty() ? date : set_apart(of) + ", " + date;
}

void Page::heading(const std::string& text) {
  body_ += fmt::format("<h2>{}</h2>\n", escape_html(text));
}

void Page::paragraph(const std::string& text) {
  body_ += fmt::format("<p dir=\"auto\">{}</p>\n", escape_html(text));
}

void Page::not_complete(const std::string& why) {
  if (!why.empty()) paragraph("Not complete: " + set_apart(why) + ".");
}

void Page::table(const std::vector<std::string>& header,
                 const std::vector<std::vector<std::string>>& rows) {
  body_ += "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& cell : header)
    body_ += fmt::format("<th scope=\"col\">{}</th>", escape_html(cell));
  body_ += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    body_ += "<tr>";
    for (const std::string& cell : row)
      body_ += fmt::format("<td dir=\"auto\">{}</td>", escape_html(cell));
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void Page::gallery(const std::vector<Figure>& figures, int pixel_width) {
  body_ += fmt::format("<div class=\"gallery\" style=\"--w:{}px\">\n", pixel_width);
  for (const Figure& figure : figures)
    append_figure(body_, figure);
  body_ += "</div>\n";
}

void Page::svg(const std::string& markup, const std::string& caption) {
  body_ +=
      fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", markup, escape_html(caption));
}

void Page::charts(const std::vector<std::pair<std::string, std::string>>& charts) {
  body_ += "<div class=\"charts\">\n";
  for (const auto& [markup, caption] : charts)
    svg(markup, caption);
  body_ += "</div>\n";
}

std::string Page::html() const {
  const std::string title = escape_html(title_);
  return fmt::format(
      "{}\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n"
      "<p class=\"about\">{}</p>\n{}</main>\n"
      "</body>\n</html>\n",
      kPageBegin, title, kStyle, style_, title, escape_html(about_), body_);
}

void make_page_folder(const std::string& path) {
  const std::string folder = io::dir_name(path);
  if (io::is_remote(folder) || io::file_exists(folder)) return;
  io::make_directories(folder);
  log_warning("made the folder '{}' for the report", folder);
}

void Page::write(const std::string& path) const {
  make_page_folder(path);
  io::write_file(path, html());
}

void write_not_complete(const std::string& path, const std::string& title, const std::string& of,
                        const std::string& why) {
  if (path.empty()) return;
  Page page(title, of);
  page.not_complete(why);
  page.write(path);
}

}  // namespace vfm::report
