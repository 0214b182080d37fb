// SPDX-License-Identifier: Apache-2.0
#include "report/cards.h"

#include <fmt/core.h>

#include <string_view>

#include "report/html.h"

namespace vfm::report {
namespace {

constexpr std::string_view kCardStyle = R"css(
.pic { display: block; width: 100%; aspect-ratio: 16 / 9; border-radius: .3rem;
  background: var(--raised) center / contain no-repeat; }
.pair { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr)); }
.strip { margin: .3rem 0 1rem; }
.strip h3 { color: var(--soft); font-size: .85rem; margin: 0; overflow-wrap: anywhere; }
.row { display: grid; gap: .5rem; margin: .3rem 0;
  grid-template-columns: repeat(auto-fill, minmax(5.2rem, 1fr)); }
.row a, .row div { color: var(--soft); font-size: .8rem; text-decoration: none;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.row a span:last-child { color: var(--accent); }
.cards { display: grid; gap: 1rem; margin: .5rem 0 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(21rem, 100%), 1fr)); }
.card { background: var(--raised); border-radius: .4rem; padding: .7rem; min-width: 0; }
.card .pic { background-color: var(--ground); }
.card:target { outline: 2px solid var(--accent); }
.card h3 { font-size: .85rem; font-weight: 600; margin: .5rem 0 .2rem; color: var(--soft);
  overflow-wrap: anywhere; }
.card p { margin: .2rem 0 .5rem; overflow-wrap: anywhere; }
.card dl { display: grid; gap: 0 1rem; margin: 0; font-size: .8rem;
  grid-template-columns: repeat(auto-fill, minmax(min(9.3rem, 100%), 1fr)); }
.card dl div { display: flex; gap: .5rem; justify-content: space-between; }
.card dt { color: var(--soft); min-width: 0; }
.card dd { margin: 0; font-variant-numeric: tabular-nums; }
.card small { color: var(--soft); }
.card .row { grid-template-columns: repeat(4, minmax(0, 1fr)); }
)css";

std::string picture(const std::optional<std::size_t>& number, const std::string& name) {
  return fmt::format("<span class=\"pic{}\" role=\"img\" aria-label=\"{}\"></span>",
                     number ? fmt::format(" p{}", *number) : "", escape_html(name));
}

std::string thumbnail(const Thumbnail& one) {
  const std::string inside = picture(one.picture, one.name) +
                             fmt::format("<span dir=\"auto\">{}</span>", escape_html(one.caption));
  if (!one.card) return fmt::format("<div>{}</div>\n", inside);
  return fmt::format("<a href=\"#c{}\">{}</a>\n", *one.card, inside);
}

std::string breakable(const std::string& name) {
  std::string out;
  for (const char c : escape_html(name)) {
    out += c;
    if (c == '_') out += "<wbr>";
  }
  return out;
}

std::string row(const std::vector<Thumbnail>& thumbnails) {
  std::string out = "<div class=\"row\">\n";
  for (const Thumbnail& one : thumbnails)
    out += thumbnail(one);
  return out + "</div>\n";
}

}  // namespace

std::string picture_rules(const std::vector<std::string>& pictures) {
  std::string out(kCardStyle);
  for (std::size_t i = 0; i < pictures.size(); ++i)
    out += fmt::format(".pic.p{} {{ background-image: url(\"{}\"); }}\n", i, pictures[i]);
  return out;
}

std::string strips(const std::vector<std::pair<std::string, std::vector<Thumbnail>>>& strips) {
  std::string out = "<div class=\"pair\">\n";
  for (const auto& [label, thumbnails] : strips)
    out += fmt::format("<div class=\"strip\"><h3>{}</h3>\n{}</div>\n", escape_html(label),
                       row(thumbnails));
  return out + "</div>\n";
}

std::string cards(const std::vector<PictureTile>& cards) {
  std::string out = "<div class=\"cards\">\n";
  for (const PictureTile& card : cards) {
    out += fmt::format(
        "<article class=\"card\" id=\"c{}\">{}\n<h3 dir=\"auto\">{}</h3>\n"
        "<small>{}</small>\n",
        card.number, picture(card.picture, card.title), escape_html(card.title),
        escape_html(card.kind));
    if (!card.text.empty()) out += fmt::format("<p dir=\"auto\">{}</p>\n", escape_html(card.text));
    out += "<dl>";
    for (const auto& [name, value] : card.facts)
      out +=
          fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", breakable(name), escape_html(value));
    out += "</dl>\n";
    if (!card.near.empty())
      out += fmt::format("<h3>{}</h3>\n{}", escape_html(card.near_title), row(card.near));
    out += "</article>\n";
  }
  return out + "</div>\n";
}

}  // namespace vfm::report
