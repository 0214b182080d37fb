// Tokenizes lines, for comparisons with the reference (scripts/golden/text_tokenizers.py --compare).
// Usage: tokenize FILE [SENTINELS]: FILE is a tokenizer.json, or a sentencepiece model if its name
// does not end in .json. Reads texts in hexadecimal, one a line; writes their ids, one text a line.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "text/tokenizer.h"

namespace {

std::string from_hex(const std::string& line) {
  std::string text;
  for (std::size_t i = 0; i + 1 < line.size(); i += 2)
    text += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string path = argv[1];
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  try {
    const auto tokenizer = path.ends_with(".json")
                               ? vfm::text::make_json_tokenizer(bytes, path)
                               : vfm::text::make_sentencepiece_tokenizer(
                                     bytes, argc > 2 ? std::atoi(argv[2]) : 0, path);
    for (std::string line; std::getline(std::cin, line);) {
      for (const int id :
           tokenizer->encode(from_hex(line), std::numeric_limits<std::size_t>::max()))
        std::cout << id << ' ';
      std::cout << '\n';
    }
  } catch (const vfm::Error& error) {
    std::cerr << "tokenize: " << error.what() << '\n';
    return 1;
  }
}
