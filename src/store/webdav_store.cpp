#include "store/webdav_store.h"

#include <algorithm>
#include <utility>

#include "net/http_request.h"
#include "store/http_refusal.h"
#include "store/object_name.h"
#include "store/xml_text.h"

namespace chasqui::store {
namespace {

constexpr std::string_view kWanted =
    R"(<?xml version="1.0"?><propfind xmlns="DAV:"><prop><resourcetype/></prop></propfind>)";

// Of a request whose folder is missing: servers differ.
bool says_missing_folder(const HttpAnswer& answer) { return answer.status == 409 || answer.status == 404; }
// nginx answers a PUT with 500 then, when it cannot rename the file.
bool may_miss_folder(const HttpAnswer& answer) { return says_missing_folder(answer) || answer.status == 500; }

// Decoded, without the server's name and without a slash at its end; nothing where it is no path.
std::optional<std::string> path_of_href(std::string_view href) {
  const auto blank = [](char c) { return c == ' ' || c == '\r' || c == '\n' || c == '\t'; };
  while (!href.empty() && blank(href.front())) href.remove_prefix(1);
  while (!href.empty() && blank(href.back())) href.remove_suffix(1);
  if (const std::size_t scheme = href.find("://"); scheme != std::string_view::npos) {
    const std::size_t slash = href.find('/', scheme + 3);
    href = slash == std::string_view::npos ? "/" : href.substr(slash);
  }
  auto path = net::percent_decode(href);
  if (!path || !path->starts_with('/')) return std::nullopt;
  while (path->ends_with('/')) path->pop_back();
  return path;
}

}  // namespace

WebdavStore::WebdavStore(WebdavPlace place, std::unique_ptr<HttpExchanges> http)
    : place_(std::move(place)), shown_("the store " + place_.origin + place_.path), http_(std::move(http)) {}

Error WebdavStore::refusal(const HttpAnswer& answer) const { return refusal_of(answer, shown_); }

Error WebdavStore::nonsense(const std::string& why) const {
  return {ErrorCode::unavailable, shown_ + " sends a list " + why, ""};
}

Result<void> WebdavStore::make_folder(const std::string& path) {
  const HttpCall call{"MKCOL", url_of(path + '/')};
  HttpAnswer answer = http_->run({&call, 1}).front();
  if (says_missing_folder(answer) && path.rfind('/') > 0) {
    if (auto made = make_folder(path.substr(0, path.rfind('/'))); !made) return made;
    answer = http_->run({&call, 1}).front();
  }
  if (is_success(answer) || answer.status == 405) return {};  // 405: it is there
  Error error = refusal(answer);
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::unavailable;
  return error;
}

std::vector<std::size_t> WebdavStore::put_some(std::span<const StoredObject> objects,
                                               std::span<const std::size_t> which, Outcomes& out) {
  std::vector<std::size_t> missing;
  std::vector<HttpCall> calls;
  for (const std::size_t i : which) {
    calls.push_back(
        {"PUT", url_of(path_of(objects[i].name)), {"Content-Type: application/octet-stream"}, objects[i].bytes});
  }
  const auto answers = http_->run(calls);
  for (std::size_t i = 0; i < which.size(); ++i) {
    out[which[i]].reset();
    if (is_success(answers[i])) continue;
    if (may_miss_folder(answers[i])) missing.push_back(which[i]);
    out[which[i]] = refusal(answers[i]);
    if (out[which[i]]->code == ErrorCode::not_found) out[which[i]]->code = ErrorCode::unavailable;
  }
  return missing;
}

ObjectStore::Outcomes WebdavStore::put(std::span<const StoredObject> objects) {
  Outcomes out(objects.size());
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    out[i] = name_fault(objects[i].name);
    if (!out[i]) which.push_back(i);
  }
  std::map<std::string, std::optional<Error>> folders;
  std::vector<std::size_t> again;
  for (const std::size_t i : put_some(objects, which, out)) {
    const std::string path = path_of(objects[i].name);
    const std::string folder = path.substr(0, path.rfind('/'));
    if (!folders.contains(folder)) {
      const auto made = folder.empty() ? Result<void>() : make_folder(folder);
      folders[folder] = made ? std::nullopt : std::optional(made.error());
    }
    if (folders[folder]) {
      out[i] = folders[folder];
    } else {
      again.push_back(i);
    }
  }
  put_some(objects, again, out);
  return out;
}

HttpObjects WebdavStore::objects() {
  return {*http_, [this](const std::string& name) { return url_of(path_of(name)); },
          [this](const HttpAnswer& answer) { return refusal(answer); }};
}

std::vector<Result<std::vector<std::byte>>> WebdavStore::get(std::span<const std::string> names, std::size_t most) {
  return objects().get(names, most);
}

ObjectStore::Outcomes WebdavStore::remove(std::span<const std::string> names) { return objects().remove(names); }

Result<std::vector<std::string>> WebdavStore::read_list(const HttpAnswer& answer, const std::string& folder,
                                                        std::size_t most) const {
  const auto document = answer.status == 207 ? read_xml(answer.text()) : std::nullopt;
  const auto own = net::percent_decode(place_.path + (folder.empty() ? "" : '/' + folder));
  if (!document || document->name != "multistatus" || !own) return nonsense("that makes no sense");
  const std::string before = *own + '/';
  std::vector<std::string> names;
  bool has_own = false;
  for (const XmlElement& entry : document->children) {
    if (entry.name != "response") continue;
    const auto path = path_of_href(entry.text_of("href"));
    has_own = has_own || path == own;
    if (path == own) continue;
    if (!path || !path->starts_with(before)) return nonsense("of something else");
    const std::string_view name = std::string_view(*path).substr(before.size());
    if (!is_name_part(name)) continue;  // others may have put something beside ours
    if (names.size() == most) return nonsense("of more than " + std::to_string(most) + " entries");
    names.push_back((folder.empty() ? "" : folder + '/') + std::string(name));
  }
  if (!has_own) return nonsense("without the folder that was asked for");
  std::ranges::sort(names);
  return names;
}

Result<std::vector<std::string>> WebdavStore::list(const std::string& folder, std::size_t most) {
  const auto fault = name_fault(folder);
  if (fault && !folder.empty()) return *fault;
  const HttpCall call{"PROPFIND",
                      url_of(place_.path + (folder.empty() ? "" : '/' + folder) + '/'),
                      {"Depth: 1", "Content-Type: application/xml"},
                      std::as_bytes(std::span(kWanted)),
                      kXmlMax};
  const HttpAnswer answer = http_->run({&call, 1}).front();
  if (answer.status == 404) return std::vector<std::string>();
  if (!is_success(answer)) return refusal(answer);
  return read_list(answer, folder, most);
}

}  // namespace chasqui::store
