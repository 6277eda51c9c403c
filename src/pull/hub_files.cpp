#include "pull/hub_files.h"

#include <algorithm>
#include <utility>

#include <boost/json.hpp>

#include "base/ascii.h"

namespace chasqui::pull {
namespace {

namespace json = boost::json;

constexpr std::size_t kSha1Digits = 40;
constexpr std::size_t kSha256Digits = 64;
constexpr std::size_t kPathMax = 1024;

Error strange(const std::string& what) { return {ErrorCode::unavailable, "the hub's answer " + what, ""}; }

std::string_view text_at(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

// Whether it is a file that can be kept, and which.
bool read_file(const json::object& entry, HubFile& out) {
  const json::object* content = &entry;
  if (const json::value* const lfs = entry.if_contains("lfs"); lfs != nullptr && lfs->is_object()) {
    content = &lfs->get_object();
    out.large = true;
  }
  const json::value* const size = content->if_contains("size");
  if (text_at(entry, "type") != "file" || size == nullptr) return false;
  boost::system::error_code failed;
  out.bytes = size->to_number<std::uint64_t>(failed);
  out.path = text_at(entry, "path");
  out.oid = text_at(*content, "oid");
  return !failed && is_safe_path(out.path) && is_hex(out.oid, out.large ? kSha256Digits : kSha1Digits);
}

}  // namespace

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kPathMax || path.find('\0') != path.npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

bool is_hex(std::string_view text, std::size_t digits) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == digits && std::ranges::all_of(text, is_digit);
}

Result<std::string> read_commit(std::string_view body) {
  boost::system::error_code failed;
  const json::value value = json::parse(body, failed);
  if (failed || !value.is_object()) return strange("is no JSON object: is that a hub?");
  const std::string_view commit = text_at(value.get_object(), "sha");
  if (!is_hex(commit, kSha1Digits)) return strange("names no commit");
  return std::string(commit);
}

Result<std::vector<HubFile>> read_files(std::string_view body) {
  boost::system::error_code failed;
  const json::value value = json::parse(body, failed);
  if (failed || !value.is_array()) return strange("is no list of files");
  std::vector<HubFile> out;
  for (const json::value& entry : value.get_array()) {
    HubFile file;
    if (entry.is_object() && read_file(entry.get_object(), file)) out.push_back(std::move(file));
  }
  return out;
}

std::string read_next_page(std::string_view link) {
  for (std::size_t at = link.find('<'); at != link.npos; at = link.find('<', at + 1)) {
    const std::size_t end = link.find('>', at);
    if (end == link.npos) return "";
    const std::string_view more = link.substr(end, std::min(link.find('<', end), link.size()) - end);
    if (more.find("rel=\"next\"") != more.npos || more.find("rel=next") != more.npos) {
      return std::string(link.substr(at + 1, end - at - 1));
    }
  }
  return "";
}

std::string in_address(std::string_view text, bool keeps_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = is_ascii_word_or("-._~", c) || (keeps_slashes && c == '/');
    const auto byte = static_cast<unsigned char>(c);
    out += plain ? std::string(1, c) : std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

}  // namespace chasqui::pull
