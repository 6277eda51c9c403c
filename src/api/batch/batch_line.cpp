#include "api/batch/batch_line.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/json.hpp>

#include "api/body/fields.h"
#include "base/checksum.h"
#include "base/limits.h"
#include "jobs/line_reader.h"

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr std::string_view kBatchEndpoints[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                                "/v1/embeddings"};

constexpr std::size_t kLineMax = kSizeLimit<"batch_line_bytes">;

LineFault fault_of(std::uint32_t line, std::string code, std::string param, const std::string& message) {
  return {std::move(code), "line " + std::to_string(line) + ": " + message, std::move(param), line};
}

LineFault long_line(std::uint32_t line) {
  return fault_of(line, "line_too_long", "", "a line has at most " + std::to_string(kLineMax) + " bytes");
}

std::string hash_of_id(std::string_view id) {
  const Checksum sum = checksum(std::as_bytes(std::span(id.data(), id.size())));
  return {reinterpret_cast<const char*>(sum.data()), sum.size()};
}

}  // namespace

bool is_batch_endpoint(std::string_view path) {
  return std::ranges::find(kBatchEndpoints, path) != std::end(kBatchEndpoints);
}

std::string batch_endpoints() {
  std::string out;
  for (const std::string_view path : kBatchEndpoints) out += (out.empty() ? "" : ", ") + std::string(path);
  return out;
}

bool BatchLineReader::read(std::string_view text, std::uint32_t number, BatchLine& line, LineFault& fault) const {
  auto object = parse_json_object(text);
  if (!object) {
    std::string why = object.error().message;
    if (why.starts_with("the body ")) why.replace(0, 8, "it");
    fault = fault_of(number, "invalid_json_line", "", why);
    return false;
  }
  Fields fields(*object);
  const auto id = fields.string("custom_id");
  const auto method = fields.string("method");
  const auto url = fields.string("url");
  const json::object* const body = fields.object("body");
  const std::string bytes = std::to_string(kSizeLimit<"batch_id_bytes">);
  if (!id || id->empty() || id->size() > kSizeLimit<"batch_id_bytes">) {
    fields.refuse("custom_id", "a string of 1 to " + bytes + " bytes");
  }
  if (!method || *method != "POST") fields.refuse("method", "\"POST\"");
  if (!url || *url != endpoint_) fields.refuse("url", "the endpoint of the batch, " + endpoint_);
  if (body == nullptr) fields.refuse("body", "an object: the request");
  if (body != nullptr) {
    Fields inner(*body, "body");
    const auto stream = inner.boolean("stream");
    if (stream.value_or(false)) inner.refuse("stream", "false, or left out: a batch answers whole");
    line.model = inner.string("model").value_or(std::string_view());
    if (!inner.ok()) fields.refuse(inner.error());
  }
  if (!fields.ok()) {
    const std::string& field = fields.error().field;
    const std::string code = field == "url" ? "mismatched_url" : field == "method" ? "invalid_method" : "invalid_field";
    fault = fault_of(number, code, field, fields.error().message);
    return false;
  }
  line.custom_id = *id;
  line.body = json::serialize(*body);
  return true;
}

Result<CheckedLines> check_lines(const OpenFile& file, const std::string& endpoint) {
  CheckedLines out;
  const BatchLineReader reader(endpoint);
  LineReader lines(file, kLineMax);
  std::unordered_set<std::string> ids;
  while (out.faults.size() < kSizeLimit<"batch_errors">) {
    const auto next = lines.next();
    if (!next) return next.error();
    if (!*next) break;
    const FileLine& found = **next;
    if (++out.lines > kSizeLimit<"batch_lines">) {
      const std::string most = std::to_string(kSizeLimit<"batch_lines">);
      out.faults.push_back(
          fault_of(found.place.number, "too_many_lines", "", "a batch has at most " + most + " lines"));
      return out;
    }
    BatchLine line;
    LineFault fault;
    if (found.too_long) {
      out.faults.push_back(long_line(found.place.number));
    } else if (!reader.read(found.text, found.place.number, line, fault)) {
      out.faults.push_back(std::move(fault));
    } else if (!ids.insert(hash_of_id(line.custom_id)).second) {
      out.faults.push_back(fault_of(found.place.number, "duplicate_custom_id", "custom_id",
                                    "custom_id must be unique in the file; an earlier line has the same"));
    }
  }
  if (out.lines == 0) out.faults.push_back({"empty_file", "the input file has no lines", "", 0});
  return out;
}

}  // namespace chasqui
