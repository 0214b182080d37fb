// SPDX-License-Identifier: Apache-2.0
#include "accesses.h"

#include <errno.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>

#include "emulation.h"
#include "watch.h"

namespace vfm::emulation {
namespace {

// A kernel that takes no more than this is in no table. Some sectors more are what the odd sizes of
// tests cost.
constexpr double kFewWavefronts = 1.05, kFewSectors = 1.25;
// Other versions of the compiler join or repeat a load here and there.
constexpr double kAlike = 1.02, kRounded = 0.006;

struct Row {
  std::string comment;  // the lines before it
  double wavefronts = 1, sectors = 1;
};
using Key = std::pair<std::string, std::string>;  // program and kernel
struct Table {
  std::string head;  // until the first empty line
  std::map<Key, Row> rows;
};

Table read_table(const std::string& path) {
  Table table;
  std::ifstream file(path);
  if (!file) stop(("cannot open the table of accesses, " + path).c_str());
  std::string line, comment;
  while (std::getline(file, line) && !line.empty())
    table.head += line + '\n';
  while (std::getline(file, line)) {
    if (line.empty()) continue;
    if (line[0] == '#') {
      comment += line + '\n';
      continue;
    }
    Row row;
    std::array<char, 64> program{};
    int read = 0;
    if (std::sscanf(line.c_str(), "%lf %lf %63s %n", &row.wavefronts, &row.sectors, program.data(),
                    &read) != 3)
      stop(("not a row of accesses.txt: " + line).c_str());
    row.comment = std::exchange(comment, "");
    table.rows[{program.data(), line.substr(static_cast<std::size_t>(read))}] = row;
  }
  return table;
}

void write_table(const std::string& path, const Table& table) {
  std::ofstream file(path);
  file << table.head << '\n';
  for (const auto& [key, row] : table.rows) {
    std::array<char, 512> line;
    std::snprintf(line.data(), line.size(), "%5.2f %5.2f  %-19s %s\n", row.wavefronts, row.sectors,
                  key.first.c_str(), key.second.c_str());
    file << row.comment << line.data();
  }
  if (!file.flush()) stop(("cannot write the table of accesses, " + path).c_str());
}

std::string program_name() {
  const std::string name = program_invocation_short_name;
  return name.substr(0, name.find("_emulated_test"));
}

double ratio(std::uint64_t taken, std::uint64_t least) {
  return least == 0 ? 1 : static_cast<double>(taken) / static_cast<double>(least);
}

std::string figures(const Row& row) {
  std::array<char, 80> text;
  std::snprintf(text.data(), text.size(),
                "%.2f times the least wavefronts, %.2f times the least sectors", row.wavefronts,
                row.sectors);
  return text.data();
}

bool within(const Row& row, const Row& limits) {
  return row.wavefronts <= limits.wavefronts * kAlike + kRounded &&
         row.sectors <= limits.sectors * kAlike + kRounded;
}

// The rows that belong into the table, of kernels that ran here.
std::map<std::string, Row> take_rows() {
  std::map<std::string, Row> rows;
  for (const auto& [kernel, t] : take_traffic())
    rows[kernel] = {"", ratio(t.wavefronts, t.least_wavefronts), ratio(t.sectors, t.least_sectors)};
  return rows;
}

void write_rows(const std::string& path, const std::map<std::string, Row>& rows) {
  Table table = read_table(path);
  const std::string program = program_name();
  std::map<Key, Row> before = std::exchange(table.rows, {});
  for (const auto& [key, row] : before)
    if (key.first != program) table.rows[key] = row;
  for (const auto& [kernel, row] : rows)
    if (row.wavefronts > kFewWavefronts || row.sectors > kFewSectors) {
      table.rows[{program, kernel}] = row;
      table.rows[{program, kernel}].comment = before[{program, kernel}].comment;
    }
  write_table(path, table);
}

void print_places() {
  for (const auto& [place, t] : take_places())
    std::printf("%5.2f %5.2f  %s\n", ratio(t.wavefronts, t.least_wavefronts),
                ratio(t.sectors, t.least_sectors), place.c_str());
}

}  // namespace

std::vector<std::string> compare_accesses(const std::string& path) {
  if (!VFM_SEES_ACCESSES) return {};
  const char* const asked = std::getenv("VFM_EMULATION");
  const std::string mode = asked == nullptr ? "" : asked;
  const std::map<std::string, Row> rows = take_rows();
  if (mode == "places") print_places();
  if (mode == "write") {
    write_rows(path, rows);
    return {};
  }
  const Table table = read_table(path);
  const std::string program = program_name();
  std::vector<std::string> wrong;
  for (const auto& [kernel, row] : rows) {
    const auto known = table.rows.find({program, kernel});
    const Row limits =
        known != table.rows.end() ? known->second : Row{"", kFewWavefronts, kFewSectors};
    if (!within(row, limits))
      wrong.push_back(kernel + " takes " + figures(row) + "; accesses.txt " +
                      (known != table.rows.end() ? "says " : "has no row, so at most ") +
                      figures(limits));
  }
  for (const auto& [key, row] : table.rows)
    if (key.first == program && rows.count(key.second) == 0)
      wrong.push_back("accesses.txt has a row of " + key.second + ", which did not run");
  return wrong;
}

}  // namespace vfm::emulation
