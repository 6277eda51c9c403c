#include "bench/ask_writer.h"

#include "base/json_writer.h"

namespace chasqui::bench {

std::string AskWriter::body(const Job& job) const {
  std::string text;
  JsonWriter w(text);
  w.begin_object();
  if (!shape_.model.empty()) w.field("model", shape_.model);
  if (shape_.api == Api::chat) {
    w.begin_array("messages");
    w.begin_object();
    w.field("role", "user");
    w.field("content", job.prompt);
    w.end_object();
    w.end_array();
  } else {
    w.field("prompt", job.prompt);
  }
  w.field("max_tokens", job.max_tokens);
  w.field("stream", job.stream);
  if (job.stream) {
    w.raw("stream_options", R"({"include_usage":true})");
  }
  if (shape_.ignore_eos) w.field("ignore_eos", true);
  if (!job.priority.empty()) w.field("priority", job.priority);
  if (!shape_.fields.empty()) text += ',' + shape_.fields;
  w.end_object();
  return text;
}

std::string AskWriter::request(const Job& job) const {
  const std::string content = body(job);
  const std::string& key = job.key.empty() ? shape_.key : job.key;
  std::string text = "POST " + target_.base;
  text += shape_.api == Api::chat ? "/v1/chat/completions" : "/v1/completions";
  text += " HTTP/1.1\r\nHost: " + target_.host_header + "\r\nContent-Type: application/json\r\n";
  if (!key.empty()) text += "Authorization: Bearer " + key + "\r\n";
  text += "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n";
  return text + content;
}

std::string AskWriter::health_probe() const {
  return "GET " + target_.base + "/health HTTP/1.1\r\nHost: " + target_.host_header + "\r\n\r\n";
}

}  // namespace chasqui::bench
