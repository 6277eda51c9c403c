// GGUF files in folders and in lists: which of them are models, in how many parts, and what their names say. What lies
// beside a model (projectors, draft heads, importance matrices) is none. Reads folders, never a file; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui::cli {

struct ModelFile {
  std::filesystem::path path;  // of its first part
  std::string name;            // of the file, without the number of a part and the ending
  std::string tag;             // its last word in capitals, as llama.cpp takes it: "Q4_K_M"; may be empty
  std::uint64_t bytes = 0;     // of all parts
  std::int32_t parts = 1;      // that it must have
  std::int32_t found = 1;      // … and has

  bool complete() const { return parts == found; }
};

enum class Depth { folder, below };

// By name. A folder that cannot be read has none; a link to a file is one.
std::vector<ModelFile> model_files(const std::filesystem::path& folder, Depth depth);

struct ListedFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
};
// The same of a list, in any order.
std::vector<ModelFile> models_among(std::vector<ListedFile> files);

// All of its parts, the first one first, whether they are there or not.
std::vector<std::filesystem::path> parts_of(const ModelFile& file);

// The model that a quantization means, in letters of any size: a word of its path below the folder. Without one Q4_K_M,
// or else Q8_0, or else the first one, as llama.cpp chooses. Null: there is none.
const ModelFile* choose_model(const std::vector<ModelFile>& files, const std::filesystem::path& folder,
                              std::string_view quant);

// The tag where it is a format of weights; else empty.
std::string format_of(const ModelFile& file);

std::string in_capitals(std::string_view text);
// A name that can lead out of no folder: neither empty nor hidden, and without a slash.
bool is_plain_name(std::string_view text);

}  // namespace chasqui::cli
