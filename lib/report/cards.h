// HTML cards for a Page (report/html.h): each has a picture, text, numbers, and thumbnails of
// similar items.
//
// Each picture is in the page once, as a CSS rule, however often it is shown.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vfm::report {

/// A small picture with a caption.
struct Thumbnail {
  std::optional<std::size_t> picture;  ///< index in picture_rules(); nothing: no picture
  std::string name;                    ///< alternative text
  std::string caption;
  std::optional<std::size_t> card;  ///< links to the card of this number
};

struct PictureTile {
  std::size_t number = 0;  ///< unique in the page
  std::optional<std::size_t> picture;
  std::string title, kind, text;  ///< `kind`: a few words, such as its size
  std::vector<std::pair<std::string, std::string>> facts;  ///< name and value
  std::string near_title;
  std::vector<Thumbnail> near;
};

/// Returns CSS for Page::style(): of the cards and of the pictures, each from data_url().
std::string picture_rules(const std::vector<std::string>& pictures);
/// Returns markup for Page::markup(): a strip of thumbnails for each label. Strips are side by side
/// if there is room.
std::string strips(const std::vector<std::pair<std::string, std::vector<Thumbnail>>>& strips);
std::string cards(const std::vector<PictureTile>& cards);

}  // namespace vfm::report
