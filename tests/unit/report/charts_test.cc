// Where charts draw what: ticks, points, bars and their sums, curves of a training.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "report/html.h"
#include "report/training_curves.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::report;

namespace {

/// The elements of a drawing one by one, with the values of their attributes and their text.
std::string drawn(const std::string& svg) {
  std::string out, word;
  bool tag = false, value = false;
  for (const char c : svg) {
    if (value) {
      out += c == '"' ? ' ' : c;
      value = c != '"';
    } else if (!tag) {
      tag = c == '<';
      if (!tag) out += c;
    } else if (c == '"') {
      value = true;
    } else if (c == '=') {
      word.clear();
    } else if (c == ' ' || c == '>') {
      if (!word.empty() && word.find('/') == std::string::npos) out += word + " ";
      word.clear();
      tag = c != '>';
    } else {
      word += c;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("a chart of lines has round ticks, a legend of several, dots where they are asked for",
          "[report]") {
  CHECK(drawn(line_chart({{"a", {0, 10, 20}, {3, 2, 1}}, {"b", {5, 12}, {-0.5, 2.5}, true}}, "step",
                         "loss")) ==
        "svg 0 0 640 280 img loss by step \n"
        "line grid 58 612 236.0 236.0 text 52 240.0 end -1\n"
        "line grid 58 612 180.5 180.5 text 52 184.5 end 0\n"
        "line grid 58 612 125.0 125.0 text 52 129.0 end 1\n"
        "line grid 58 612 69.5 69.5 text 52 73.5 end 2\n"
        "line grid 58 612 14.0 14.0 text 52 18.0 end 3\n"
        "text 58.0 252 middle 0\n"
        "text 196.5 252 middle 5\n"
        "text 335.0 252 middle 10\n"
        "text 473.5 252 middle 15\n"
        "text 612.0 252 middle 20\n"
        "line axis 58 612 236 236 \n"
        "text 335 272 middle step\n"
        "text translate(12 125) rotate(-90) middle loss\n"
        "polyline none #0090d0 1.5 round 58.0,14.0 335.0,69.5 612.0,125.0  \n"
        "text 606 26 end fill:#0090d0 a\n"
        "circle 196.5 208.2 3 #e69f00 \n"
        "circle 390.4 41.8 3 #e69f00 \n"
        "text 606 42 end fill:#e69f00 b\n");
  CHECK(drawn(line_chart({{"a", {1, 2}, {0.5, 300}}}, "step", "loss", true)) ==
        "svg 0 0 640 280 img loss by step \n"
        "line grid 58 612 209.4 209.4 text 52 213.4 end 1\n"
        "line grid 58 612 131.8 131.8 text 52 135.8 end 10\n"
        "line grid 58 612 54.2 54.2 text 52 58.2 end 100\n"
        "text 58.0 252 middle 1\n"
        "text 168.8 252 middle 1.2\n"
        "text 279.6 252 middle 1.4\n"
        "text 390.4 252 middle 1.6\n"
        "text 501.2 252 middle 1.8\n"
        "text 612.0 252 middle 2\n"
        "line axis 58 612 236 236 \n"
        "text 335 272 middle step\n"
        "text translate(12 125) rotate(-90) middle loss\n"
        "polyline none #0090d0 1.5 round 58.0,232.8 612.0,17.2  \n");
  CHECK(drawn(line_chart({{"a", {1, 2, 3}, {2, 0, 5}}}, "x", "y", true)) ==
        "svg 0 0 640 280 img y by x \n"
        "line grid 58 612 216.9 216.9 text 52 220.9 end 2\n"
        "line grid 58 612 33.1 33.1 text 52 37.1 end 5\n"
        "text 58.0 252 middle 1\n"
        "text 196.5 252 middle 1.5\n"
        "text 335.0 252 middle 2\n"
        "text 473.5 252 middle 2.5\n"
        "text 612.0 252 middle 3\n"
        "line axis 58 612 236 236 \n"
        "text 335 272 middle x\n"
        "text translate(12 125) rotate(-90) middle y\n"
        "polyline none #0090d0 1.5 round 58.0,216.9 612.0,33.1  \n");
  CHECK(drawn(line_chart({{"a", {7}, {0}}}, "x", "y")) ==
        "svg 0 0 640 280 img y by x \n"
        "line grid 58 612 236.0 236.0 text 52 240.0 end -1\n"
        "line grid 58 612 180.5 180.5 text 52 184.5 end -0.5\n"
        "line grid 58 612 125.0 125.0 text 52 129.0 end 0\n"
        "line grid 58 612 69.5 69.5 text 52 73.5 end 0.5\n"
        "line grid 58 612 14.0 14.0 text 52 18.0 end 1\n"
        "text 58.0 252 middle 6\n"
        "text 196.5 252 middle 6.5\n"
        "text 335.0 252 middle 7\n"
        "text 473.5 252 middle 7.5\n"
        "text 612.0 252 middle 8\n"
        "line axis 58 612 236 236 \n"
        "text 335 272 middle x\n"
        "text translate(12 125) rotate(-90) middle y\n"
        "circle 335.0 125.0 3 #0090d0 \n");
}

TEST_CASE("of a long series the means of neighbours are drawn, dots and short ones as they are",
          "[report]") {
  const auto points = [](int count, bool dots) {
    Series series{"a", {}, {}, dots};
    for (int i = 0; i < count; ++i)
      series.x.push_back(i), series.y.push_back(i % 2 == 0 ? 0 : 10);
    const std::string svg = line_chart({series}, "x", "y");
    int circles = 0;
    for (std::size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at)
      ++circles;
    const std::size_t begin = svg.find("points=\"") + 8;
    if (!dots) return svg.substr(begin, svg.find('"', begin) - begin);
    return std::to_string(circles);
  };
  const std::string all = points(1500, false), means = points(1501, false);
  CHECK(std::count(all.begin(), all.end(), ',') == 1500);
  CHECK(std::count(means.begin(), means.end(), ',') == 751);
  // All means are 5, but for that of the last point, which stands alone: 0.
  CHECK(means.starts_with("58.2,14.0 58.9,14.0 "));
  CHECK(means.ends_with(",236.0 "));
  CHECK(points(1501, true) == "1501");
}

TEST_CASE("a histogram has bars from the axis up, and says what each counts", "[report]") {
  AxisRange range;
  CHECK_FALSE(range.any);
  for (const double value : {2.0, -1.0, std::nan(""), 5.0})
    range.add(value);
  CHECK((range.any && range.finite));
  CHECK(range.low == -1);
  CHECK(range.high == 5);
  Histogram histogram(range, 3);
  for (const double value : {-1.0, 0.5, 5.0, std::nan("")})
    histogram.add(value);
  histogram.add(2.9, 97);
  CHECK(drawn(histogram.svg("seconds")) ==
        "svg 0 0 640 280 img seconds, histogram \n"
        "line grid 58 612 236.0 236.0 text 52 240.0 end 0\n"
        "line grid 58 612 191.6 191.6 text 52 195.6 end 20\n"
        "line grid 58 612 147.2 147.2 text 52 151.2 end 40\n"
        "line grid 58 612 102.8 102.8 text 52 106.8 end 60\n"
        "line grid 58 612 58.4 58.4 text 52 62.4 end 80\n"
        "line grid 58 612 14.0 14.0 text 52 18.0 end 100\n"
        "text 58.0 252 middle -1\n"
        "text 150.3 252 middle 0\n"
        "text 242.7 252 middle 1\n"
        "text 335.0 252 middle 2\n"
        "text 427.3 252 middle 3\n"
        "text 519.7 252 middle 4\n"
        "text 612.0 252 middle 5\n"
        "line axis 58 612 236 236 \n"
        "text 335 272 middle seconds\n"
        "text translate(12 125) rotate(-90) middle count\n"
        "rect 58.5 231.6 183.7 4.4 #0090d0 title -1 to 1: 2\n"
        "rect 243.2 20.7 183.7 215.3 #0090d0 title 1 to 3: 97\n"
        "rect 427.8 233.8 183.7 2.2 #0090d0 title 3 to 5: 1\n");
  CHECK(drawn(histogram.small_svg("q<")) ==
        "svg 0 0 320 114 img \u2068q&lt;\u2069, histogram \n"
        "rect 0.5 94.3 105.7 1.7 #0090d0 title -1 to 1: 2\n"
        "rect 107.2 14.0 105.7 82.0 #0090d0 title 1 to 3: 97\n"
        "rect 213.8 95.0 105.7 1.0 #0090d0 title 3 to 5: 1\n"
        "line axis 0 320 96 96 \n"
        "text 320 10 end highest bar: 97\n"
        "text 0 110 start -1\n"
        "text 160 110 middle 2\n"
        "text 320 110 end 5\n");
  AxisRange none;
  none.add(std::nan(""));
  CHECK((none.any && !none.finite));
  CHECK(drawn(Histogram(none, 3).svg("x")) ==
        "svg 0 0 640 60 img x: no values text 320 34 middle x: no values");
}

TEST_CASE("stacked bars stand end to end, the longest over the whole width, with their sums",
          "[report]") {
  Bars bars;
  bars.names = {"one <", "the second", "none"};
  bars.parts = {
      {"a", {1, 2, 0}}, {"b", {3, 0, 0}}, {"c", {0, 6, 0}}, {"d", {0, 0, 0}}, {"e", {0.5, 0, 0}}};
  CHECK(drawn(stacked_bars(bars, "GiB")) ==
        "svg 0 0 700 124 img GiB \n"
        "rect 10 4 10 10 #0090d0 text 26 13 a\n"
        "rect 180 4 10 10 #e69f00 text 196 13 b\n"
        "rect 350 4 10 10 #009e73 text 366 13 c\n"
        "rect 520 4 10 10 #d55e00 text 536 13 d\n"
        "rect 10 22 10 10 #cc79a7 text 26 31 e\n"
        "text 66 55 end one &lt;\n"
        "rect 74.00 42 48.75 18 #0090d0 title a: 1 GiB\n"
        "rect 122.75 42 146.25 18 #e69f00 title b: 3 GiB\n"
        "rect 269.00 42 24.38 18 #cc79a7 title e: 0.5 GiB\n"
        "text 299.4 55 4.5\n"
        "text 66 81 end the second\n"
        "rect 74.00 68 97.50 18 #0090d0 title a: 2 GiB\n"
        "rect 171.50 68 292.50 18 #009e73 title c: 6 GiB\n"
        "text 470.0 81 8\n"
        "text 66 107 end none\n"
        "text 80.0 107 0\n");
  CHECK(stacked_bars({}, "s") == R"(<svg viewBox="0 0 700 10" role="img" aria-label="s">)"
                                 "\n"
                                 "</svg>");
  bars.names = {std::string(100, 'n')};
  bars.parts = {{"a", {2}}};
  CHECK(stacked_bars(bars, "s").find("<svg viewBox=\"0 0 890 54\"") == 0);
}

TEST_CASE("the curves of a training are those that its metrics have", "[report]") {
  const TemporaryFolder folder;
  const auto curves = [&](const std::string& metrics) {
    folder.write("metrics.jsonl", metrics);
    Page page("t");
    add_training_curves(page, folder / "metrics.jsonl");
    return page.html();
  };
  std::string metrics = "\n{\"loss\":5}\n";
  Series loss{"loss", {}, {}}, smoothed{"loss, smoothed", {}, {}}, norm{"grad_norm", {}, {}};
  for (int i = 0; i < 120; ++i) {
    metrics += "{\"step\":" + std::to_string(i) + ",\"loss\":" + std::to_string(1 + i % 5) +
               ",\"grad_norm\":" + std::to_string(2 + i) + ",\"note\":\"x\"}\n";
    loss.x.push_back(i), loss.y.push_back(1 + i % 5);
    norm.x.push_back(i), norm.y.push_back(2 + i);
  }
  metrics += "{\"step\":50,\"val_loss\":2.5,\"val_psnr\":30,\"val_ssim\":0.9}\n";
  smoothed.x = loss.x;
  for (int i = 0; i < 120; ++i) {
    double sum = 0, count = 0;
    for (int j = std::max(0, i - 2); j <= std::min(119, i + 2); ++j)
      sum += loss.y[static_cast<std::size_t>(j)], ++count;
    smoothed.y.push_back(sum / count);
  }
  const std::string page = curves(metrics);
  const auto has = [&](const std::string& chart) { return page.find(chart) != std::string::npos; };
  CHECK(has(line_chart({loss, smoothed, {"val_loss", {50}, {2.5}}}, "step", "loss", true)));
  CHECK(has(line_chart({{"val_psnr", {50}, {30}}}, "step", "PSNR, dB")));
  CHECK(has(line_chart({{"val_ssim", {50}, {0.9}}}, "step", "SSIM")));
  CHECK(has(line_chart({norm}, "step", "gradient norm", true)));
  CHECK(curves("{\"step\":1}\n").find("<svg") == std::string::npos);
  CHECK(curves("{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":4}\n")
            .find(line_chart({{"loss", {1, 2}, {2, 4}}, {"loss, smoothed", {1, 2}, {3, 3}}}, "step",
                             "loss", true)) != std::string::npos);
}

TEST_CASE("a page has its parts in order, with tables, galleries and charts side by side",
          "[report]") {
  Page page("Title <", "");
  page.style(".own { }");
  page.heading("head & more");
  page.paragraph("text");
  page.not_complete("");
  page.not_complete("why");
  page.table({"a", "b"}, {{"1", "<"}, {"2", ""}});
  page.gallery({{"data:a", "picture"}, {"data:b", "", false}, {"data:c", "clip", true}}, 99);
  page.svg("<svg></svg>", "one");
  page.charts({{"<svg>1</svg>", "first"}, {"<svg>2</svg>", "second"}});
  page.markup("<b>own</b>");
  std::string html = page.html();
  const std::size_t day = html.find("<p class=\"about\">") + 17;
  CHECK(html.find(".own { }</style>") != std::string::npos);
  html.erase(0, html.find("<body>"));
  html.erase(html.find("<p class=\"about\">") + 17, 10);
  CHECK(day > 17);
  CHECK(html ==
        "<body>\n"
        "<main>\n"
        "<h1>Title &lt;</h1>\n"
        R"(<p class="about"></p>)"
        "\n"
        "<h2>head &amp; more</h2>\n"
        R"(<p dir="auto">text</p>)"
        "\n"
        "<p dir=\"auto\">Not complete: \u2068why\u2069.</p>\n"
        R"(<div class="scroll"><table>)"
        "\n"
        R"(<thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>)"
        "\n"
        "<tbody>\n"
        R"(<tr><td dir="auto">1</td><td dir="auto">&lt;</td></tr>)"
        "\n"
        R"(<tr><td dir="auto">2</td><td dir="auto"></td></tr>)"
        "\n"
        "</tbody></table></div>\n"
        R"(<div class="gallery" style="--w:99px">)"
        "\n"
        R"(<figure><img src="data:a" alt="picture"><figcaption )"
        R"(dir="auto">picture</figcaption></figure>)"
        "\n"
        R"(<figure><img src="data:b" alt=""></figure>)"
        "\n"
        R"(<figure><video src="data:c" aria-label="clip" autoplay loop muted )"
        R"(playsinline></video><figcaption dir="auto">clip</figcaption></figure>)"
        "\n"
        "</div>\n"
        "<figure><svg></svg><figcaption>one</figcaption></figure>\n"
        R"(<div class="charts">)"
        "\n"
        "<figure><svg>1</svg><figcaption>first</figcaption></figure>\n"
        "<figure><svg>2</svg><figcaption>second</figcaption></figure>\n"
        "</div>\n"
        "<b>own</b></main>\n"
        "</body>\n"
        "</html>\n");
}
