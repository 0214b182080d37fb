// SPDX-License-Identifier: Apache-2.0
#include "dataset/shown_cards.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "dataset/clip_picture.h"
#include "report/cards.h"
#include "share/ordered.h"

namespace vfm::dataset {
namespace {

constexpr std::size_t kLongestCaption = 600, kLongestKey = 80;  // bytes that are shown

std::string number_text(double value) {
  return fmt::format("{:.4g}", value);
}

/// At most so many bytes, whole characters, with a sign where it was cut.
std::string beginning(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end) + "…";
}

/// What is read of a sample.
struct Seen {
  std::string picture, caption;
  Json meta;
};

Seen see_sample(const ShownItem& shown, const SampleReader& reader) {
  Seen seen;
  std::vector<shard::ReadBuffer> buffers;
  JoinedSample sample = reader.read(shown.item, buffers);
  if (media_kind(sample.media) != MediaKind::other) {
    try {
      seen.picture = clip_picture(sample.find(sample.media), shown.item.key + "." + sample.media);
    } catch (const Error& error) {
      log_info("no picture of {}: {}", shown.item.key, error.what());
    }
  }
  if (!shown.whole) return seen;
  if (const std::string_view text = sample.find("txt"); text.data())
    seen.caption = beginning(std::string(text.substr(0, 2 * kLongestCaption)), kLongestCaption);
  seen.meta = std::move(sample.meta);
  return seen;
}

class Cards {
 public:
  Cards(const Shown& shown, const SampleReader& reader, share::Slots& slots) : shown_(shown) {
    std::size_t next = 0;
    share::for_each_ordered<std::size_t, Seen>(
        slots,
        [&]() -> std::optional<std::size_t> {
          if (next == shown_.items.size()) return std::nullopt;
          return next++;
        },
        [&](std::size_t& item) { return see_sample(shown_.items[item], reader); },
        [&](Seen& seen) {
          numbers_.emplace_back();
          if (!seen.picture.empty()) {
            numbers_.back() = pictures_.size();
            pictures_.push_back(report::data_url("image/jpeg", seen.picture));
          }
          seen_.push_back({{}, std::move(seen.caption), std::move(seen.meta)});
        },
        [](const Seen& seen) {
          return seen.picture.size() + seen.caption.size() + held_bytes(seen.meta);
        });
  }

  void add_to(report::Page& page) const {
    page.style(report::picture_rules(pictures_));
    samples(page);
    ends(page);
    fields(page);
  }

 private:
  /// Scores first; what is the same everywhere needs no chart.
  void fields(report::Page& page) const {
    if (shown_.fields.empty()) return;
    page.heading("Numbers");
    std::string same;
    std::vector<std::pair<std::string, std::string>> scores, others;
    for (const NumberField& field : shown_.fields) {
      const std::string of = field.samples < shown_.samples
                                 ? " (" + counted(field.samples, "sample") + ")"
                                 : std::string();
      const std::string low = number_text(field.range.low), high = number_text(field.range.high);
      if (field.range.low < field.range.high)
        (field.score ? scores : others)
            .emplace_back(field.chart, fmt::format("{}: {} to {}{}", report::set_apart(field.name),
                                                   low, high, of));
      else
        same += fmt::format("{}{} {}{}", same.empty() ? "" : ", ", report::set_apart(field.name),
                            low, of);
    }
    scores.insert(scores.end(), others.begin(), others.end());
    page.charts(scores);
    if (!same.empty()) page.paragraph("Always the same: " + same + ".");
    if (shown_.more_fields > 0)
      page.paragraph(
          fmt::format("{} fields that fewer samples have are not drawn.", shown_.more_fields));
  }

  void ends(report::Page& page) const {
    std::size_t told = 0;
    for (const NumberField& field : shown_.fields) {
      if (!field.score) continue;
      if (told++ == 0) page.heading("Least and most");
      const std::string name = report::set_apart(field.name);
      page.markup(report::strips({{name + ", the least", thumbnails(field.lowest)},
                                  {name + ", the most", thumbnails(field.highest)}}));
    }
    if (shown_.scores > told)
      page.paragraph(fmt::format(
          "{} more scores are not shown: {} are at most. vfm-shard report --scores chooses.",
          shown_.scores - told, told));
  }

  void samples(report::Page& page) const {
    page.heading("Samples by chance");
    page.markup(report::cards(cards(shown_.drawn)));
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < shown_.items.size(); ++i)
      if (shown_.items[i].whole && std::count(shown_.drawn.begin(), shown_.drawn.end(), i) == 0)
        others.push_back(i);
    if (others.empty()) return;
    page.heading("Samples with the least and the most of something");
    page.markup(report::cards(cards(others)));
  }

  std::vector<report::Thumbnail> thumbnails(const std::vector<NumberField::End>& ends) const {
    std::vector<report::Thumbnail> list;
    for (const NumberField::End& end : ends)
      list.push_back({numbers_[end.item], name_of(end.item), number_text(end.value), end.item});
    return list;
  }

  std::string name_of(std::size_t item) const {
    return beginning(shown_.items[item].item.key, kLongestKey);
  }

  std::vector<report::PictureTile> cards(const std::vector<std::size_t>& items) const {
    std::vector<report::PictureTile> list;
    for (const std::size_t i : items) {
      const ShownItem& shown = shown_.items[i];
      report::PictureTile card{.number = i,
                               .picture = numbers_[i],
                               .title = name_of(i),
                               .kind = kind(i),
                               .text = seen_[i].caption,
                               .facts = scores(i),
                               .near_title = "nearest by " + shown_.member + ", with the cosine",
                               .near = {}};
      for (const ShownItem::Near& near : shown.near)
        card.near.push_back(
            {numbers_[near.item], name_of(near.item), fmt::format("{:.3f}", near.cosine),
             shown_.items[near.item].whole ? std::optional(near.item) : std::nullopt});
      list.push_back(std::move(card));
    }
    return list;
  }

  /// Size and length, where they are known.
  std::string kind(std::size_t i) const {
    const Item& item = shown_.items[i].item;
    std::string text;
    if (item.pixels() > 0) text = fmt::format("{:.0f} × {:.0f}", item.width, item.height);
    if (item.seconds > 0)
      text += fmt::format("{}{} s", text.empty() ? "" : ", ", number_text(item.seconds));
    return text;
  }

  std::vector<std::pair<std::string, std::string>> scores(std::size_t i) const {
    std::vector<std::pair<std::string, std::string>> list;
    for (const NumberField& field : shown_.fields)
      if (const auto value = seen_[i].meta.find(field.name);
          field.score && value != seen_[i].meta.end() && value->is_number())
        list.emplace_back(field.name, number_text(value->get<double>()));
    return list;
  }

  const Shown& shown_;
  std::vector<std::optional<std::size_t>> numbers_;  // by item, of its picture
  std::vector<std::string> pictures_;
  std::vector<Seen> seen_;
};

}  // namespace

void add_shown(report::Page& page, const Shown& shown, const SampleReader& reader,
               share::Slots& slots) {
  Cards(shown, reader, slots).add_to(page);
}

}  // namespace vfm::dataset
