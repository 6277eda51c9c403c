#include "api/batch/batch_results.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/limits.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

constexpr std::size_t kAheadLines = 32;
constexpr std::size_t kAheadBytes = 1 << 20;

// JSON has line ends between its parts only; in a file of lines they would end one.
void write_json_in_line(JsonWriter& json, std::string body) {
  for (char& c : body) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  if (body.empty()) return json.null();
  json.raw(body);
}

std::string result_of(const AnsweredLine& line) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id", line.request_id);
  json.field("custom_id", line.custom_id);
  json.begin_object("response");
  json.field("status_code", line.status);
  json.field("request_id", line.request_id);
  json.key("body");
  write_json_in_line(json, line.body);
  json.end_object();
  json.null("error");
  json.end_object();
  return out;
}

// Of a line that was not answered in time.
std::string unanswered(const std::string& custom_id, BatchStatus end) {
  const bool expired = end == BatchStatus::expired;
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id", random_id("batch_req_"));
  json.field("custom_id", custom_id);
  json.null("response");
  json.begin_object("error");
  json.field("code", expired ? "batch_expired" : "batch_cancelled");
  json.field("message", expired ? "This request could not be executed before the completion window expired."
                                : "This request was not executed before the batch was cancelled.");
  json.end_object();
  json.end_object();
  return out;
}

bool is_done(const std::vector<bool>& done, std::uint32_t number) { return number < done.size() && done[number]; }

void mark_done(std::vector<bool>& done, std::uint32_t number) {
  if (number >= done.size()) done.resize(number + 1);
  done[number] = true;
}

Result<void> add_line(FileWriter& file, std::string text) {
  text += '\n';
  return file.add(text);
}

Result<void> copy_results(JobFolder& folder, const BatchJob& job, FileWriter& output, FileWriter& errors,
                          std::vector<bool>& done) {
  const auto results = folder.open_file(results_name(job.id));
  if (!results) return results.error();
  RecordReader reader(*results);
  for (;;) {
    auto record = reader.next();
    if (!record) return record.error();
    if (!*record) return {};
    if (is_done(done, (*record)->line)) continue;
    mark_done(done, (*record)->line);
    FileWriter& file = (*record)->kind == RecordKind::answered ? output : errors;
    if (auto added = add_line(file, std::move((*record)->text)); !added) return added;
  }
}

Result<std::size_t> tell_unanswered(JobFolder& folder, const BatchJob& job, const std::vector<bool>& done,
                                    FileWriter& errors) {
  std::size_t count = 0;
  const auto input = folder.open_file(job.input_file + ".bytes");
  if (!input && input.error().code == ErrorCode::not_found) return count;  // its lines cannot be named any more
  if (!input) return input.error();
  const BatchLineReader reader(job.endpoint);
  LineReader lines(*input, kSizeLimit<"batch_line_bytes">);
  for (;;) {
    const auto line = lines.next();
    if (!line) return line.error();
    if (!*line) return count;
    const FileLine& found = **line;
    BatchLine read;
    LineFault fault;
    if (is_done(done, found.place.number) || found.too_long) continue;
    if (!reader.read(found.text, found.place.number, read, fault)) continue;
    ++count;
    if (auto added = add_line(errors, unanswered(read.custom_id, job.end)); !added) return added.error();
  }
}

WaitingLine waiting_line(const BatchLineReader& reader, const FileLine& found) {
  WaitingLine out;
  out.place = found.place;
  LineFault fault;
  if (found.too_long) {
    out.fault = "the line is too long";
  } else if (!reader.read(found.text, found.place.number, out.line, fault)) {
    out.fault = fault.message;
  }
  return out;
}

}  // namespace

Result<std::uint64_t> append_results(JobFolder& folder, const std::string& job, std::uint64_t at,
                                     const std::vector<AnsweredLine>& lines) {
  std::string bytes;
  for (const AnsweredLine& line : lines) {
    const RecordKind kind = line.status == 200 ? RecordKind::answered : RecordKind::failed;
    append_record(bytes, line.number, kind, result_of(line));
  }
  if (auto written = folder.append(results_name(job), at, bytes); !written) return written.error();
  return static_cast<std::uint64_t>(bytes.size());
}

Result<FoundResults> find_results(JobFolder& folder, const std::string& job) {
  FoundResults found;
  const auto results = folder.open_file(results_name(job));
  if (!results && results.error().code == ErrorCode::not_found) {
    if (auto made = folder.put(results_name(job), ""); !made) return made.error();
    return found;
  }
  if (!results) return results.error();
  RecordReader reader(*results);
  for (;;) {
    const auto record = reader.next();
    if (!record) return record.error();
    if (!*record) break;
    if (is_done(found.done, (*record)->line)) continue;
    mark_done(found.done, (*record)->line);
    ++((*record)->kind == RecordKind::answered ? found.counts.completed : found.counts.failed);
  }
  found.bytes = reader.end();
  return found;
}

Result<WrittenFiles> write_result_files(JobFolder& folder, const BatchJob& job) {
  FileWriter output(folder, job.output_file + ".bytes");
  FileWriter errors(folder, job.error_file + ".bytes");
  std::vector<bool> done;
  if (auto copied = copy_results(folder, job, output, errors, done); !copied) return copied.error();
  WrittenFiles written;
  if (job.end != BatchStatus::completed) {
    const auto told = tell_unanswered(folder, job, done, errors);
    if (!told) return told.error();
    written.unanswered = *told;
  }
  for (FileWriter* const file : {&output, &errors}) {
    if (file->bytes() == 0) continue;
    if (auto finished = file->finish(); !finished) return finished.error();
  }
  written.output_bytes = output.bytes();
  written.error_bytes = errors.bytes();
  return written;
}

Result<ReadAhead> read_ahead(const OpenFile& file, const std::string& endpoint, LinePlace from,
                             const std::vector<bool>& done) {
  ReadAhead out;
  const BatchLineReader reader(endpoint);
  LineReader lines(file, kSizeLimit<"batch_line_bytes">, from);
  std::size_t bytes = 0;
  while (out.lines.size() < kAheadLines && bytes < kAheadBytes && !out.at_end) {
    const auto line = lines.next();
    if (!line) return line.error();
    out.at_end = !*line;
    if (out.at_end || is_done(done, (*line)->place.number)) continue;
    out.lines.push_back(waiting_line(reader, **line));
    bytes += (*line)->text.size();
  }
  out.next = lines.place();
  return out;
}

Result<ReadAhead> read_again(const OpenFile& file, const std::string& endpoint, const WaitingLine& again) {
  LineReader lines(file, kSizeLimit<"batch_line_bytes">, again.place);
  const auto line = lines.next();
  if (!line) return line.error();
  ReadAhead out;
  out.next = again.place;
  if (*line) {
    out.lines.push_back(waiting_line(BatchLineReader(endpoint), **line));
  } else {
    WaitingLine gone = again;
    gone.fault = "the line is no longer there";
    out.lines.push_back(std::move(gone));
  }
  out.lines.front().tries = again.tries;
  out.lines.front().here = again.here;
  out.lines.front().sent = again.sent;
  return out;
}

}  // namespace chasqui
