#include "api/batch/batch_job.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "api/batch/record_fields.h"
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
  json.begin_object("metadata");
  for (const auto& [key, value] : job.metadata) json.field(key, value);
  json.end_object();
}

// Of the kinds of end that a batch may have.
std::int64_t ended_as(const BatchJob& job, BatchStatus status) { return job.status == status ? job.ended : 0; }

// Every field that is kept, in the order of the file: read and written by this list alone.
template <class Record, class Job>
void visit(Record& record, Job& job) {
  record.text("id", job.id);
  record.digits("owner", job.owner);
  record.count("serial", job.serial);
  record.text("input_file", job.input_file);
  record.text("endpoint", job.endpoint);
  record.text("window", job.window);
  record.choice("status", job.status, kBatchStatuses);
  record.choice("end", job.end, kBatchStatuses);
  record.integer("output_seconds", job.output_seconds);
  record.integer("created", job.created);
  record.integer("expires", job.expires);
  record.integer("in_progress", job.in_progress);
  record.integer("finalizing", job.finalizing);
  record.integer("cancelling", job.cancelling);
  record.integer("ended", job.ended);
  record.text("output_file", job.output_file);
  record.text("error_file", job.error_file);
  record.flag("has_output", job.has_output);
  record.flag("has_errors", job.has_errors);
  record.count("total", job.counts.total);
  record.count("completed", job.counts.completed);
  record.count("failed", job.counts.failed);
}

void read_metadata(const boost::json::object& object, BatchJob& job) {
  const auto* const found = object.if_contains("metadata");
  if (found == nullptr || !found->is_object()) return;
  for (const auto& [key, value] : found->get_object()) {
    if (value.is_string()) job.metadata.emplace_back(key, value.get_string());
  }
}

void read_faults(const boost::json::object& object, std::vector<LineFault>& faults) {
  const auto* const found = object.if_contains("faults");
  if (found == nullptr || !found->is_array()) return;
  for (const boost::json::value& value : found->get_array()) {
    if (!value.is_object()) continue;
    Fields fault(value.get_object());
    faults.push_back({std::string(fault.string("code").value_or("")), std::string(fault.string("message").value_or("")),
                      std::string(fault.string("param").value_or("")),
                      static_cast<std::uint32_t>(fault.integer("line").value_or(0))});
  }
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
  json.begin_object("request_counts");
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
  RecordFieldsWriter record(json);
  visit(record, job);
  write_metadata(json, job);
  json.key("faults");
  write_faults(json, job.faults);
  json.end_object();
  return out;
}

Result<BatchJob> read_job(std::string_view text) {
  auto object = parse_json_object(text);
  if (!object) return object.error();
  RecordFieldsReader record(*object);
  BatchJob job;
  visit(record, job);
  read_metadata(*object, job);
  read_faults(*object, job.faults);
  if (!is_batch_endpoint(job.endpoint)) record.refuse("endpoint", "a route that batches may use");
  if (!record.ok()) return record.error();
  return job;
}

std::optional<std::int64_t> window_seconds(std::string_view window) {
  constexpr std::size_t kLongest = 16;  // it is kept as it was written
  if (window.size() < 2 || window.size() > kLongest) return std::nullopt;
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
