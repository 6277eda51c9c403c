// The routes of batches: POST and GET of /v1/batches, as OpenAI has them.
#include <utility>

#include "api/batch/batch_desk.h"
#include "api/core/list_page.h"
#include "api/body/fields.h"
#include "api/core/answer.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "base/limits.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

constexpr std::size_t kMetadataKey = 64;
constexpr std::size_t kMetadataValue = 512;
constexpr std::int64_t kResultsLeast = 3600;

void read_metadata(Fields& fields, BatchJob& job) {
  const boost::json::object* const metadata = fields.object("metadata");
  if (metadata == nullptr) return;
  const std::string most = std::to_string(kSizeLimit<"batch_metadata">);
  bool fits = metadata->size() <= kSizeLimit<"batch_metadata">;
  for (const auto& [key, value] : *metadata) {
    fits = fits && value.is_string() && key.size() <= kMetadataKey && value.get_string().size() <= kMetadataValue;
    if (fits) job.metadata.emplace_back(key, value.get_string());
  }
  if (!fits) {
    fields.refuse("metadata", "an object of up to " + most + " strings of 512 bytes, with keys of up to 64 bytes");
  }
}

void read_output_expiry(Fields& fields, BatchJob& job) {
  const boost::json::object* const wish = fields.object("output_expires_after");
  if (wish == nullptr) return;
  Fields inner(*wish, "output_expires_after");
  const auto anchor = inner.string("anchor");
  if (!anchor || *anchor != "created_at") inner.refuse("anchor", "\"created_at\"");
  const std::int64_t most = kCountLimit<"batch_keep_seconds"> / 1000;
  const auto wait = inner.integer("seconds");
  if (!wait || *wait < kResultsLeast || *wait > most) {
    inner.refuse("seconds", "a whole number between " + std::to_string(kResultsLeast) + " and " + std::to_string(most));
  }
  if (!inner.ok()) return fields.refuse(inner.error());
  job.output_seconds = *wait;
}

// Offload pool.
Result<BatchJob> read_batch(const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  BatchJob job;
  const auto file = fields.string("input_file_id");
  if (!file || file->empty()) fields.refuse("input_file_id", "the id of a file with purpose batch");
  const auto endpoint = fields.string("endpoint");
  if (!endpoint || !is_batch_endpoint(*endpoint)) fields.refuse("endpoint", "one of " + batch_endpoints());
  const auto window = fields.string("completion_window");
  const auto time = window ? window_seconds(*window) : std::nullopt;
  if (!time) fields.refuse("completion_window", "a time from \"1s\" to \"30d\", such as \"24h\"");
  read_metadata(fields, job);
  read_output_expiry(fields, job);
  if (file && !is_short_id(*file)) {
    fields.refuse(Error{ErrorCode::not_found, "there is no file with so long an id", "input_file_id"});
  }
  if (!fields.ok()) return fields.error();
  job.input_file = *file;
  job.endpoint = *endpoint;
  job.window = *window;
  job.expires = *time;
  return job;
}

Result<BatchJobPtr> batch_of(const BatchDesk& desk, const Call& call) {
  const std::string& id = call.exchange.param("id");
  BatchJobPtr job = desk.store.find_job(call.caller.tenant.lasting, id);
  if (!job) return Error{ErrorCode::not_found, "there is no batch " + id, "id"};
  return job;
}

std::string batch_json(const BatchJob& job) {
  std::string out;
  JsonWriter json(out);
  write_job(json, job);
  return out;
}

// What the body cannot say by itself.
Result<void> check_batch(const BatchDesk& desk, const BatchJob& job) {
  const StoredFilePtr file = desk.store.find_file(job.owner, job.input_file);
  if (!file) return Error{ErrorCode::not_found, "there is no file " + job.input_file, "input_file_id"};
  if (file->purpose != "batch") {
    return invalid_field("input_file_id", "input_file_id must be a file with purpose batch, not " + file->purpose);
  }
  if (desk.store.open_jobs(job.owner) >= kSizeLimit<"batches_open">) {
    return Error{ErrorCode::quota_exceeded,
                 "at most " + std::to_string(kSizeLimit<"batches_open">) + " batches may be under way at once", ""};
  }
  return {};
}

}  // namespace

Handled handle_batch_command(Call call, BatchCommand command) {
  BatchDesk* const desk = call.frontend.batches;
  if (desk == nullptr) {
    co_return Error{ErrorCode::not_supported,
                    "files and batches are kept in a folder, and this server has none: start it with --batch-dir DIR",
                    ""};
  }
  Handled running = command(*desk, std::move(call));
  Result<void> done = co_await std::move(running);
  co_return done;
}

Handled create_batch(BatchDesk& desk, Call call) {
  net::OffloadTerms terms = reading_terms(call);
  auto work = [body = std::move(call.body)] { return read_batch(body); };
  Result<BatchJob> job = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (!job) co_return job.error();
  job->owner = call.caller.tenant.lasting;
  if (auto good = check_batch(desk, *job); !good) co_return good;
  job->id = random_id("batch_");
  job->output_file = random_id("file-");
  job->error_file = random_id("file-");
  job->created = desk.store.clock().unix_seconds();
  job->expires += job->created;
  const Result<BatchJobPtr> made = co_await desk.store.add_job(std::move(*job));
  if (!made) co_return made.error();
  std::string answer = batch_json(**made);
  desk.runner.add(*made);
  co_await respond_json(call.exchange, std::move(answer));
  co_return Result<void>();
}

Handled list_batches(BatchDesk& desk, Call call) {
  const auto wish = read_page_wish(call.exchange.request(), 20, 100);
  if (!wish) co_return wish.error();
  auto answer = write_page(desk.store.jobs_of(call.caller.tenant.lasting), *wish, &write_job);
  if (!answer) co_return answer.error();
  co_await respond_json(call.exchange, std::move(*answer));
  co_return Result<void>();
}

Handled show_batch(BatchDesk& desk, Call call) {
  const Result<BatchJobPtr> job = batch_of(desk, call);
  if (!job) co_return job.error();
  std::string answer = batch_json(**job);
  co_await respond_json(call.exchange, std::move(answer));
  co_return Result<void>();
}

Handled cancel_batch(BatchDesk& desk, Call call) {
  const Result<BatchJobPtr> found = batch_of(desk, call);
  if (!found) co_return found.error();
  const BatchJobPtr job = *found;
  if (job->status == BatchStatus::validating || job->status == BatchStatus::in_progress) {
    job->cancelling = desk.store.clock().unix_seconds();
    desk.store.set_status(*job, BatchStatus::cancelling);
    const Result<void> saved = co_await desk.store.save(*job);
    desk.runner.cancel(job);
    if (!saved) co_return saved.error();
  } else if (job->status != BatchStatus::cancelling) {
    const std::string status(name(job->status));
    co_return Error{ErrorCode::conflict, "a batch that is " + status + " cannot be cancelled", ""};
  }
  std::string answer = batch_json(*job);
  co_await respond_json(call.exchange, std::move(answer));
  co_return Result<void>();
}

}  // namespace chasqui
