#include "cli/batch.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/http_client.h"
#include "cli/json_parts.h"
#include "cli/terminal.h"
#include "cli/text_table.h"

namespace chasqui::cli {
namespace {

constexpr int kLookEveryMs = 500;
constexpr int kInterruptedCode = 130;
constexpr Duration kPatience = seconds(60);  // with a server that is asked; an upload of 32 MiB is one question

using boost::json::object;

bool has_ended(const object& batch) {
  constexpr std::string_view kEnds[] = {"completed", "failed", "expired", "cancelled"};
  return std::ranges::find(kEnds, text_at(batch, "status")) != std::end(kEnds);
}

// "in_progress, 12 of 40, 1 failed"
std::string progress_of(const object& batch) {
  std::string text = text_at(batch, "status");
  const object* counts = object_at(batch, "request_counts");
  if (counts == nullptr || number_at(*counts, "total", 0) == 0) return text;
  const auto count = [&](const char* name) { return static_cast<long long>(number_at(*counts, name, 0)); };
  text += ", " + std::to_string(count("completed") + count("failed")) + " of " + std::to_string(count("total"));
  return count("failed") > 0 ? text + ", " + std::to_string(count("failed")) + " failed" : text;
}

void tell_of_rest(const std::string& id) {
  write_error("chasqui batch: the batch goes on; its answers: chasqui batch fetch " + id + " --wait\n");
}

// What a server says goes into a path only where it is an id.
Result<std::string> checked_id(std::string id, const std::string& action) {
  const bool good = !id.empty() && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  if (good) return id;
  return invalid_field("", action + " needs the id of a batch, as chasqui batch list shows it");
}

// not_found: asking again cannot help, as of a batch that is gone, or with a key that is refused.
Error refusal_of(const HttpAnswer& answer) {
  const bool final = answer.status >= 400 && answer.status < 500 && answer.status != 408 && answer.status != 429;
  return {final ? ErrorCode::not_found : ErrorCode::unavailable, message_of(answer), ""};
}

Result<std::string> file_content(const std::string& path) {
  std::ostringstream text;
  std::ifstream file(path, std::ios::binary);
  if (!file || !(text << file.rdbuf())) {
    return Error{ErrorCode::not_found, path + " cannot be read, or is empty", ""};
  }
  return std::move(text).str();
}

class Batches {
 public:
  Batches(const BatchOptions& options, HttpClient& http) : options_(options), http_(http) {}

  Result<int> run() {
    if (options_.action == "list") return list();
    if (options_.what.empty()) {
      const bool file = options_.action == "run" || options_.action == "submit";
      if (file) return invalid_field("", options_.action + " needs a file with a request on each line");
    }
    if (options_.action == "submit") return submit(false);
    if (options_.action == "run") return submit(true);
    auto id = checked_id(options_.what, options_.action);
    if (!id) return id.error();
    if (options_.action == "cancel") return told("POST", "/v1/batches/" + *id + "/cancel");
    if (options_.action == "show") return told("GET", "/v1/batches/" + *id);
    return fetch(*id, options_.wait);
  }

 private:
  Result<object> ask(HttpCall call) {
    call.timeout = kPatience;
    const auto answer = http_.call(call);
    if (!answer) return answer.error();
    if (answer->status != 200) return refusal_of(*answer);
    boost::system::error_code error;
    boost::json::value value = boost::json::parse(answer->body, error);
    if (error || !value.is_object()) {
      return Error{ErrorCode::unavailable, "the server's answer is of another form", ""};
    }
    return std::move(value.get_object());
  }
  Result<object> ask(std::string method, std::string path, const object& body = {}) {
    HttpCall call{std::move(method), std::move(path)};
    if (!body.empty()) call.body = boost::json::serialize(body);
    return ask(std::move(call));
  }

  Result<int> list();
  Result<int> told(const std::string& method, const std::string& path);
  void tell(const object& batch);
  Result<int> submit(bool wait);
  Result<int> fetch(const std::string& id, bool wait);
  Result<std::optional<object>> ended(const std::string& id);
  Result<void> write_results(const object& batch);
  Result<void> append(const std::string& file, std::FILE* out);

  const BatchOptions& options_;
  HttpClient& http_;
};

Result<int> Batches::list() {
  boost::json::array all;
  std::string after;
  for (bool more = true; more;) {
    auto page = ask("GET", "/v1/batches?limit=100" + (after.empty() ? "" : "&after=" + after));
    if (!page) return page.error();
    const boost::json::array* data = array_at(*page, "data");
    if (data == nullptr) return Error{ErrorCode::unavailable, "the server's list is of another form", ""};
    all.insert(all.end(), data->begin(), data->end());
    const boost::json::value* has_more = page->if_contains("has_more");
    auto last = checked_id(text_at(*page, "last_id"), "list");
    more = has_more != nullptr && has_more->is_bool() && has_more->get_bool() && last && *last != after;
    if (more) after = std::move(*last);
  }
  if (options_.json) {
    write_out(boost::json::serialize(all) + '\n');
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"ID", "ENDPOINT", "STATUS"}};
  for (const boost::json::value& each : all) {
    if (!each.is_object()) continue;
    const object& batch = each.get_object();
    const auto shown = [&](const char* name) { return harmless(text_at(batch, name)); };
    rows.push_back({shown("id"), shown("endpoint"), harmless(progress_of(batch))});
  }
  write_out(text_table(std::move(rows)));
  return 0;
}

Result<int> Batches::told(const std::string& method, const std::string& path) {
  auto batch = ask(method, path);
  if (!batch) return batch.error();
  if (options_.json) {
    write_out(boost::json::serialize(*batch) + '\n');
    return 0;
  }
  tell(*batch);
  return 0;
}

void Batches::tell(const object& batch) {
  std::string text = text_at(batch, "id") + ": " + progress_of(batch) + '\n';
  const object* errors = object_at(batch, "errors");
  if (const boost::json::array* faults = errors != nullptr ? array_at(*errors, "data") : nullptr; faults != nullptr) {
    for (const boost::json::value& fault : *faults) {
      if (fault.is_object()) text += "  " + text_at(fault.get_object(), "message") + '\n';
    }
  }
  write_out(harmless(text));
}

Result<int> Batches::submit(bool wait) {
  auto content = file_content(options_.what);
  if (!content) return content.error();
  std::string endpoint = options_.endpoint;
  if (endpoint.empty()) {
    auto found = endpoint_of(*content);
    if (!found) return found.error();
    endpoint = std::move(*found);
  }
  Upload upload = upload_of(std::filesystem::path(options_.what).filename().string(), *content);
  auto file = ask(HttpCall{"POST", "/v1/files", std::move(upload.body), std::move(upload.type)});
  if (!file) return file.error();
  auto batch = ask("POST", "/v1/batches",
                   {{"input_file_id", text_at(*file, "id")},
                    {"endpoint", endpoint},
                    {"completion_window", options_.window}});
  if (!batch) return batch.error();
  auto id = checked_id(text_at(*batch, "id"), "submit");
  if (!id) return Error{ErrorCode::unavailable, "the server's answer has no id of a batch", ""};
  if (!wait) {
    write_out(*id + '\n');
    return 0;
  }
  write_error(*id + '\n');
  return fetch(*id, true);
}

// Looks again and again, and shows what it sees on a terminal; a server that it has seen may be away for a minute, as
// while it is restarted. Nothing: it was interrupted.
Result<std::optional<object>> Batches::ended(const std::string& id) {
  const SignalWatch signals;
  const bool shows = is_terminal(STDERR_FILENO);
  const RealClock clock;
  std::optional<TimePoint> seen;
  for (;;) {
    auto batch = ask("GET", "/v1/batches/" + id);
    if (shows) write_error("\r\x1b[K");
    if (batch) {
      if (has_ended(*batch)) return std::optional(std::move(*batch));
      seen = clock.now();
    } else if (const bool final = batch.error().code == ErrorCode::not_found;
               final || !seen || clock.now() - *seen > kPatience) {
      if (seen && !final) tell_of_rest(id);
      return batch.error();
    }
    if (shows) write_error(harmless(batch ? progress_of(*batch) : batch.error().message));
    ::poll(nullptr, 0, kLookEveryMs);  // a signal ends it
    if (!SignalWatch::interrupted()) continue;
    if (shows) write_error("\n");
    tell_of_rest(id);
    return std::optional<object>();
  }
}

Result<int> Batches::fetch(const std::string& id, bool wait) {
  std::optional<object> batch;
  if (wait) {
    auto last = ended(id);
    if (!last) return last.error();
    if (!*last) return kInterruptedCode;
    batch = std::move(*last);
  } else {
    auto now = ask("GET", "/v1/batches/" + id);
    if (!now) return now.error();
    batch = std::move(*now);
  }
  if (!has_ended(*batch)) {
    return Error{ErrorCode::unavailable, id + " has not ended (" + progress_of(*batch) + "); --wait waits", ""};
  }
  if (text_at(*batch, "status") == "failed") {
    tell(*batch);
    return 1;
  }
  if (auto written = write_results(*batch); !written) return written.error();
  write_error("chasqui batch: " + harmless(progress_of(*batch)) + '\n');
  return text_at(*batch, "error_file_id").empty() ? 0 : 1;
}

// A file is there whole or not at all.
Result<void> Batches::write_results(const object& batch) {
  const std::string part = options_.out.empty() || options_.out == "-" ? "" : options_.out + ".part";
  std::FILE* const out = part.empty() ? stdout : std::fopen(part.c_str(), "wb");
  if (out == nullptr) return Error{ErrorCode::storage_full, part + " cannot be written", ""};
  Result<void> result;
  for (const char* field : {"output_file_id", "error_file_id"}) {
    if (const std::string file = text_at(batch, field); result && !file.empty()) result = append(file, out);
  }
  const bool whole = (part.empty() ? std::fflush(out) : std::fclose(out)) == 0;
  if (result && !whole) result = Error{ErrorCode::storage_full, "the answers cannot be written", ""};
  std::error_code error;
  if (result && !part.empty()) std::filesystem::rename(part, options_.out, error);
  if (error) result = Error{ErrorCode::storage_full, options_.out + " cannot be written: " + error.message(), ""};
  if (!result && !part.empty()) std::filesystem::remove(part, error);
  return result;
}

Result<void> Batches::append(const std::string& file, std::FILE* out) {
  auto id = checked_id(file, "fetch");
  if (!id) return Error{ErrorCode::unavailable, "the server's answer has no id of a file", ""};
  bool written = true;
  HttpCall call{"GET", "/v1/files/" + *id + "/content"};
  call.piece = [&](std::string_view piece) {
    written = written && std::fwrite(piece.data(), 1, piece.size(), out) == piece.size();
  };
  const auto answer = http_.call(call);
  if (!answer) return answer.error();
  if (answer->status != 200) return refusal_of(*answer);
  if (!written) return Error{ErrorCode::storage_full, "the answers cannot be written", ""};
  return {};
}

}  // namespace

Result<std::string> endpoint_of(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(line, error);
    if (error || !value.is_object()) return invalid_field("", "the first line of the file is no JSON object");
    std::string url = text_at(value.get_object(), "url");
    if (url.empty()) return invalid_field("", "the first line of the file has no url: say --endpoint");
    return url;
  }
  return invalid_field("", "the file has no requests");
}

Upload upload_of(std::string_view name, std::string_view content) {
  std::string boundary = "chasqui-batch";
  while (content.find(boundary) != std::string_view::npos) boundary += '-';
  std::string quoted;
  for (const char c : name) quoted += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '_' : c;
  const std::string field = "--" + boundary + "\r\nContent-Disposition: form-data; name=";
  std::string body = field + "\"purpose\"\r\n\r\nbatch\r\n" + field + "\"file\"; filename=\"" + quoted +
                     "\"\r\nContent-Type: application/jsonl\r\n\r\n";
  body += content;
  body += "\r\n--" + boundary + "--\r\n";
  return {"multipart/form-data; boundary=" + boundary, std::move(body)};
}

int run_batch(const BatchOptions& options) {
  const auto fail = [](const Error& error) {
    write_error("chasqui batch: " + harmless(error.message) + '\n');
    return error.code == ErrorCode::invalid_request ? 2 : 1;
  };
  auto http = HttpClient::open(options.url, options.api_key);
  if (!http) return fail(http.error());
  const auto code = Batches(options, **http).run();
  return code ? *code : fail(code.error());
}

}  // namespace chasqui::cli
