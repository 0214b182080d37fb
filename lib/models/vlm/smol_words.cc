// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/smol_words.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/error.h"

namespace vfm::models {
namespace {

constexpr std::array<const char*, 20> kSmallNumbers = {
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<const char*, 10> kTens = {"",      "",      "twenty",  "thirty", "forty",
                                               "fifty", "sixty", "seventy", "eighty", "ninety"};

constexpr std::string_view kAround = "<fake_token_around_image>", kGlobal = "<global-img>";

std::string below_hundred(int n) {
  if (n < 20) return kSmallNumbers.at(static_cast<std::size_t>(n));
  const std::string tens = kTens.at(static_cast<std::size_t>(n / 10));
  return n % 10 == 0 ? tens : tens + "-" + kSmallNumbers.at(static_cast<std::size_t>(n % 10));
}

std::string below_thousand(int n) {
  if (n < 100) return below_hundred(n);
  const std::string hundreds = below_hundred(n / 100) + " hundred";
  return n % 100 == 0 ? hundreds : hundreds + " and " + below_hundred(n % 100);
}

void append_tile(std::string& text, std::string_view mark, int tokens) {
  text += kAround;
  text += mark;
  for (int i = 0; i < tokens; ++i)
    text += kSmolImage;
}

/// All of a picture, by itself.
std::string whole_picture(int tokens) {
  std::string text;
  append_tile(text, kGlobal, tokens);
  text += kAround;
  return text;
}

/// H:MM:SS, after days where there are any, as Python writes a timedelta.
std::string clock_text(std::int64_t seconds) {
  const std::int64_t days = seconds / 86400;
  const std::string clock =
      fmt::format("{}:{:02}:{:02}", seconds % 86400 / 3600, seconds % 3600 / 60, seconds % 60);
  if (days == 0) return clock;
  return fmt::format("{} day{}, {}", days, days == 1 ? "" : "s", clock);
}

}  // namespace

std::string count_in_words(int count) {
  if (count < 0 || count > 999'999) fail("{} is not written in words here", count);
  const int thousands = count / 1000, rest = count % 1000;
  if (thousands == 0) return below_thousand(rest);
  const std::string text = below_thousand(thousands) + " thousand";
  if (rest == 0) return text;
  return text + (rest < 100 ? " and " : ", ") + below_thousand(rest);
}

std::string smol_picture_text(const SmolTiles& tiles, int tokens) {
  if (tiles.rows == 0) return whole_picture(tokens);
  std::string text;
  for (int row = 1; row <= tiles.rows; ++row) {
    for (int column = 1; column <= tiles.columns; ++column)
      append_tile(text, fmt::format("<row_{}_col_{}>", row, column), tokens);
    text += '\n';
  }
  return text + '\n' + whole_picture(tokens);
}

std::string smol_video_text(std::span<const double> times, double seconds, int tokens) {
  std::string text =
      fmt::format("You are provided the following series of {} frames from a {} [H:MM:SS] video.\n",
                  count_in_words(static_cast<int>(times.size())),
                  clock_text(static_cast<std::int64_t>(std::min(seconds, 1e15))));
  for (const double time : times) {
    const auto whole = static_cast<std::int64_t>(std::min(time, 1e15));
    text += fmt::format("\nFrame from {:02}:{:02}:", whole / 60, whole % 60);
    text += whole_picture(tokens);
  }
  return text + "\n\n";
}

std::string smol_video_message(std::string_view prompt) {
  return fmt::format("<|im_start|>User: {}{}<end_of_utterance>\nAssistant:", kSmolVideo, prompt);
}

std::size_t count_parts(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size())
    ++count;
  return count;
}

std::string replace_parts(std::string_view text, std::string_view part, std::string_view by) {
  std::string all;
  for (;;) {
    const std::size_t at = text.find(part);
    all += text.substr(0, at);
    if (at == std::string_view::npos) return all;
    all += by;
    text.remove_prefix(at + part.size());
  }
}

}  // namespace vfm::models
