#include "base/log.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <utility>

#include <unistd.h>

#include "base/json_writer.h"
#include "base/log_sink.h"

namespace chasqui {
namespace {

// Constant after configure_log(), which runs before other threads start.
LogLevel g_level = LogLevel::info;
LogFormat g_format = LogFormat::text;
bool g_colours = false;
std::atomic<LogSink*> g_sink{nullptr};

constexpr std::array<std::string_view, 5> kLevelNames = {"debug", "info", "warning", "error", "off"};

std::string_view level_name(LogLevel level) { return kLevelNames[static_cast<std::size_t>(level)]; }

void append_json_value(std::string& out, const LogField& field) {
  std::visit(
      [&out](auto value) {
        if constexpr (std::is_same_v<decltype(value), std::string_view>) {
          append_json_string(out, value);
        } else if constexpr (std::is_same_v<decltype(value), bool>) {
          out += value ? "true" : "false";
        } else {
          append_json_number(out, value);
        }
      },
      field.value);
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  for (const unsigned char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f) return true;
  }
  return false;
}

void append_text_value(std::string& out, const LogField& field) {
  const auto* text = std::get_if<std::string_view>(&field.value);
  if (text != nullptr && !needs_quotes(*text)) {
    out += *text;
  } else {
    append_json_value(out, field);
  }
}

// Empty: the terminal's own.
std::string_view colour_of(LogLevel level) {
  if (!g_colours) return "";
  return level == LogLevel::error ? "\x1b[31m" : level == LogLevel::warning ? "\x1b[33m" : "";
}

void append_time(std::string& out) {
  const auto now = std::chrono::system_clock::now();
  const auto since_epoch = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::time_t whole = static_cast<std::time_t>(since_epoch / 1000);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char text[40];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + n, sizeof text - n, ".%03dZ", static_cast<int>(since_epoch % 1000));
  out += text;
}

void write_whole(std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // a closed standard error must not stop the server
    line.remove_prefix(static_cast<std::size_t>(n));
  }
}

void log_line(LogLevel level, std::string_view message, LogFields fields) {
  if (!log_enabled(level)) return;
  std::string line = whole_log_line(level, message, fields);
  if (LogSink* sink = g_sink.load(std::memory_order_acquire)) {
    sink->push(std::move(line));
  } else {
    write_whole(line);
  }
}

}  // namespace

void configure_log(LogLevel level, LogFormat format, bool colours) {
  g_level = level;
  g_format = format;
  g_colours = colours;
}

void set_log_sink(LogSink* sink) { g_sink.store(sink, std::memory_order_release); }

void show_status(std::string&& text) {
  if (LogSink* sink = g_sink.load(std::memory_order_acquire)) {
    sink->push(std::move(text));
  } else {
    write_whole(text);
  }
}

void flush_log(std::chrono::milliseconds most) {
  if (const LogSink* sink = g_sink.load(std::memory_order_acquire)) sink->flush(most);
}

LogFormat log_format() { return g_format; }

bool log_enabled(LogLevel level) { return level >= g_level && g_level != LogLevel::off; }

std::string format_log_line(LogFormat format, LogLevel level, std::string_view message, LogFields fields) {
  std::string out;
  if (format == LogFormat::json) {
    out += "{\"level\":";
    append_json_string(out, level_name(level));
    out += ",\"message\":";
    append_json_string(out, message);
    for (const LogField& field : fields) {
      if (field.key.empty()) continue;
      out += ',';
      append_json_string(out, field.key);
      out += ':';
      append_json_value(out, field);
    }
    out += '}';
    return out;
  }
  out += static_cast<char>(level_name(level)[0] - 'a' + 'A');
  out += ' ';
  out += message;
  for (const LogField& field : fields) {
    if (field.key.empty()) continue;
    out += ' ';
    out += field.key;
    out += '=';
    append_text_value(out, field);
  }
  return out;
}

std::string whole_log_line(LogLevel level, std::string_view message, LogFields fields) {
  const std::string body = format_log_line(g_format, level, message, fields);
  std::string line;
  line.reserve(body.size() + 40);
  if (g_format == LogFormat::json) {
    line += "{\"time\":\"";
    append_time(line);
    line += "\",";
    line.append(body, 1);
  } else {
    append_time(line);
    line += ' ';
    const std::string_view colour = colour_of(level);
    line += colour;
    line += body[0];
    if (!colour.empty()) line += "\x1b[0m";
    line.append(body, 1);
  }
  line += '\n';
  return line;
}

void log_debug(std::string_view message, LogFields fields) { log_line(LogLevel::debug, message, fields); }
void log_info(std::string_view message, LogFields fields) { log_line(LogLevel::info, message, fields); }
void log_warning(std::string_view message, LogFields fields) { log_line(LogLevel::warning, message, fields); }
void log_error(std::string_view message, LogFields fields) { log_line(LogLevel::error, message, fields); }

}  // namespace chasqui
