#include "cli/text_table.h"

#include <algorithm>

namespace chasqui::cli {

std::string text_table(std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      row[i].resize(widths[i], ' ');
      out += row[i] + "  ";
    }
    out += row.back() + '\n';
  }
  return out;
}

}  // namespace chasqui::cli
