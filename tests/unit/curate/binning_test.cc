// SPDX-License-Identifier: Apache-2.0
#include "curate/binning.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/philox.h"

using namespace vfm;
using namespace vfm::curate;
using Catch::Contains;

namespace {

std::string bin(double width, double height, double seconds, BinEdges edges = {}) {
  return bin_name(edges, {width, height, seconds, false, "mp4"});
}

}  // namespace

TEST_CASE("bins have the names of what they hold") {
  CHECK(bin(1280, 720, 5.005) == "720p_16x9_5s");
  CHECK(bin(720, 1280, 4.99) == "720p_9x16_2s");
  CHECK(bin(64, 64, 1.5) == "under256p_1x1_under2s");
  CHECK(bin(640, 480, 3600) == "480p_4x3_30s");
  CHECK(bin(480, 640, 2) == "480p_3x4_2s");
  CHECK(bin(2.4 * 4000, 4000, 10) == "2160p_16x9_10s");
  CHECK(bin_name({}, {1000, 1000, 0, true, "jpg"}) == "720p_1x1_jpg");
  CHECK(bin_name({}, {1000, 1000, 3, false, "webm"}) == "720p_1x1_2s_webm");
}

TEST_CASE("an edge belongs to the interval that it begins") {
  CHECK(bin(2000, 720, 5) == "720p_16x9_5s");
  CHECK(bin(2000, 719, 5) == "480p_16x9_5s");
  CHECK(bin(100, 100, std::nextafter(2.0, 0.0)) == "under256p_1x1_under2s");
}

TEST_CASE("what is not known has a bin too") {
  CHECK(bin(0, 720, 5) == "unsized_5s");
  CHECK(bin(1280, 720, 0) == "720p_16x9_untimed");
  CHECK(bin(1280, 720, std::nan("")) == "720p_16x9_untimed");
  CHECK(bin(1280, 720, std::numeric_limits<double>::infinity()) == "720p_16x9_untimed");
  CHECK(bin_name({}, {0, 0, 0, false, "bin"}) == "unsized_untimed_bin");
}

TEST_CASE("every positive size and duration has exactly one bin, and axes of intervals tile") {
  const Random random(1, Purpose::test);
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < 3000; i += 3) {
    const double w = std::exp(12 * random.uniform(i) - 1),
                 h = std::exp(12 * random.uniform(i + 1) - 1);
    const std::string name = bin(w, h, std::exp(20 * random.uniform(i + 2) - 10));
    CHECK_THAT(name, !Contains("unsized") && !Contains("untimed") && !Contains("."));
    names.insert(name);
  }
  CHECK(names.size() > 60);
  CHECK(names.size() <= 6 * 5 * 5);
}

TEST_CASE("edges of one's own give names of their own") {
  BinEdges edges;
  edges.aspect = {0.1, 0.2, 5, 6};
  edges.seconds = {2.5, 1000};
  CHECK(bin(100, 720, 3, edges) == "under256p_aspect0_1_2_5s");
  CHECK(bin(500, 100, 3, edges) == "under256p_aspect5_2_5s");
  CHECK(bin(100, 100, 1, edges) == "under256p_16x9_under2_5s");
  CHECK(bin(100, 100, 1, {{}, {}, {}}) == "anyp_anyaspect_anys");
}

TEST_CASE("nonsense edges are refused by name") {
  CHECK(parse_edges("256,480.5", "--x") == std::vector<double>{256, 480.5});
  CHECK(parse_edges("none", "--x").empty());
  for (const char* bad : {"", "a", "1,", "1,1", "2,1", "0,1", "-1", "nan", "inf", "1;2", "1 "})
    CHECK_THROWS_WITH(parse_edges(bad, "--x"), Contains("--x"));
}
