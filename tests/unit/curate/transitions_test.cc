// Changes of shot in which one picture takes the other's place part by part, or by moving.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "curate/shots/moved_picture.h"
#include "curate/shots/parts_between.h"
#include "drawn_shots.h"

using namespace drawn_shots;
using namespace vfm::curate;
using drawing::Texture;
using drawing::Yuv;

namespace {

constexpr int kBegin = 50;  // the last frame that is wholly the first shot's

/// A pixel of the frame at which `share` of the way is gone, x and y from 0 to 1.
using Composed = std::function<Yuv(const Texture& a, const Texture& b, double share, int x, int y)>;

/// A shot, `length` frames that `compose` makes, and another shot; both move a little.
Video change_of(int length, const Composed& compose, double speed = 0.05) {
  const Texture a(1), b(2);
  Video video;
  for (int i = 0; i < kBegin + length + 60; ++i) {
    const double share = std::clamp((i - kBegin) / (length + 1.0), 0.0, 1.0);
    video.push_back(drawn([&](int x, int y) {
      const int moved = static_cast<int>(speed * i);
      return compose(a, b, share, x + moved, y) /* both go on */;
    }));
  }
  return video;
}

/// The new shot where `first` says that it comes first, from 0 to 1, with an edge `soft` wide.
Composed where(const std::function<double(double x, double y)>& first, double soft = 0) {
  return [=](const Texture& a, const Texture& b, double share, int x, int y) {
    const double at = first((x + 0.5) / kWidth, (y + 0.5) / kHeight);
    const double gone = soft > 0 ? std::clamp((share * (1 + soft) - at) / soft, 0.0, 1.0)
                                 : static_cast<double>(share >= 1 || at < share);
    return drawing::mix(a.at(x, y), b.at(x, y), gone);
  };
}

double from_centre(double x, double y) {
  return std::hypot(x - 0.5, y - 0.5) / std::numbers::sqrt2 * 2;
}

struct Named {
  std::string name;
  Composed compose;
};

/// In which nothing moves.
std::vector<Named> masks() {
  return {
      {"from a corner", where([](double x, double y) { return std::max(x, y); })},
      {"to a corner", where([](double x, double y) { return 1 - std::min(x, y); })},
      {"doors open", where([](double x, double) { return std::abs(2 * x - 1); })},
      {"doors close", where([](double, double y) { return 1 - std::abs(2 * y - 1); })},
      {"a circle opens, softly", where(from_centre, 0.5)},
      {"a circle closes, softly",
       where([](double x, double y) { return 1 - from_centre(x, y); }, 0.5)},
      {"a hand of a clock", where([](double x, double y) {
         return (std::atan2(x - 0.5, y - 0.5) / std::numbers::pi + 1) / 2;
       })},
      {"slices",
       where([](double x, double y) { return 0.5 * x + 0.5 * (8 * y - std::floor(8 * y)); })},
      {"a soft diagonal", where([](double x, double y) { return (x + y) / 2; }, 0.3)},
  };
}

Composed moving(bool sideways, bool old_moves, bool new_moves) {
  return [=](const Texture& a, const Texture& b, double share, int x, int y) {
    const int size = sideways ? kWidth : kHeight, along = sideways ? x : y;
    const int gone = static_cast<int>(std::lround(share * size));
    const bool is_new = along < gone;
    const int by = is_new ? new_moves * (size - gone) : -old_moves * gone;
    const int u = sideways ? x + by : x, v = sideways ? y : y + by;
    return is_new ? b.at(u, v) : a.at(u, v);
  };
}

Yuv squeezed(const Texture& a, const Texture& b, double share, int x, int y) {
  const double from = 0.5 + (y / double{kHeight} - 0.5) / std::max(1 - share, 1e-6);
  return from < 0 || from > 1 ? b.at(x, y) : a.at(x, from * kHeight);
}

Yuv through_black(const Texture& a, const Texture& b, double share, int x, int y) {
  const double open = std::abs(2 * share - 1);
  const bool inside =
      std::abs(2.0 * x / kWidth - 1) < open && std::abs(2.0 * y / kHeight - 1) < open;
  if (!inside) return {0, 128, 128};
  return share < 0.5 ? a.at(x, y) : b.at(x, y);
}

std::vector<Named> moves() {
  return {
      {"a push to the right", moving(true, true, true)},
      {"a push down", moving(false, true, true)},
      {"a cover", moving(true, false, true)},
      {"a reveal", moving(false, true, false)},
      {"a squeeze", squeezed},
  };
}

void check_found(const Named& one, int length) {
  const auto changes = detect(change_of(length, one.compose, 0));
  INFO(one.name << ", " << length << " frames: " << text_of(changes));
  REQUIRE(changes.size() == 1);
  // Slices are much like an edge that goes evenly.
  CHECK(changes[0].type == (one.name == "slices" ? ChangeType::wipe : ChangeType::transition));
  CHECK(changes[0].frame > kBegin);
  CHECK(changes[0].frame <= kBegin + length + 1);
  // Hardly anything of the other picture is left in either shot.
  CHECK(changes[0].end <= kBegin + 1 + length / 4);
  CHECK(changes[0].end >= kBegin - 2);
  CHECK(changes[0].begin >= kBegin + 1 + 3 * length / 4);
  CHECK(changes[0].begin <= kBegin + length + 4);
  CHECK(detect(change_of(length, one.compose, 0), {.gradual = false}).empty());
}

}  // namespace

TEST_CASE("a picture that takes another's place part by part is one transition") {
  for (const Named& one : masks())
    for (const int length : {15, 24, 48})
      check_found(one, length);
}

TEST_CASE("a picture that moves into another's place, or out of it, is one transition") {
  for (const Named& one : moves())
    for (const int length : {15, 24, 48})
      check_found(one, length);
}

TEST_CASE("a picture that closes to black, and another that opens from it, are one transition") {
  check_found({"through black", through_black}, 24);
  check_found({"through black", through_black}, 40);
}

TEST_CASE("a camera that swings by a whole picture and rests is no transition") {
  const Texture view(4, 9);
  for (const int length : {12, 20, 40}) {
    for (const bool evenly : {false, true}) {
      Video video;
      for (int i = 0; i < 130; ++i) {
        const double share = std::clamp((i - 40) / double(length), 0.0, 1.0);
        const double gone = evenly ? share : (1 - std::cos(std::numbers::pi * share)) / 2;
        video.push_back(drawn(view.shifted(gone * kWidth, 0)));
      }
      const auto changes = detect(video);
      INFO(length << ", evenly " << evenly << ": " << text_of(changes));
      CHECK(changes.empty());
    }
  }
}

TEST_CASE("a camera that tilts from a scene to a plain sky, or back, is no transition") {
  const Texture view(4, 9);
  for (const int length : {24, 48}) {
    for (const bool down : {false, true}) {
      Video video;
      for (int i = 0; i < 130; ++i) {
        const double share = std::clamp((i - 40) / double(length), 0.0, 1.0);
        const double eased = (1 - std::cos(std::numbers::pi * share)) / 2;
        const double top = kHeight * 1.2 * (down ? eased - 1 : -eased);
        video.push_back(drawn([&](int x, int y) {
          return y + top < 0 ? Yuv{170, 150, 110} : view.at(x, y + top);
        }));
      }
      INFO(length << ", down " << down);
      CHECK(text_of(detect(video)) == "");
    }
  }
}

TEST_CASE("a camera that nears, and a scene that is lit from one side, are no transition") {
  const Texture view(4, 9);
  Video nears, lit;
  for (int i = 0; i < 130; ++i) {
    const double zoom = 1 + 0.02 * std::clamp(i - 40, 0, 40);
    nears.push_back(drawn(
        [&](int x, int y) { return view.at((x - kWidth / 2) / zoom, (y - kHeight / 2) / zoom); }));
    const double edge = std::clamp((i - 40) / 24.0, 0.0, 1.0) * kWidth;
    lit.push_back(drawn([&](int x, int y) {
      Yuv c = view.at(x, y);
      c.y *= x < edge ? 0.4 : 1;
      return c;
    }));
  }
  CHECK(text_of(detect(nears)) == "");
  CHECK(text_of(detect(lit)) == "");
}

TEST_CASE("parts between two pictures: what a frame in the midst shows of each") {
  CoarsePicture before, after, now, other;
  before.fill(40), after.fill(200);
  now = before;
  for (int y = 0; y < kWipeSteps; ++y)
    for (int x = 0; x < kWipeSteps / 2; ++x)
      now[y * kWipeSteps + x] = 200;
  for (int plane = 256; plane < 384; plane += 64)
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 4; ++x)
        now[plane + y * 8 + x] = 200;
  const PartsBetween half = parts_between(before, now, after);
  CHECK(half.misfit == Approx(0).margin(1e-6));
  CHECK(half.progress == Approx(0.5));
  CHECK(half.share[0] == Approx(1));
  CHECK(half.share[7] == Approx(0));
  const PartsBetween none = parts_between(before, before, after);
  CHECK(none.progress == 0);
  CHECK(parts_going_back(none, half) == 0);
  CHECK(parts_going_back(half, none) == Approx(0.5));
  other.fill(10);  // beyond both
  CHECK(parts_between(before, other, after).misfit > 0.03f);
  CHECK(parts_between(before, before, before).progress == 0);
}

TEST_CASE("lines of a moved picture: which way, how far, and what meets") {
  const auto picture = [](auto&& paint) {
    FrameFeatures features;
    compute_features(drawn(paint), features);
    return features.picture;
  };
  const Texture a(1), b(2);
  const SmallPicture before = picture(a.shifted(0, 0)), after = picture(b.shifted(0, 0));
  const SmallPicture now =
      picture([&](int x, int y) { return moving(true, true, true)(a, b, 0.25, x, y); });
  const auto fits = moved_fits(columns_of(before), columns_of(now), columns_of(after));
  const MovedFit push = fits[static_cast<std::size_t>(Move::push)];
  CHECK(push.way == 1);
  CHECK(push.share == Approx(0.25));
  CHECK(push.misfit < 0.1f);
  CHECK(fits[static_cast<std::size_t>(Move::squeeze)].misfit > 0.3f);
  CHECK(seam_of(columns_of(before), columns_of(after), 1, 2) > 0.5f);
  const SmallPicture next = picture(a.shifted(-kWidth, 0));
  CHECK(seam_of(columns_of(before), columns_of(next), 1, 2) < 0.5f);
}
