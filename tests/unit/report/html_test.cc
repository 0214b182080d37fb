// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/counted.h"
#include "report/cards.h"
#include "support/parts.h"

using namespace vfm::report;
using vfm::count_of;
using vfm::counted;

namespace {

bool has(const std::string& text, const std::string& part) {
  return count_of(text, part) > 0;
}

}  // namespace

TEST_CASE("text cannot become markup", "[report]") {
  CHECK(escape_html("<a href=\"x\">'&'</a>") ==
        "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  CHECK(escape_html(std::string("a\0b\x1b[31m", 8)) == "ab[31m");
  CHECK(escape_html("a\x7f\u009b\u0085\u00a0\n\tb") == "a\u00a0\n\tb");
  CHECK(escape_html("\xff<\xe2\x80\"\xc2") == "\ufffd&lt;\ufffd\ufffd&quot;\ufffd");
  // Marks that turn the direction of writing are shown; letters that do are letters.
  CHECK(escape_html("\u202eabc\u05d0\u2069\u200f\u061c") ==
        "[U+202E]abc\u05d0[U+2069][U+200F][U+061C]");
  CHECK(escape_html("日本語 ümlaut") == "日本語 ümlaut");

  Page page("<title>");
  page.heading("<script>alert(1)</script>");
  page.paragraph("</p><script>");
  page.table({"<th>"}, {{"<script>", "&"}});
  page.gallery(
      {{"data:image/png;base64,AA==", "\"><script>"}, {"data:video/mp4;base64,", "b", true}});
  page.svg("<svg></svg>", "<script>");
  CHECK_FALSE(has(page.html(), "<script"));
  CHECK(has(page.html(), "<title>&lt;title&gt;</title>"));
}

TEST_CASE("text of others turns nothing but itself", "[report]") {
  CHECK(escape_html(set_apart("a\u05d0") + " 1") == "\u2068a\u05d0\u2069 1");
  CHECK(escape_html(set_apart("a\u2069\u202eb") + "<") == "\u2068a[U+2069][U+202E]b\u2069&lt;");
  // What sets apart is not to be had in text, nor cut off.
  CHECK(escape_html(set_apart("\ufdd1a\ufdd0\xff")) == "\u2068a\ufffd\u2069");
  CHECK(escape_html("\ufdd1a\ufdd0b\ufdd0c") == "a\u2068bc\u2069");
}

TEST_CASE("no mark in whatever text a page is given turns the direction of writing", "[report]") {
  const std::string marks =
      "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069";
  Page page(marks, marks);
  page.heading(marks);
  page.paragraph(marks);
  page.not_complete(marks);
  page.table({marks}, {{marks}});
  page.gallery({{"data:", marks}, {"data:", marks, true}});
  page.svg(line_chart({{marks, {0, 1}, {1, 2}}}, marks, marks), marks);
  page.svg(histogram({1, 2}, 2, marks), marks);
  page.svg(stacked_bars({{marks}, {{marks, {1}}}}, marks), marks);
  page.charts({{"", marks}});
  page.markup(strips({{marks, {{std::nullopt, marks, marks, 1}}}}));
  page.markup(
      cards({{1, std::nullopt, marks, marks, marks, {{marks, marks}}, marks, {{0, marks}}}}));
  const std::string html = page.html();
  // Only what sets apart what the page is of, and why it is not complete.
  for (std::size_t i = 0; i + 3 <= marks.size();) {
    const std::size_t bytes = i == 0 ? 2 : 3;
    const std::string mark = marks.substr(i, bytes);
    CHECK(count_of(html, mark) == (mark == "\u2068" || mark == "\u2069" ? 2 : 0));
    i += bytes;
  }
  CHECK(count_of(html, "[U+202E]") > 20);
}

TEST_CASE("a page begins with its title, what it is of, and the day", "[report]") {
  const std::string html = Page("Clips", "a<b").html();
  const std::size_t at = html.find("<h1>Clips</h1>\n<p class=\"about\">\u2068a&lt;b\u2069, 20");
  CHECK(at != std::string::npos);
  CHECK(has(Page("Clips").html(), "<p class=\"about\">20"));
  CHECK(counted(1, "shard") == "1 shard");
  CHECK(counted(0, "shard") == "0 shards");
  CHECK(counted(2, "change of shot", "changes of shot") == "2 changes of shot");
}

TEST_CASE("data URLs carry bytes as base64", "[report]") {
  // RFC 4648, section 10.
  CHECK(data_url("text/plain", "") == "data:text/plain;base64,");
  CHECK(data_url("text/plain", "f") == "data:text/plain;base64,Zg==");
  CHECK(data_url("text/plain", "fo") == "data:text/plain;base64,Zm8=");
  CHECK(data_url("text/plain", "foo") == "data:text/plain;base64,Zm9v");
  CHECK(data_url("text/plain", "foobar") == "data:text/plain;base64,Zm9vYmFy");
  CHECK(data_url("x/y", std::string("\xff\xfe\x00", 3)) == "data:x/y;base64,//4A");
}

TEST_CASE("a page refers to nothing outside itself", "[report]") {
  Page page("t");
  page.gallery({{data_url("image/png", "abc"), "a picture"}});
  page.svg(line_chart({{"a", {0, 1}, {1, 2}}}, "step", "loss"), "curve");
  const std::string html = page.html();
  CHECK_FALSE(has(html, "http:"));
  CHECK_FALSE(has(html, "https:"));
  CHECK(has(html, "alt=\"a picture\""));
  CHECK(html.rfind("<!DOCTYPE html>", 0) == 0);
}

TEST_CASE("a line chart draws each series within its box", "[report]") {
  const std::string svg = line_chart(
      {{"train", {0, 10, 20}, {3, 2, 1}}, {"val <1>", {0, 20}, {2.5, 1.5}}}, "step", "loss");
  CHECK(count_of(svg, "<polyline") == 2);
  CHECK(has(svg, ">train<"));
  CHECK(has(svg, ">val &lt;1&gt;<"));
  CHECK(has(svg, ">step<"));
  CHECK_FALSE(has(svg, "nan"));
  CHECK_FALSE(has(svg, "inf"));
}

TEST_CASE("values that cannot be drawn are left out", "[report]") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const std::string svg = line_chart({{"a", {0, 1, 2, 3}, {1, nan, infinity, 2}}}, "x", "y");
  CHECK(has(svg, "<polyline"));
  CHECK_FALSE(has(svg, "nan"));
  CHECK_FALSE(has(svg, "inf"));
  CHECK(has(line_chart({}, "x", "y"), "no values"));
  CHECK(has(line_chart({{"a", {1}, {nan}}}, "x", "y"), "no values"));
  CHECK(has(line_chart({{"a", {0, 1}, {0, -1}}}, "x", "y", true), "no values"));
  CHECK(has(line_chart({{"a", {5}, {7}}}, "x", "y"), "<circle"));
  CHECK_FALSE(has(line_chart({{"a", {5, 5}, {7, 7}}}, "x", "y"), "nan"));
  CHECK_FALSE(has(line_chart({{"a", {0, 1}, {1e-3, 10}}}, "x", "y", true), "nan"));
}

TEST_CASE("a long series is thinned to means", "[report]") {
  Series series{"a", {}, {}};
  for (int i = 0; i < 100000; ++i)
    series.x.push_back(i), series.y.push_back(i % 2);
  const std::string svg = line_chart({series}, "x", "y");
  CHECK(svg.size() < 60000);
}

TEST_CASE("a histogram counts every value once", "[report]") {
  const std::string svg = histogram({0, 1, 2, 2, 3, 10}, 10, "seconds");
  CHECK(has(svg, "<title>2 to 3: 2</title>"));
  CHECK(has(svg, "<title>9 to 10: 1</title>"));
  CHECK(count_of(svg, "<rect") == 5);
  CHECK(has(histogram({}, 10, "seconds"), "no values"));
  CHECK(count_of(histogram({4, 4, 4}, 8, "s"), "<rect") == 1);
}

TEST_CASE("numbers that no axis has room for are not drawn", "[report]") {
  const double most = std::numeric_limits<double>::max();
  for (const double low : {-most, most, 1e301}) {
    AxisRange range;
    range.add(low);
    range.add(most);
    Histogram histogram(range, 4);
    histogram.add(low);
    for (const std::string& drawn : {histogram.small_svg("x"), histogram.svg("x")}) {
      CHECK_FALSE(has(drawn, "nan"));
      CHECK_FALSE(has(drawn, "inf"));
      CHECK_FALSE(has(drawn, "<rect"));
    }
  }
}
