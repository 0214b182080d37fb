// Cards with a picture, text and numbers, and thumbnails of near items, for a Page.
//
// Each picture is in the page once, as a rule for a class, however often it is shown.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vfm::report {

/// A small picture with a line under it.
struct Thumbnail {
  std::optional<std::size_t> picture;  ///< index in picture_rules(); nothing: no picture
  std::string name;                    ///< alternative text
  std::string caption;
  std::optional<std::size_t> card;  ///< leads to the card of this number
};

struct Card {
  std::size_t number = 0;  ///< unique in the page
  std::optional<std::size_t> picture;
  std::string title, kind, text;  ///< `kind`: a few words, such as its size
  std::vector<std::pair<std::string, std::string>> facts;  ///< name and value
  std::string near_title;
  std::vector<Thumbnail> near;
};

/// For Page::style(): the style of cards, and the pictures, each from data_url().
std::string picture_rules(const std::vector<std::string>& pictures);
/// For Page::markup(): thumbnails side by side under each label, with strips beside each other if
/// there is room.
std::string strips(const std::vector<std::pair<std::string, std::vector<Thumbnail>>>& strips);
std::string cards(const std::vector<Card>& cards);

}  // namespace vfm::report
