// Makes HTML cards for a Page (report/html.h). A card has a picture, text, facts, and thumbnails of
// similar items.
//
// The page contains each picture once, as a CSS rule, even if several cards show the picture.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vfm::report {

struct Thumbnail {
  std::optional<std::size_t> picture;  ///< Index of the picture in picture_rules(), or nullopt
                                       ///< without a picture.
  std::string name;                    ///< Alternative text of the picture.
  std::string caption;
  std::optional<std::size_t> card;  ///< Number of the card to which the thumbnail links.
};

struct PictureTile {
  std::size_t number = 0;  ///< Number of the card, unique in the page.
  std::optional<std::size_t> picture;
  std::string title, kind, text;  ///< Title, short description, and text of the card.
  std::vector<std::pair<std::string, std::string>> facts;
  std::string near_title;
  std::vector<Thumbnail> near;
};

/// Returns the CSS rules of cards and pictures for Page::style(). Each of `pictures` is a result of
/// data_url().
std::string picture_rules(const std::vector<std::string>& pictures);
/// Returns HTML for Page::markup(), with a strip of thumbnails for each label. The strips are side
/// by side if the window is wide enough.
std::string strips(const std::vector<std::pair<std::string, std::vector<Thumbnail>>>& strips);
std::string cards(const std::vector<PictureTile>& cards);

}  // namespace vfm::report
