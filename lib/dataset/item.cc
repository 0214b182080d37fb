// SPDX-License-Identifier: Apache-2.0
#include "dataset/item.h"

#include <fmt/core.h>

#include "io/file.h"
#include "io/packed.h"
#include "shard/writer.h"

namespace vfm::dataset {

std::string unpacked_path(const std::string& folder, std::uint64_t line, std::size_t column) {
  return io::join_path(folder, fmt::format("{}-{}.tar", line, column));
}

std::uint32_t Shapes::number(const Shape& shape) {
  const auto [at, added] = numbers_.emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
  if (added) shapes_.push_back(&at->first);  // Pointers to elements of a std::map stay valid.
  return at->second;
}

void put_facts(std::string& out, const Item& item) {
  io::put_hash(out, item.content);
  io::put_hash(out, item.identity);
  io::put_number(out, item.columns.size());
  for (const ColumnPlace& place : item.columns) {
    // Offsets in a tar are multiples of the block size.
    io::put_number(out, place.row);
    io::put_number(out, place.offset / shard::kTarBlock);
    io::put_number(out, place.size / shard::kTarBlock);
  }
  for (const double value : {item.width, item.height, item.seconds, item.fps, item.frames})
    io::put_real(out, value);
  for (const std::uint64_t value : {item.media_bytes, item.tar_bytes, item.json_bytes})
    io::put_number(out, value);
}

void take_facts(std::string_view& rest, Item& item, bool content) {
  if (content) item.content = io::hash_text(io::take_hash(rest));
  item.identity = io::hash_text(io::take_hash(rest));
  const std::uint64_t columns = io::take_number(rest);
  if (columns > rest.size()) io::fail_packed();
  item.columns.resize(columns);
  for (ColumnPlace& place : item.columns) {
    place.row = static_cast<std::uint32_t>(io::take_number(rest));
    place.offset = io::take_number(rest) * shard::kTarBlock;
    place.size = io::take_number(rest) * shard::kTarBlock;
  }
  for (double* value : {&item.width, &item.height, &item.seconds, &item.fps, &item.frames})
    *value = io::take_real(rest);
  for (std::uint64_t* value : {&item.media_bytes, &item.tar_bytes, &item.json_bytes})
    *value = io::take_number(rest);
}

void put_shape(std::string& out, const Shape& shape) {
  for (const std::string* text :
       {&shape.media, &shape.extras, &shape.image_format, &shape.image_mode, &shape.bin})
    io::put_text(out, *text);
}

Shape take_shape(std::string_view& rest) {
  Shape shape;
  for (std::string* text :
       {&shape.media, &shape.extras, &shape.image_format, &shape.image_mode, &shape.bin})
    *text = io::take_text(rest);
  return shape;
}

void put_input(std::string& out, const InputShard& input) {
  io::put_text(out, input.name);
  io::put_number(out, input.line);
  io::put_number(out, input.tars.size());
  for (std::size_t c = 0; c < input.tars.size(); ++c) {
    io::put_text(out, input.tars[c]);
    io::put_number(out, input.packed[c]);
  }
}

InputShard take_input(std::string_view& rest) {
  InputShard input;
  input.name = io::take_text(rest);
  input.line = io::take_number(rest);
  for (std::uint64_t left = io::take_number(rest); left > 0; --left) {
    input.tars.emplace_back(io::take_text(rest));
    input.packed.push_back(io::take_number(rest) != 0);
  }
  return input;
}

}  // namespace vfm::dataset
