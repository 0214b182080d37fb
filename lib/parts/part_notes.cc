// SPDX-License-Identifier: Apache-2.0
#include "parts/part_notes.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "parts/part_run.h"

namespace vfm::parts {
namespace {

std::string folder_of(const std::string& tool) {
  return tool + "/" + std::string(kNotes);
}

/// Takes a number and the dash after it from the front of `text`. Returns false if there is none.
template <class Number>
bool take(std::string_view& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop == end || *stop != '-') return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
  return true;
}

}  // namespace

std::optional<PartNote> parse_note(std::string_view name) {
  PartNote note;
  if (!take(name, note.part) || !take(name, note.ended) || !take(name, note.seconds))
    return std::nullopt;
  note.node_kind = name;
  return note;
}

void write_note(io::Store& store, const std::string& tool, const PartNote& note) {
  store.create(fmt::format("{}/{}-{}-{:.3f}-{}", folder_of(tool), part_name(note.part), note.ended,
                           note.seconds, note.node_kind),
               "");
}

void remove_notes(io::Store& store, const std::string& tool, int part) {
  const std::string folder = folder_of(tool), begin = part_name(part) + "-";
  for (const std::string& name : store.list(folder))
    if (name.starts_with(begin)) store.remove(folder + "/" + name);
}

void sweep_notes(io::Store& store, const std::string& tool) {
  store.sweep(folder_of(tool));
}

std::vector<PartNote> read_notes(const io::Store& store, const std::string& tool) {
  std::vector<PartNote> notes;
  for (const std::string& name : store.list(folder_of(tool)))
    if (auto note = parse_note(name)) notes.push_back(*std::move(note));
  std::sort(notes.begin(), notes.end(),
            [](const PartNote& a, const PartNote& b) { return a.part < b.part; });
  return notes;
}

}  // namespace vfm::parts
