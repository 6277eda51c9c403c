#include "api/body/multipart.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::size_t kBoundaryMax = 70;        // as the RFC has it
constexpr std::size_t kPartHeadMax = 8 * 1024;  // headers of one part
constexpr std::string_view kFormType = "multipart/form-data";

Error bad_form(std::string why) { return {ErrorCode::invalid_request, "the upload " + std::move(why), ""}; }

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Takes `name=value` or `name="value"` off the front, with the semicolon before it. False: there is none.
bool take_parameter(std::string_view& rest, std::string_view& name, std::string& value) {
  rest = trimmed(rest);
  if (!rest.starts_with(';')) return false;
  rest = trimmed(rest.substr(1));
  const std::size_t equals = rest.find('=');
  if (equals == std::string_view::npos) return false;
  name = trimmed(rest.substr(0, equals));
  rest = trimmed(rest.substr(equals + 1));
  value.clear();
  if (!rest.starts_with('"')) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    value = trimmed(rest.substr(0, end));
    rest.remove_prefix(end);
    return true;
  }
  std::size_t at = 1;
  for (; at < rest.size() && rest[at] != '"'; ++at) {
    // Only before these is it an escape: old browsers send paths with backslashes.
    const bool escape = rest[at] == '\\' && at + 1 < rest.size() && (rest[at + 1] == '"' || rest[at + 1] == '\\');
    if (escape) ++at;
    value += rest[at];
  }
  if (at >= rest.size()) return false;
  rest.remove_prefix(at + 1);
  return true;
}

Result<void> read_disposition(std::string_view value, FormPart& part, bool& named) {
  const std::size_t end = std::min(value.find(';'), value.size());
  if (!equals_ignoring_case(trimmed(value.substr(0, end)), "form-data")) {
    return bad_form("has a part whose Content-Disposition is not form-data");
  }
  std::string_view rest = value.substr(end);
  std::string_view name;
  std::string text;
  while (take_parameter(rest, name, text)) {
    if (equals_ignoring_case(name, "name")) {
      part.name = text;
      named = true;
    } else if (equals_ignoring_case(name, "filename")) {
      part.filename = text;
    }
  }
  if (!trimmed(rest).empty()) return bad_form("has a Content-Disposition that cannot be read");
  return {};
}

Result<FormPart> read_part_head(std::string_view head) {
  FormPart part;
  bool named = false;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return bad_form("has a part with a header that has no colon");
    const std::string_view name = trimmed(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (equals_ignoring_case(name, "Content-Disposition")) {
      if (auto read = read_disposition(value, part, named); !read) return read.error();
    } else if (equals_ignoring_case(name, "Content-Transfer-Encoding")) {
      const bool plain = equals_ignoring_case(value, "binary") || equals_ignoring_case(value, "8bit") ||
                         equals_ignoring_case(value, "7bit");
      if (!plain) return bad_form("has a part with a Content-Transfer-Encoding; send files as they are");
    }
  }
  if (!named) return bad_form("has a part without a name");
  return part;
}

// What stands behind a delimiter: the next part, the end, or neither, so that it was no delimiter.
enum class Behind { part, end, text };

Behind behind_delimiter(std::string_view body, std::size_t& at) {
  if (body.substr(at).starts_with("--")) return Behind::end;
  std::size_t line_end = body.find_first_not_of(" \t", at);
  if (line_end == std::string_view::npos || !body.substr(line_end).starts_with("\r\n")) return Behind::text;
  at = line_end + 2;
  return Behind::part;
}

}  // namespace

Result<std::string> form_boundary(std::string_view content_type) {
  const std::size_t end = std::min(content_type.find(';'), content_type.size());
  if (!equals_ignoring_case(trimmed(content_type.substr(0, end)), kFormType)) {
    return invalid_field("Content-Type", "Content-Type must be multipart/form-data");
  }
  std::string_view rest = content_type.substr(end);
  std::string_view name;
  std::string value;
  while (take_parameter(rest, name, value)) {
    if (!equals_ignoring_case(name, "boundary")) continue;
    const bool plain = std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
    if (!plain || value.empty() || value.size() > kBoundaryMax || value.ends_with(' ')) break;
    return value;
  }
  return invalid_field("Content-Type", "Content-Type must have a boundary of up to 70 characters");
}

Result<std::vector<FormPart>> read_form(std::string_view body, const std::string& boundary) {
  const std::string delimiter = "\r\n--" + boundary;
  std::vector<FormPart> parts;
  // The first delimiter may begin the body.
  std::size_t at = 0;
  if (body.starts_with(std::string_view(delimiter).substr(2))) {
    at = delimiter.size() - 2;
  } else {
    const std::size_t first = body.find(delimiter);
    if (first == std::string_view::npos) return bad_form("does not have the boundary that its Content-Type says");
    at = first + delimiter.size();
  }
  Behind behind = behind_delimiter(body, at);
  while (behind == Behind::part) {
    if (parts.size() == kSizeLimit<"batch_parts">) {
      return bad_form("has more than " + std::to_string(kSizeLimit<"batch_parts">) + " parts");
    }
    const bool bare = body.substr(at).starts_with("\r\n");
    const std::size_t head_end = bare ? at : body.substr(at, kPartHeadMax).find("\r\n\r\n");
    if (head_end == std::string_view::npos) return bad_form("has a part whose headers do not end");
    auto part = read_part_head(bare ? std::string_view() : body.substr(at, head_end));
    if (!part) return part.error();
    const std::size_t begin = bare ? at + 2 : at + head_end + 4;
    // An empty part: its delimiter's line end is that of its headers.
    std::size_t search = begin - 2;
    for (;;) {
      const std::size_t end = body.find(delimiter, search);
      if (end == std::string_view::npos) return bad_form("ends before its last boundary");
      at = end + delimiter.size();
      behind = behind_delimiter(body, at);
      search = end + 2;
      if (behind == Behind::text) continue;
      part->content = body.substr(begin, std::max(end, begin) - begin);
      break;
    }
    parts.push_back(std::move(*part));
  }
  if (behind != Behind::end) return bad_form("cannot be read after its first boundary");
  return parts;
}

}  // namespace chasqui
