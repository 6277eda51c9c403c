// The routes of files: POST, GET and DELETE of /v1/files, as OpenAI has them.
#include <algorithm>
#include <charconv>
#include <utility>

#include "api/batch/batch_desk.h"
#include "api/core/list_page.h"
#include "api/body/multipart.h"
#include "api/core/answer.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"

namespace chasqui {
namespace {

constexpr std::size_t kFilesPage = 1000;
constexpr std::size_t kContentPiece = 1 << 18;
constexpr std::int64_t kExpiresLeast = 3600;

// A name for people to read; what looks like folders in it is none.
Result<std::string> base_name(const std::string& sent) {
  const std::size_t slash = sent.find_last_of("/\\");
  std::string name = slash == std::string::npos ? sent : sent.substr(slash + 1);
  const bool plain = std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; });
  if (name.empty() || name.size() > kSizeLimit<"batch_name_bytes"> || !plain) {
    return invalid_field("file", "file must have a name of 1 to " + std::to_string(kSizeLimit<"batch_name_bytes">) +
                                     " bytes without control characters");
  }
  return name;
}

const FormPart* part_named(const std::vector<FormPart>& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &FormPart::name);
  return found == parts.end() ? nullptr : &*found;
}

Result<std::int64_t> read_expiry(const std::vector<FormPart>& parts) {
  const FormPart* const anchor = part_named(parts, "expires_after[anchor]");
  const FormPart* const count = part_named(parts, "expires_after[seconds]");
  if (anchor == nullptr && count == nullptr) return 0;
  if (anchor == nullptr || anchor->content != "created_at") {
    return invalid_field("expires_after[anchor]", "expires_after[anchor] must be created_at");
  }
  const std::int64_t most = kCountLimit<"batch_keep_seconds"> / 1000;
  std::int64_t wait = 0;
  const std::string_view text = count != nullptr ? count->content : std::string_view();
  const auto [last, failed] = std::from_chars(text.data(), text.data() + text.size(), wait);
  if (failed != std::errc{} || last != text.data() + text.size() || wait < kExpiresLeast || wait > most) {
    return invalid_field("expires_after[seconds]", "expires_after[seconds] must be a whole number between " +
                                                       std::to_string(kExpiresLeast) + " and " + std::to_string(most));
  }
  return wait;
}

// Offload pool.
Result<BatchStore::Upload> read_upload(std::shared_ptr<const std::string> body, const std::string& boundary) {
  const auto parts = read_form(*body, boundary);
  if (!parts) return parts.error();
  const FormPart* const purpose = part_named(*parts, "purpose");
  if (purpose == nullptr || purpose->content != "batch") return invalid_field("purpose", "purpose must be batch");
  const FormPart* const file = part_named(*parts, "file");
  if (file == nullptr || !file->filename)
    return invalid_field("file", "file must be a part of the form with a filename");
  auto name = base_name(*file->filename);
  if (!name) return name.error();
  if (file->content.empty()) return invalid_field("file", "file must not be empty");
  const auto expiry = read_expiry(*parts);
  if (!expiry) return expiry.error();
  BatchStore::Upload upload;
  upload.file.filename = std::move(*name);
  upload.file.purpose = "batch";
  upload.file.expires = *expiry;
  upload.content = file->content;
  upload.body = std::move(body);
  return upload;
}

Result<StoredFilePtr> file_of(const BatchDesk& desk, const Call& call) {
  const std::string& id = call.exchange.param("id");
  StoredFilePtr file = desk.store.find_file(call.caller.tenant.lasting, id);
  if (!file) return Error{ErrorCode::not_found, "there is no file " + id, "id"};
  return file;
}

std::string file_json(const StoredFile& file) {
  std::string out;
  JsonWriter json(out);
  write_file(json, file);
  return out;
}

}  // namespace

Handled upload_file(BatchDesk& desk, Call call) {
  const std::string type(call.exchange.request().header("Content-Type").value_or(std::string_view()));
  const auto boundary = form_boundary(type);
  if (!boundary) co_return boundary.error();
  net::OffloadTerms terms = reading_terms(call);
  auto work = [body = std::make_shared<const std::string>(std::move(call.body)), boundary = *boundary]() mutable {
    return read_upload(std::move(body), boundary);
  };
  Result<BatchStore::Upload> upload = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (!upload) co_return upload.error();
  upload->file.owner = call.caller.tenant.lasting;
  if (upload->file.expires != 0) upload->file.expires += desk.store.clock().unix_seconds();
  upload->alone = call.frontend.keys.tenants() <= 1;
  const Result<StoredFilePtr> file = co_await desk.store.add_file(std::move(*upload));
  if (!file) co_return file.error();
  std::string answer = file_json(**file);
  co_await respond_json(call.exchange, std::move(answer));
  co_return Result<void>();
}

Handled list_files(BatchDesk& desk, Call call) {
  const net::HttpRequest& request = call.exchange.request();
  const auto wish = read_page_wish(request, kFilesPage, 10 * kFilesPage);
  if (!wish) co_return wish.error();
  std::vector<StoredFilePtr> files = desk.store.files_of(call.caller.tenant.lasting);
  const auto purpose = request.query("purpose");
  if (purpose) std::erase_if(files, [&](const StoredFilePtr& file) { return file->purpose != *purpose; });
  auto answer = write_page(std::move(files), *wish, &write_file);
  if (!answer) co_return answer.error();
  co_await respond_json(call.exchange, std::move(*answer));
  co_return Result<void>();
}

Handled show_file(BatchDesk& desk, Call call) {
  const Result<StoredFilePtr> file = file_of(desk, call);
  if (!file) co_return file.error();
  std::string answer = file_json(**file);
  co_await respond_json(call.exchange, std::move(answer));
  co_return Result<void>();
}

Handled delete_file(BatchDesk& desk, Call call) {
  const Result<StoredFilePtr> file = file_of(desk, call);
  if (!file) co_return file.error();
  const Result<void> removed = co_await desk.store.remove_file(*file);
  if (!removed) co_return removed.error();
  std::string answer;
  JsonWriter json(answer);
  json.begin_object();
  json.field("id", (*file)->id);
  json.field("object", "file");
  json.field("deleted", true);
  json.end_object();
  co_await respond_json(call.exchange, std::move(answer));
  co_return Result<void>();
}

// The file stays open while it is read: deleting it then does no harm.
Handled send_file(BatchDesk& desk, Call call) {
  const Result<StoredFilePtr> found = file_of(desk, call);
  if (!found) co_return found.error();
  auto open = [folder = desk.store.folder(), name = bytes_name((*found)->id)]() -> Result<std::shared_ptr<OpenFile>> {
    auto file = folder->open_file(name);
    if (!file) return Error{ErrorCode::unavailable, "the file cannot be read: " + file.error().message, ""};
    return std::make_shared<OpenFile>(std::move(*file));
  };
  const Result<std::shared_ptr<OpenFile>> file = co_await desk.store.run(std::move(open));
  if (!file) co_return file.error();
  net::HttpHeaders headers;
  headers.add("Content-Type", "application/octet-stream");
  bool going = co_await call.exchange.start_stream(200, std::move(headers));
  std::uint64_t at = 0;
  while (going && at < (*file)->bytes) {
    auto read = [open_file = *file, at] { return read_at(*open_file, at, kContentPiece); };
    const Result<std::string> piece = co_await desk.store.run(std::move(read));
    if (!piece || piece->empty()) {
      log_error("a file of --batch-dir cannot be read", {{"file", (*found)->id}});
      co_return Result<void>();  // the connection closes, which clients see
    }
    at += piece->size();
    going = co_await call.exchange.write_chunk(*piece);
  }
  if (going) co_await call.exchange.finish_stream();
  co_return Result<void>();
}

}  // namespace chasqui
