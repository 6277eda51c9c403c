#include "api/batch/batch_job.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "api/batch/stored_fields.h"
#include "base/limits.h"

namespace chasqui {
namespace {

void write_time(JsonWriter& json, std::string_view field, std::int64_t time) {
  json.key(field);
  if (time == 0) {
    json.null();
  } else {
    json.number(time);
  }
}

void write_text_or_null(JsonWriter& json, std::string_view field, const std::string& text, bool there) {
  json.key(field);
  if (there) {
    json.string(text);
  } else {
    json.null();
  }
}

void write_faults(JsonWriter& json, const std::vector<LineFault>& faults) {
  json.begin_array();
  for (const LineFault& fault : faults) {
    json.begin_object();
    json.field("code", fault.code);
    json.field("message", fault.message);
    write_text_or_null(json, "param", fault.param, !fault.param.empty());
    write_time(json, "line", fault.line);
    json.end_object();
  }
  json.end_array();
}

void write_metadata(JsonWriter& json, const BatchJob& job) {
  json.key("metadata");
  json.begin_object();
  for (const auto& [key, value] : job.metadata) json.field(key, value);
  json.end_object();
}

// Of the kinds of end that a batch may have.
std::int64_t ended_as(const BatchJob& job, BatchStatus status) { return job.status == status ? job.ended : 0; }

void read_faults(StoredFields& fields, std::vector<LineFault>& faults) {
  const boost::json::array* const list = fields.fields().array("faults");
  if (list == nullptr) return;
  for (const boost::json::value& value : *list) {
    if (!value.is_object()) continue;
    Fields fault(value.get_object());
    faults.push_back({std::string(fault.string("code").value_or("")), std::string(fault.string("message").value_or("")),
                      std::string(fault.string("param").value_or("")),
                      static_cast<std::uint32_t>(fault.integer("line").value_or(0))});
  }
}

BatchStatus read_status(StoredFields& fields, std::string_view field) {
  const std::string text = fields.text(field);
  const auto* const found = std::ranges::find(kBatchStatuses, text);
  if (found != std::end(kBatchStatuses)) return static_cast<BatchStatus>(found - std::begin(kBatchStatuses));
  fields.fields().refuse(field, "a status");
  return BatchStatus::failed;
}

}  // namespace

void write_job(JsonWriter& json, const BatchJob& job) {
  json.begin_object();
  json.field("id", job.id);
  json.field("object", "batch");
  json.field("endpoint", job.endpoint);
  json.key("errors");
  if (job.faults.empty()) {
    json.null();
  } else {
    json.begin_object();
    json.field("object", "list");
    json.key("data");
    write_faults(json, job.faults);
    json.end_object();
  }
  json.field("input_file_id", job.input_file);
  json.field("completion_window", job.window);
  json.field("status", name(job.status));
  write_text_or_null(json, "output_file_id", job.output_file, job.has_output);
  write_text_or_null(json, "error_file_id", job.error_file, job.has_errors);
  json.field("created_at", job.created);
  write_time(json, "in_progress_at", job.in_progress);
  json.field("expires_at", job.expires);
  write_time(json, "finalizing_at", job.finalizing);
  write_time(json, "completed_at", ended_as(job, BatchStatus::completed));
  write_time(json, "failed_at", ended_as(job, BatchStatus::failed));
  write_time(json, "expired_at", ended_as(job, BatchStatus::expired));
  write_time(json, "cancelling_at", job.cancelling);
  write_time(json, "cancelled_at", ended_as(job, BatchStatus::cancelled));
  json.key("request_counts");
  json.begin_object();
  json.field("total", job.counts.total);
  json.field("completed", job.counts.completed);
  json.field("failed", job.counts.failed);
  json.end_object();
  write_metadata(json, job);
  json.end_object();
}

std::string job_text(const BatchJob& job) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id", job.id);
  write_stored_number(json, "owner", job.owner);
  json.field("serial", job.serial);
  json.field("input_file", job.input_file);
  json.field("endpoint", job.endpoint);
  json.field("window", job.window);
  json.field("status", name(job.status));
  json.field("end", name(job.end));
  json.field("output_seconds", job.output_seconds);
  json.field("created", job.created);
  json.field("expires", job.expires);
  json.field("in_progress", job.in_progress);
  json.field("finalizing", job.finalizing);
  json.field("cancelling", job.cancelling);
  json.field("ended", job.ended);
  json.field("output_file", job.output_file);
  json.field("error_file", job.error_file);
  json.field("has_output", job.has_output);
  json.field("has_errors", job.has_errors);
  json.field("total", job.counts.total);
  json.field("completed", job.counts.completed);
  json.field("failed", job.counts.failed);
  write_metadata(json, job);
  json.key("faults");
  write_faults(json, job.faults);
  json.end_object();
  return out;
}

Result<BatchJob> read_job(std::string_view text) {
  auto object = parse_json_object(text);
  if (!object) return object.error();
  StoredFields fields(*object);
  BatchJob job;
  job.id = fields.text("id");
  job.owner = fields.stored_number("owner");
  job.serial = fields.count("serial");
  job.input_file = fields.text("input_file");
  job.endpoint = fields.text("endpoint");
  job.window = fields.text("window");
  job.status = read_status(fields, "status");
  job.end = read_status(fields, "end");
  job.output_seconds = fields.integer("output_seconds");
  job.created = fields.integer("created");
  job.expires = fields.integer("expires");
  job.in_progress = fields.integer("in_progress");
  job.finalizing = fields.integer("finalizing");
  job.cancelling = fields.integer("cancelling");
  job.ended = fields.integer("ended");
  job.output_file = fields.text("output_file");
  job.error_file = fields.text("error_file");
  job.has_output = fields.fields().boolean("has_output").value_or(false);
  job.has_errors = fields.fields().boolean("has_errors").value_or(false);
  job.counts = {fields.count("total"), fields.count("completed"), fields.count("failed")};
  if (const boost::json::object* const metadata = fields.fields().object("metadata")) {
    for (const auto& [key, value] : *metadata) {
      if (value.is_string()) job.metadata.emplace_back(key, value.get_string());
    }
  }
  read_faults(fields, job.faults);
  if (!is_batch_endpoint(job.endpoint)) fields.fields().refuse("endpoint", "a route that batches may use");
  if (!fields.ok()) return fields.error();
  return job;
}

std::optional<std::int64_t> window_seconds(std::string_view window) {
  if (window.size() < 2) return std::nullopt;
  std::int64_t unit = 0;
  switch (window.back()) {
    case 's': unit = 1; break;
    case 'm': unit = 60; break;
    case 'h': unit = 3600; break;
    case 'd': unit = 86'400; break;
    default: return std::nullopt;
  }
  std::int64_t count = 0;
  const char* const end = window.data() + window.size() - 1;
  const auto [last, failed] = std::from_chars(window.data(), end, count);
  const std::int64_t most = kCountLimit<"batch_window_seconds"> / 1000;
  if (failed != std::errc{} || last != end || count < 1 || count > most / unit) return std::nullopt;
  return count * unit;
}

}  // namespace chasqui
