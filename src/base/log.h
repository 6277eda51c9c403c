// Structured log lines: a short fixed message and named fields, as text
// (`2026-11-21T12:00:01.123Z I message key=value`), in which the level of a warning or an error may have a colour, or
// as one JSON object a line. Any thread; a line is written whole, or goes to a LogSink (base/log_sink.h) where there is
// one. Never put prompts, answers or keys into a field. Control characters and invalid UTF-8 in values are escaped, so
// that a client cannot forge lines.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace chasqui {

enum class LogLevel { debug, info, warning, error, off };
enum class LogFormat { text, json };

struct LogField {
  std::string_view key;
  std::variant<std::string_view, std::int64_t, double, bool> value;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  LogField(std::string_view k, double v) : key(k), value(v) {}
  // Left out where there is none.
  LogField(std::string_view k, std::optional<double> v) : key(v ? k : std::string_view()), value(v.value_or(0)) {}
  template <std::integral Integer>
  LogField(std::string_view k, Integer v) : key(k), value(static_cast<std::int64_t>(v)) {}
};
using LogFields = std::initializer_list<LogField>;

// Call once, before other threads start. Without it: info, text, standard error.
void configure_log(LogLevel level, LogFormat format, bool colours = false);
bool log_enabled(LogLevel level);
LogFormat log_format();

void log_debug(std::string_view message, LogFields fields = {});
void log_info(std::string_view message, LogFields fields = {});
void log_warning(std::string_view message, LogFields fields = {});
void log_error(std::string_view message, LogFields fields = {});

// The line without its time stamp, exactly as it is written; for tests.
std::string format_log_line(LogFormat format, LogLevel level, std::string_view message, LogFields fields);
// … and with it, as of now, and with its end; in colours where they are configured.
std::string whole_log_line(LogLevel level, std::string_view message, LogFields fields);

}  // namespace chasqui
