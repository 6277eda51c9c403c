// One line of a batch's input file: a request that is run when its turn comes. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "jobs/job_folder.h"

namespace chasqui {

// The routes that lines may be for.
bool is_batch_endpoint(std::string_view path);
// "/v1/chat/completions, …", for messages.
std::string batch_endpoints();

struct BatchLine {
  std::string custom_id;
  std::string body;   // JSON
  std::string model;  // that the body names; empty: none
};

// What is wrong with a line, as clients are told.
struct LineFault {
  std::string code;     // OpenAI's words: "invalid_json_line", "duplicate_custom_id" …
  std::string message;  // names the line and the field
  std::string param;    // the field; empty: the line as a whole
  std::uint32_t line = 0;
};

// Only what is wrong comes back as an error.
class BatchLineReader {
 public:
  explicit BatchLineReader(std::string endpoint) : endpoint_(std::move(endpoint)) {}

  // On failure `fault` says why.
  bool read(std::string_view text, std::uint32_t number, BatchLine& line, LineFault& fault) const;

 private:
  const std::string endpoint_;
};

// What validation has found of a whole file.
struct CheckedLines {
  std::size_t lines = 0;
  std::vector<LineFault> faults;  // of the first of them; empty: it is good
};

// Errors: the system's. Nothing of the lines stays in memory, but for hashes of their ids.
Result<CheckedLines> check_lines(const OpenFile& file, const std::string& endpoint);

}  // namespace chasqui
