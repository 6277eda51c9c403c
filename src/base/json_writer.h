// Writes JSON text by appending to a string: no tree, no locale, shortest round-trip numbers. The only way that
// Chasqui writes JSON (logs, answers, SSE frames); parsing is Boost.JSON's, in api. Any thread; pure functions.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace chasqui {

// Appends text in quotes. Invalid UTF-8 becomes U+FFFD, control characters are escaped, so the result is always
// valid JSON, whatever the model or the client said.
void append_json_string(std::string& out, std::string_view text);

// The same without the quotes around it, for strings that are written in pieces.
void append_json_escaped(std::string& out, std::string_view text);

void append_json_number(std::string& out, std::int64_t value);
void append_json_number(std::string& out, std::uint64_t value);
// Non-finite values, which JSON does not have, are written as null.
void append_json_number(std::string& out, double value);
// 0.8f is written 0.8.
void append_json_number(std::string& out, float value);

// Objects and arrays with the commas in the right places:
//   JsonWriter w(out); w.begin_object(); w.key("id"); w.string(id); w.end_object();
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }

  void key(std::string_view name) {
    separate();
    append_json_string(out_, name);
    out_ += ':';
    fresh_ = true;
  }

  void string(std::string_view text) {
    separate();
    append_json_string(out_, text);
  }
  void boolean(bool value) { raw(value ? "true" : "false"); }
  void null() { raw("null"); }
  template <std::integral Integer>
  void number(Integer value) {
    separate();
    if constexpr (std::is_signed_v<Integer>) {
      append_json_number(out_, static_cast<std::int64_t>(value));
    } else {
      append_json_number(out_, static_cast<std::uint64_t>(value));
    }
  }
  template <std::floating_point Real>
  void number(Real value) {
    separate();
    append_json_number(out_, value);
  }
  // Text that is JSON already.
  void raw(std::string_view json) {
    separate();
    out_ += json;
  }

  // key and value in one call.
  void begin_object(std::string_view name) { key(name), begin_object(); }
  void begin_array(std::string_view name) { key(name), begin_array(); }
  void null(std::string_view name) { key(name), null(); }
  void raw(std::string_view name, std::string_view json) { key(name), raw(json); }
  void field(std::string_view name, std::string_view value) { key(name), string(value); }
  void field(std::string_view name, const char* value) { key(name), string(value); }
  void field(std::string_view name, const std::string& value) { key(name), string(value); }
  void field(std::string_view name, bool value) { key(name), boolean(value); }
  template <std::floating_point Real>
  void field(std::string_view name, Real value) {
    key(name), number(value);
  }
  template <std::integral Integer>
  void field(std::string_view name, Integer value) {
    key(name), number(value);
  }

 private:
  void open(char bracket) {
    separate();
    out_ += bracket;
    fresh_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    fresh_ = false;
  }
  void separate() {
    if (!fresh_) out_ += ',';
    fresh_ = false;
  }

  std::string& out_;
  bool fresh_ = true;  // nothing written yet at this level, or a key was just written
};

}  // namespace chasqui
