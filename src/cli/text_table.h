// Rows of cells as aligned columns, for a terminal. Pure.
#pragma once

#include <string>
#include <vector>

namespace chasqui::cli {

// A line for each row; the cells of a column begin below each other. Rows have the same number of cells.
std::string text_table(std::vector<std::vector<std::string>> rows);

}  // namespace chasqui::cli
