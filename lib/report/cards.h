// Things with a picture, text and numbers, and what is near to them, for a Page.
//
// Each picture stands once in the page, as a rule for a class, however often it is shown.
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
  std::optional<std::size_t> picture;  ///< which of picture_rules(); nothing: it has none
  std::string name;                    ///< what is seen, for those who do not see it
  std::string caption;
  std::optional<std::size_t> card;  ///< leads to the card of this number
};

struct Card {
  std::size_t number = 0;  ///< no other card of the page has it
  std::optional<std::size_t> picture;
  std::string title, kind, text;  ///< `kind`: a few words, such as its size
  std::vector<std::pair<std::string, std::string>> facts;  ///< name and value
  std::string near_title;
  std::vector<Thumbnail> near;
};

/// For Page::style(): how cards look, and the pictures, each from data_url().
std::string picture_rules(const std::vector<std::string>& pictures);
/// For Page::markup(): thumbnails side by side under each label, the strips beside each other where
/// there is room.
std::string strips(const std::vector<std::pair<std::string, std::vector<Thumbnail>>>& strips);
std::string cards(const std::vector<Card>& cards);

}  // namespace vfm::report
