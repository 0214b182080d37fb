// SPDX-License-Identifier: Apache-2.0
#include "places.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>

extern unsigned char __executable_start[];  // NOLINT: the linker's

namespace vfm::emulation {
namespace {

// Without its return type, namespaces and parameters.
std::string bare_name(std::string name) {
  for (const char* part : {"(anonymous namespace)::", "vfm::kernels::", "(vfm::kernels::Type)"})
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at))
      name.erase(at, std::strlen(part));
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth > 0) continue;
    if (name[i] == ' ' && begin == 0) begin = i + 1;
    if (name[i] == '(') return name.substr(begin, i - begin);
  }
  return name.substr(begin);
}

std::string last_part(const std::string& path) {
  const auto slash = path.find_last_of('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find(' '));  // without "(discriminator 2)"
}

void ask(const std::vector<std::uint32_t>& offsets, std::size_t first, std::size_t end,
         std::vector<Place>& places) {
  std::array<char, 4096> self{};
  if (readlink("/proc/self/exe", self.data(), self.size() - 1) < 0) return;
  const auto base = reinterpret_cast<std::uintptr_t>(__executable_start);
  std::string command = std::string("addr2line -a -f -C -i -e '") + self.data() + "'";
  for (std::size_t i = first; i < end; ++i) {
    std::array<char, 32> text;
    // A program that is not loaded where it likes has its addresses from 0 on.
    std::snprintf(text.data(), text.size(), " %#lx",
                  static_cast<unsigned long>((base >= 1u << 30 ? 0 : base) + offsets[i]));
    command += text.data();
  }
  FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return;
  std::array<char, 8192> buffer;
  std::size_t at = first;
  for (int line = 0; std::fgets(buffer.data(), buffer.size(), pipe) != nullptr;) {
    std::string text(buffer.data());
    text.erase(text.find_last_not_of('\n') + 1);
    if (text.compare(0, 2, "0x") == 0) {
      if (line > 0) ++at;
      line = 1;
    } else if (at < end && line++ % 2 == 1) {
      places[at].function = bare_name(text);  // the last is what all was inlined into
    } else if (at < end && text.compare(0, 2, "??") != 0) {
      places[at].line += (places[at].line.empty() ? "" : " < ") + last_part(text);
    }
  }
  pclose(pipe);
}

}  // namespace

std::uint32_t offset_of(const void* code) {
  return static_cast<std::uint32_t>(static_cast<const unsigned char*>(code) - __executable_start);
}

std::vector<Place> describe(const std::vector<std::uint32_t>& offsets) {
  constexpr std::size_t kAtOnce = 2000;
  std::vector<Place> places(offsets.size());
  for (std::size_t i = 0; i < offsets.size(); i += kAtOnce)
    ask(offsets, i, std::min(i + kAtOnce, offsets.size()), places);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (places[i].line.empty()) places[i].line = "code at " + std::to_string(offsets[i]);
  return places;
}

}  // namespace vfm::emulation
