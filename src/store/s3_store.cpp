#include "store/s3_store.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "store/http_refusal.h"
#include "store/object_name.h"
#include "store/xml_text.h"

namespace chasqui::store {
namespace {

constexpr std::size_t kPageMax = std::size_t{8} << 20;
constexpr std::size_t kEmptyPagesMax = 8;

// As the signature wants it.
std::string query_value(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_ascii_word_or("-_.~", c)) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

}  // namespace

S3Store::S3Store(S3Place place, std::unique_ptr<HttpExchanges> http)
    : place_(std::move(place)),
      shown_("the store s3://" + place_.bucket + (place_.prefix.empty() ? "" : '/' + place_.prefix)),
      http_(std::move(http)) {}

std::string S3Store::url_of(const std::string& name) const {
  return place_.endpoint + '/' + place_.bucket + '/' + place_.prefix + name;
}

std::string S3Store::list_url(const std::string& before, const std::string& token) const {
  // In the order of their names, which the signature wants; libcurl before 8 does not sort.
  std::string query = token.empty() ? "" : "continuation-token=" + query_value(token) + '&';
  query += "delimiter=%2F&list-type=2&max-keys=1000&prefix=" + query_value(before);
  return place_.endpoint + '/' + place_.bucket + '?' + query;
}

Error S3Store::refusal(const HttpAnswer& answer) const {
  const std::string code = s3_code(answer);
  Error error = refusal_of(answer, shown_, code);
  // Anything may say 404, as a proxy before the wrong server; that an object is not there, only the store.
  if (error.code == ErrorCode::not_found && code != "NoSuchKey") error.code = ErrorCode::unavailable;
  return error;
}

Error S3Store::nonsense(const std::string& why) const {
  return {ErrorCode::unavailable, shown_ + " sends a list " + why, ""};
}

ObjectStore::Outcomes S3Store::put(std::span<const StoredObject> objects) {
  Outcomes out(objects.size());
  std::vector<HttpCall> calls;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    out[i] = name_fault(objects[i].name);
    if (out[i]) continue;
    calls.push_back({"PUT", url_of(objects[i].name), {"Content-Type: application/octet-stream"}, objects[i].bytes});
    which.push_back(i);
  }
  const auto answers = http_->run(calls);
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (!is_success(answers[i])) out[which[i]] = refusal(answers[i]);
  }
  return out;
}

HttpObjects S3Store::objects() {
  return {*http_, [this](const std::string& name) { return url_of(name); },
          [this](const HttpAnswer& answer) { return refusal(answer); }};
}

std::vector<Result<std::vector<std::byte>>> S3Store::get(std::span<const std::string> names, std::size_t most) {
  return objects().get(names, most);
}

ObjectStore::Outcomes S3Store::remove(std::span<const std::string> names) { return objects().remove(names); }

Result<std::string> S3Store::read_page(const HttpAnswer& answer, const std::string& before,
                                       std::vector<std::string>& names) const {
  if (answer.status != 200) return refusal(answer);
  const auto page = read_xml(answer.text());
  if (!page || page->name != "ListBucketResult") return nonsense("that makes no sense");
  for (const XmlElement& entry : page->children) {
    std::string_view name;
    if (entry.name == "Contents") {
      name = entry.text_of("Key");
    } else if (entry.name == "CommonPrefixes") {
      name = entry.text_of("Prefix");
      if (name.ends_with('/')) name.remove_suffix(1);
    } else {
      continue;
    }
    if (!name.starts_with(before)) return nonsense("of something else");
    name.remove_prefix(before.size());
    // Others may have put something beside ours; and some stores have an object for each folder.
    if (is_name_part(name)) names.emplace_back(before.substr(place_.prefix.size()) + std::string(name));
  }
  if (page->text_of("IsTruncated") != "true") return std::string();
  std::string token(page->text_of("NextContinuationToken"));
  if (token.empty()) return nonsense("that does not say how it goes on");
  return token;
}

Result<std::vector<std::string>> S3Store::list(const std::string& folder, std::size_t most) {
  const auto fault = name_fault(folder);
  if (fault && !folder.empty()) return *fault;
  const std::string before = place_.prefix + (folder.empty() ? "" : folder + '/');
  std::vector<std::string> names;
  std::string token;
  std::size_t empty_pages = 0;
  do {
    const std::size_t had = names.size();
    const HttpCall call{"GET", list_url(before, token), {}, {}, kPageMax};
    auto next = read_page(http_->run({&call, 1}).front(), before, names);
    if (!next) return next.error();
    token = std::move(*next);
    if (names.size() > most) return nonsense("of more than " + std::to_string(most) + " entries");
    if (names.size() == had && !token.empty() && ++empty_pages > kEmptyPagesMax) return nonsense("that does not end");
  } while (!token.empty());
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace chasqui::store
